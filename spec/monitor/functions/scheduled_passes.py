"""Check the claims on passes in which encoder inputs were scheduled for one request.

The monitor recomputes everything from the case and the raw observation. The drafter reads one token
ahead where the scheduler has a shift at all, whatever that shift is.
"""

from __future__ import annotations

from collections.abc import Iterator

from spec.claims import predicates as claims
from spec.claims.predicates import Chunk
from spec.functions.findings import Finding, finding
from spec.functions.observations import SchedulingObservation, SchedulingPass
from spec.functions.scheduling_cases import SchedulingCase
from spec.record.feature import Feature, rows_by_identifier

DRAFT_LOOKAHEAD = 1
"""How far past the target's window a drafter reads (tokens), in both runners of every release."""


def check_scheduling(
    case: SchedulingCase, observation: SchedulingObservation, target: str
) -> tuple[Finding, ...]:
    """Findings of the case's passes, each claim at the first pass that breaks it."""
    found: dict[str, Finding] = {}
    for index, seen in enumerate(observation.passes):
        for violated in _check_pass(case, index, seen, target):
            found.setdefault(violated.claim, violated)
    error = observation.error
    if error is not None:
        found["no-error"] = finding(
            "no-error",
            case,
            observed=f"pass {len(observation.passes)}: {error.type}: {error.message}",
            expected="the request is scheduled without an error",
            target=target,
            mechanism=f"scheduling raises {error.type}",
        )
    return tuple(found.values())


def _check_pass(
    case: SchedulingCase, index: int, seen: SchedulingPass, target: str
) -> Iterator[Finding]:
    if seen.num_scheduled_tokens >= 1:
        yield from _check_residency(case, index, seen, target)
        yield from _check_need(case, index, seen, target)
        yield from _check_whole(case, index, seen, target)
    elif case.is_lone_and_legal:
        yield finding(
            "no-stall",
            case,
            observed=f"pass {index}: {seen.num_scheduled_tokens} of {seen.num_asked_tokens} tokens "
            f"from {seen.num_computed_tokens} on, {_answers(case, seen)}",
            expected="at least one token: nothing but the request itself holds anything, and every "
            "item fits the cache and the budgets",
            target=target,
            mechanism=_why_nothing(case, seen),
        )
    if not 0 <= seen.num_scheduled_tokens <= seen.num_asked_tokens:
        yield finding(
            "no-error",
            case,
            observed=f"pass {index}: {seen.num_scheduled_tokens} tokens are scheduled",
            expected=f"from 0 to {seen.num_asked_tokens} tokens, which were to be had",
            target=target,
            mechanism="scheduling gives tokens that are not there",
        )
    yield from _check_slots(case, index, seen, target)


def _why_nothing(case: SchedulingCase, seen: SchedulingPass) -> str:
    """The rule that left nothing of the tokens asked for."""
    if seen.num_kept_tokens >= 1:
        return "nothing is left before the prefill's reserved end"
    if seen.refused:
        return "nothing is left before an item that was refused"
    if any(_is_cut_whole(case, seen, feature) for feature in case.features):
        return "nothing is left before a whole item"
    return "nothing is left although nothing was refused"


def _answers(case: SchedulingCase, seen: SchedulingPass) -> str:
    def names(indices: tuple[int, ...]) -> str:
        return " ".join(case.features[i].describe() for i in indices) or "nothing"

    return f"hit {names(seen.hits)}, chosen {names(seen.chosen)}, refused {names(seen.refused)}"


def _chunk(case: SchedulingCase, seen: SchedulingPass) -> Chunk:
    """What the pass runs; where the scheduler does not look ahead, no drafter is judged."""
    start = seen.num_computed_tokens
    look_ahead = DRAFT_LOOKAHEAD if case.scheduler_shift >= DRAFT_LOOKAHEAD else 0
    return Chunk(start, start + seen.num_scheduled_tokens, look_ahead)


def _check_residency(
    case: SchedulingCase, index: int, seen: SchedulingPass, target: str
) -> Iterator[Finding]:
    present = {identifier for identifier, _ in seen.book.references}
    chunk = _chunk(case, seen)
    start, end, _ = chunk
    for feature in case.features:
        resident = feature.identifier in present
        if not claims.target_resident(feature, chunk, resident):
            yield finding(
                "target-resident",
                case,
                observed=f"pass {index} runs [{start},{end}) without {feature.describe()} in the "
                f"book, {_answers(case, seen)}",
                expected="every item with a row in the range is hit or chosen",
                target=target,
                mechanism="an item in the range is neither hit nor chosen",
            )
        if chunk.look_ahead and not claims.drafter_resident_or_boundary(feature, chunk, resident):
            yield finding(
                "drafter-resident-or-boundary",
                case,
                observed=f"pass {index} runs [{start},{end}) without {feature.describe()} in the "
                f"book, {_answers(case, seen)}",
                expected="every item with a row one token ahead is hit or chosen, or starts at or "
                "past the processed end",
                target=target,
                mechanism="an item that starts in the range is not there for the drafter",
            )


