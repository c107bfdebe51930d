"""What a run exercised: how often each rule, guard outcome and boundary relation came up.

Counted from what was seen alone, so that a search which no longer reaches a rule is noticed
whatever the target says about itself. Tests hold floors for these counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from spec.record.feature import Feature
from spec.record.prompts import Prompts
from spec.record.scenario import Scenario
from spec.record.steps import (
    Call,
    EngineState,
    EventSeen,
    PassSeen,
    ScheduledRequest,
    Trace,
    UpdateSeen,
)

RELATIONS: tuple[str, ...] = (
    "item ends before the processed end",
    "item ends at the processed end",
    "item ends after the processed end",
    "item starts before the processed end",
    "item starts at the processed end",
    "item starts after the processed end",
    "rows for the drafter only",
    "rows for the target only",
    "boundary item read",
    "boundary item not resident",
    "gather of several requests",
    "item without rows in the window",
)
"""Relations between an item and a gather that :func:`cover_gathers` counts."""


def cover_gathers(
    step: PassSeen, scenario: Scenario, prompts: Prompts, counts: Counter[str]
) -> None:
    """Count the relations of a pass.

    Args:
        prompts: where features lay when the pass was scheduled.
        counts: added to.
    """
    if step.worker is None or scenario.config.is_encoder_decoder:
        return
    resident = {identifier for identifier, _ in step.worker.contents}
    counts["gather of several requests"] += len(step.scheduled) > 1
    for item in step.scheduled:
        features = prompts.features(item.request)
        _cover_target(item, features, counts)
        if step.worker.drafter is not None:
            look_ahead = scenario.config.gather_lookahead
            _cover_drafter(item, features, look_ahead, resident, counts)


def _cover_target(
    item: ScheduledRequest, features: Sequence[Feature], counts: Counter[str]
) -> None:
    start = item.num_computed_tokens
    end = start + item.num_scheduled_tokens
    for feature in features:
        if feature.offset < end and feature.end > start:
            counts["item without rows in the window"] += not feature.has_row_in(start, end)


def _cover_drafter(
    item: ScheduledRequest,
    features: Sequence[Feature],
    look_ahead: int,
    resident: set[str],
    counts: Counter[str],
) -> None:
    start = item.num_computed_tokens
    end = start + item.num_scheduled_tokens
    for feature in features:
        for_target = feature.has_row_in(start, end)
        for_drafter = feature.has_row_in(start + look_ahead, end + look_ahead)
        counts["rows for the target only"] += for_target and not for_drafter
        if not for_drafter:
            continue
        counts["rows for the drafter only"] += not for_target
        counts[f"item ends {_relation(feature.end, end)} the processed end"] += 1
        counts[f"item starts {_relation(feature.offset, end)} the processed end"] += 1
        if feature.offset >= end:
            is_resident = feature.identifier in resident
            counts["boundary item read" if is_resident else "boundary item not resident"] += 1


def _relation(position: int, end: int) -> str:
    if position < end:
        return "before"
    return "at" if position == end else "after"


OUTCOMES: tuple[str, ...] = (
    "hit",
    "allocated",
    "refused for room",
    "refused for encoder budget",
    "rejected for rows",
    "duplicate",
    "cut at a refused item",
    "stopped at a refused item",
    "cut before a whole item",
    "cut for the reservation",
    "cut for the alignment",
    "cut for the threshold",
    "evicted",
    "notice withheld",
    "cancelled",
    "given back",
    "waits for KV blocks",
    "preempted, fcfs",
    "preempted, priority",
    "victim scheduled in the same pass",
    "prefix hit inside an item",
    "prefix hit at an item's start",
    "prefix hit at an item's end",
    "prefix hit elsewhere",
    "freed by progress",
    "drafts rejected",
    "drafts accepted",
    "rewound",
    "output dropped",
    "arrival",
    "abort of a running request",
    "abort of another request",
    "reset of a cache in use",
    "reset of an idle cache",
    "continuation of a paused request",
    "continuation of a busy request",
    "close of a paused request",
    "close of another request",
    "paused",
    "placeholders in flight",
    "entry shared by requests",
    "encoded for another request",
)
"""Outcomes of rules and guards that :func:`coverage` counts, apart from those of gathers."""


def coverage(trace: Trace) -> Counter[str]:
    """How often each outcome of ``OUTCOMES``, and of the gathers, shows in a trace."""
    counts: Counter[str] = Counter()
    prompts = Prompts(trace.scenario)
    before: EngineState | None = None
    drafts: dict[tuple[int, int], int] = {}
    for step in trace.steps:
        match step:
            case EventSeen():
                _cover_event(step, before, counts)
            case PassSeen():
                _cover_pass(step, before, trace.scenario, prompts, counts)
                cover_gathers(step, trace.scenario, prompts, counts)
                for item in step.scheduled:
                    drafts[step.index, item.request] = item.num_draft_tokens
            case UpdateSeen():
                _cover_update(step, drafts, counts)
        prompts.observe(step)
        _cover_state(step.state, before, counts)
        before = step.state
    return counts


def _status(state: EngineState | None, request: int) -> str:
    for state_of_request in state.requests if state is not None else ():
        if state_of_request.request == request:
            return state_of_request.status
    return ""


def _cover_event(step: EventSeen, before: EngineState | None, counts: Counter[str]) -> None:
    match step.event:
        case "arrival":
            counts["arrival"] += 1
        case "abort":
            runs = _status(before, step.request) == "running"
            counts["abort of a running request" if runs else "abort of another request"] += 1
        case "continuation":
            paused = _status(before, step.request) == "paused"
            kind = "paused" if paused else "busy"
            counts[f"continuation of a {kind} request"] += 1
        case "close":
            paused = _status(before, step.request) == "paused"
            counts[f"close of {'a paused' if paused else 'another'} request"] += 1
        case "reset":
            in_use = before is not None and bool(before.book.references)
            counts["reset of a cache in use" if in_use else "reset of an idle cache"] += 1


def _cover_state(state: EngineState, before: EngineState | None, counts: Counter[str]) -> None:
    shared = any(len(requests) > 1 for _, requests in state.book.references)
    counts["entry shared by requests"] += shared
    for request in state.requests:
        if request.status == "paused":
            counts["paused"] += _status(before, request.request) != "paused"


def _cover_pass(
    step: PassSeen,
    before: EngineState | None,
    scenario: Scenario,
    prompts: Prompts,
    counts: Counter[str],
) -> None:
    _cover_calls(step.calls, prompts, counts)
    counts["evicted"] += len(step.notices)
    held = before.book.references if before is not None else ()
    held_identifiers = {identifier for identifier, _ in held}
    encoded = [prompts.features(r)[f].identifier for r, f in step.encoder_inputs]
    counts["notice withheld"] += sum(
        identifier in held_identifiers and identifier not in step.notices for identifier in encoded
    )
    counts[f"preempted, {scenario.config.policy}"] += len(step.preempted)
    got_blocks = {c.request for c in step.calls if c.method == "allocate_slots" and c.answer}
    counts["victim scheduled in the same pass"] += sum(
        request in got_blocks for request in step.preempted
    )
    allocated = {(c.request, c.feature) for c in step.calls if c.method == "allocate"}
    counts["encoded for another request"] += sum(
        request_and_feature not in allocated for request_and_feature in step.encoder_inputs
    )
    _cover_given_back(step, counts)
    total = sum(item.num_scheduled_tokens for item in step.scheduled)
    full = total == scenario.config.max_num_batched_tokens
    refused = {
        (call.request, call.feature)
        for call in step.calls
        if call.method == "can_allocate" and call.answer is False
    }
    scheduled = {item.request for item in step.scheduled}
    counts["stopped at a refused item"] += sum(r not in scheduled for r, _ in refused)
    for item in step.scheduled:
        features = prompts.features(item.request)
        _cover_chunk(item, features, scenario, refused, full, counts)
        _cover_duplicates(item, features, step.encoder_inputs, scenario, counts)


def _cover_calls(calls: Sequence[Call], prompts: Prompts, counts: Counter[str]) -> None:
    for call in calls:
        match call.method, call.answer:
            case "check_and_update_cache", True:
                counts["hit"] += 1
            case "check_and_update_cache", None:
                counts["rejected for rows"] += 1
            case "can_allocate", False:
                rows = prompts.features(call.request)[call.feature].num_rows
                over = rows > call.budget
                counts["refused for encoder budget" if over else "refused for room"] += 1
            case "allocate", _:
                counts["allocated"] += 1
            case "cancel", _:
                counts["cancelled"] += 1
            case _:
                pass


def _cover_given_back(step: PassSeen, counts: Counter[str]) -> None:
    """Requests that took a reference by a hit and had to let it go, as they could not run."""
    out = {item.request for item in step.scheduled} | set(step.preempted)
    hits = {c.request for c in step.calls if c.method == "check_and_update_cache" and c.answer}
    freed = {c.request for c in step.calls if c.method == "free"}
    counts["given back"] += len((hits & freed) - out)
    waits = {c.request for c in step.calls if c.method == "allocate_slots" and not c.answer}
    counts["waits for KV blocks"] += len(waits - out)


def _cover_chunk(
    item: ScheduledRequest,
    features: Sequence[Feature],
    scenario: Scenario,
    refused: Iterable[tuple[int, int]],
    full: bool,
    counts: Counter[str],
) -> None:
    config = scenario.config
    start = item.num_computed_tokens
    end = start + item.num_scheduled_tokens
    if item.num_output_placeholders:
        counts["placeholders in flight"] += 1
    if item.started and start:
        counts[f"prefix hit {_place_of(start, features)}"] += 1
    if end >= item.prefill_len or full:
        return
    if any(r == item.request and features[f].offset == end for r, f in refused):
        counts["cut at a refused item"] += 1
    elif config.whole_items and any(f.offset == end for f in features):
        counts["cut before a whole item"] += 1
    elif item.num_scheduled_tokens == config.long_prefill_token_threshold:
        counts["cut for the threshold"] += 1
    elif config.scheduler_lookahead > 1 and item.prefill_len - end == config.scheduler_lookahead:
        counts["cut for the reservation"] += 1
    elif config.block_alignment and end % config.block_alignment == 0:
        counts["cut for the alignment"] += 1


def _place_of(position: int, features: Sequence[Feature]) -> str:
    if any(f.offset < position < f.end for f in features):
        return "inside an item"
    if any(f.offset == position for f in features):
        return "at an item's start"
    if any(f.end == position for f in features):
        return "at an item's end"
    return "elsewhere"


def _cover_duplicates(
    item: ScheduledRequest,
    features: Sequence[Feature],
    encoder_inputs: Sequence[tuple[int, int]],
    scenario: Scenario,
    counts: Counter[str],
) -> None:
    start = item.num_computed_tokens
    end = start + item.num_scheduled_tokens + scenario.config.scheduler_lookahead
    chosen = {features[f].identifier: f for r, f in encoder_inputs if r == item.request}
    counts["duplicate"] += sum(
        feature.has_row_in(start, end) and chosen.get(feature.identifier, index) < index
        for index, feature in enumerate(features)
    )


def _cover_update(
    step: UpdateSeen, drafts: dict[tuple[int, int], int], counts: Counter[str]
) -> None:
    # A request that ends drops everything by one call for the whole of it.
    counts["freed by progress"] += sum(c.method == "free_encoder_input" for c in step.calls)
    for outcome in step.outcomes:
        counts["output dropped"] += outcome.dropped
        counts["rewound"] += outcome.rewound is not None
        counts["drafts accepted"] += outcome.num_accepted > 0
        verified = drafts.get((step.index, outcome.request), 0)
        counts["drafts rejected"] += not outcome.dropped and outcome.num_accepted < verified
