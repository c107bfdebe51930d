"""Whether a step of a run is the model's: states, actions and observations."""

from __future__ import annotations

from collections.abc import Iterator

from spec.loop.steps import EngineState, EventSeen, PassSeen, Step, UpdateSeen, WorkerSeen
from spec.model.layout import Layout
from spec.model.run import ModelPass, ModelStep, ModelUpdate
from spec.model.state import ABSENT, FINISHED, STATUS_NAMES, PassRecord, State


def disagreement(
    layout: Layout, model: ModelStep, seen: Step, *, with_calls: bool = True
) -> str | None:
    """The first thing in which a step differs from the model's, or ``None``.

    Counts of requests that ended are nobody's business any more and not compared.

    Args:
        layout: of the scenario.
        model: the model's step.
        seen: the step of a target.
        with_calls: whether what was asked of the book was recorded.
    """
    for name, expected, got in _pairs(layout, model, seen, with_calls):
        if expected != got:
            return f"{name}: the model has {expected}, the target {got}"
    return None


def _pairs(
    layout: Layout, model: ModelStep, seen: Step, with_calls: bool
) -> Iterator[tuple[str, object, object]]:
    yield "error", model.error is not None, seen.error is not None
    if isinstance(model, ModelPass):
        yield "kind of step", ("pass", model.index), (seen.kind, _number(seen))
        if isinstance(seen, PassSeen) and model.error is None:
            yield from _pass_pairs(layout, model.record, model.state, seen)
            if with_calls:
                yield (
                    "hits, allocations and refusals",
                    (model.record.hits, model.record.allocated, model.record.refused),
                    _asked(layout, seen),
                )
    elif isinstance(model, ModelUpdate):
        yield "kind of step", ("update", model.index), (seen.kind, _number(seen))
        if isinstance(seen, UpdateSeen) and model.error is None:
            yield (
                "outcomes",
                model.record.outcomes,
                tuple(
                    (
                        outcome.request,
                        outcome.num_accepted,
                        outcome.num_emitted,
                        outcome.dropped,
                        -1 if outcome.rewound is None else outcome.rewound,
                    )
                    for outcome in seen.outcomes
                ),
            )
    else:
        yield "kind of step", ("event", model.index), (seen.kind, _number(seen))
        if isinstance(seen, EventSeen):
            yield "event", (model.event, model.request), (seen.event, seen.request)
    if model.error is None:
        yield from _state_pairs(layout, model.state, seen.state)


def _number(seen: Step) -> int:
    return seen.before if isinstance(seen, EventSeen) else seen.index


def _pass_pairs(
    layout: Layout, record: PassRecord, state: State, seen: PassSeen
) -> Iterator[tuple[str, object, object]]:
    yield (
        "batch",
        record.scheduled,
        tuple(
            (
                entry.request,
                entry.num_computed_tokens,
                entry.num_scheduled_tokens,
                entry.num_draft_tokens,
                entry.num_output_placeholders,
                entry.prefill_len,
                entry.started,
            )
            for entry in seen.scheduled
        ),
    )
    yield (
        "encoder inputs",
        record.inputs,
        tuple(layout.first[request] + feature for request, feature in seen.encoder_inputs),
    )
    yield "notices", tuple(layout.names[name] for name in record.notices), seen.notices
    yield "preempted", record.preempted, seen.preempted
    yield "rejected", (), seen.rejected
    if seen.worker is not None:
        yield "worker", state.worker, _contents(layout, seen.worker)


def _asked(layout: Layout, seen: PassSeen) -> tuple[int, int, int]:
    """Occurrences hit, allocated and refused, those of preempted requests left out."""
    hits = allocated = refused = 0
    for call in seen.calls:
        if call.method == "allocate_slots" or call.request < 0:
            continue
        if call.method == "free" and call.request in seen.preempted:
            own = ~layout.own[call.request]
            hits, allocated, refused = hits & own, allocated & own, refused & own
        bit = 1 << (layout.first[call.request] + max(call.feature, 0))
        if call.method == "check_and_update_cache" and call.answer:
            hits |= bit
        elif call.method == "can_allocate" and call.answer is False:
            refused |= bit
        elif call.method == "allocate":
            allocated |= bit
    return hits, allocated, refused


def _contents(layout: Layout, worker: WorkerSeen) -> int:
    held = 0
    for name, _ in worker.contents:
        held |= 1 << layout.names.index(name)
    return held


def _state_pairs(
    layout: Layout, state: State, seen: EngineState
) -> Iterator[tuple[str, object, object]]:
    arrived = 0
    for other in seen.requests:
        arrived += 1
        status, computed, placeholders, drafts, known, blocks, _, _ = state.requests[other.request]
        yield f"status of request {other.request}", STATUS_NAMES[status], other.status
        if status != FINISHED:
            yield (
                f"counts of request {other.request}",
                (computed, placeholders, drafts, known, blocks),
                (
                    other.num_computed_tokens,
                    other.num_output_placeholders,
                    other.num_draft_tokens,
                    other.num_tokens,
                    other.num_blocks,
                ),
            )
    yield "arrived", sum(request[0] != ABSENT for request in state.requests), arrived
    yield "waiting", state.waiting, seen.waiting
    yield "running", state.running, seen.running
    book = seen.book
    names = layout.names
    yield (
        "references",
        {
            name: _holders(layout, state.held & layout.sharing[number])
            for number, name in enumerate(names)
            if state.entries >> number & 1
        },
        {name: set(holders) for name, holders in book.references},
    )
    yield "freeable", tuple(names[name] for name in state.freeable), book.freeable
    yield "free slots", state.free, book.num_free_slots
    if book.num_freeable_slots is not None:
        yield "freeable slots", state.freeable_slots, book.num_freeable_slots


def _holders(layout: Layout, held: int) -> set[int]:
    return {request for request in range(layout.num_requests) if held & layout.own[request]}