def _check_need(
    case: SchedulingCase, index: int, seen: SchedulingPass, target: str
) -> Iterator[Finding]:
    chunk = _chunk(case, seen)
    start, end, look_ahead = chunk
    # The pass had the tokens that were asked for, and what the scheduler looks ahead.
    least, most = seen.num_asked_tokens, seen.num_asked_tokens + case.scheduler_shift
    search_ended = False
    for number, feature in enumerate(case.features):
        if case.whole_items and claims.cut_before_whole_item(feature, start, least, most):
            search_ended = search_ended or bool(claims.is_at_boundary(feature, chunk))
        if not claims.need_agrees(feature, chunk, _was_asked_for(case, seen, number), search_ended):
            yield finding(
                "need-agrees",
                case,
                observed=f"pass {index} reads {feature.describe()} in "
                f"[{start},{end + look_ahead}), {_answers(case, seen)}",
                expected="every item that is read was hit, chosen, a duplicate, refused, or cut "
                "off as a whole",
                target=target,
                mechanism="an item that is read was not asked for",
            )


def _was_asked_for(case: SchedulingCase, seen: SchedulingPass, number: int) -> bool:
    feature = case.features[number]
    repeated = any(
        case.features[i].identifier == feature.identifier for i in seen.chosen if i < number
    )
    return number in (*seen.hits, *seen.chosen, *seen.duplicates, *seen.refused) or repeated


def _is_cut_whole(case: SchedulingCase, seen: SchedulingPass, feature: Feature) -> bool:
    """Whether the tokens asked for would have split the item, with chunking of items off."""
    end = seen.num_computed_tokens + seen.num_asked_tokens
    starts = seen.num_computed_tokens <= feature.offset < end + case.scheduler_shift
    return case.whole_items and starts and end < feature.end


def _check_whole(
    case: SchedulingCase, index: int, seen: SchedulingPass, target: str
) -> Iterator[Finding]:
    chunk = _chunk(case, seen)
    start, end, _ = chunk
    for feature in case.features:
        if case.whole_items and not claims.item_whole(feature, chunk):
            yield finding(
                "item-whole",
                case,
                observed=f"pass {index} runs [{start},{end}), which ends inside "
                f"{feature.describe()}; {seen.num_asked_tokens} tokens were to be had",
                expected="a range that starts at or before an item does not end inside it",
                target=target,
                mechanism=_why_split(case, seen, feature),
            )


def _why_split(case: SchedulingCase, seen: SchedulingPass, feature: Feature) -> str:
    if seen.num_scheduled_tokens < seen.num_kept_tokens:
        return "an item is split by the prefill's reserved end"
    if _is_cut_whole(case, seen, feature):
        if feature.offset == seen.num_computed_tokens:
            return "an item at the start of the chunk is not cut off"
        if case.features.index(feature) in seen.hits:
            return "an item in the book is not cut off"
        if seen.num_scheduled_tokens == seen.num_asked_tokens:
            return "an item that does not fit the chunk is not cut off"
        return "an item that does not fit the chunk is split by another cut"
    return "an item that fits the chunk is split by a later cut"


def _check_slots(
    case: SchedulingCase, index: int, seen: SchedulingPass, target: str
) -> Iterator[Finding]:
    rows = rows_by_identifier(case.features)
    rows |= {entry.identifier: entry.num_rows for entry in case.entries}
    book = seen.book
    occupied = sum(rows[name] for name, _ in book.references)
    referenced = sum(rows[name] for name, holders in book.references if holders)
    free, freeable = case.cache_size - occupied, case.cache_size - referenced
    if not claims.slots_conserved(
        book.num_free_slots, book.num_freeable_slots, occupied, referenced, case.cache_size
    ):
        yield finding(
            "slots-conserved",
            case,
            observed=f"pass {index}: {book.num_free_slots} free and {book.num_freeable_slots} "
            "freeable slots",
            expected=f"{free} free and {freeable} freeable slots, neither below 0",
            target=target,
            mechanism="slots after scheduling",
        )
