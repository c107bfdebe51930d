"""The parts of a claim with the numbers of a run: which of them is false."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from proofs.report.story.timeline import Bar, EntryState, Lane, StepRow, Timeline
from spec.claims.parts import FREE_ROWS, FREEABLE_ROWS, PARTS
from spec.record.run_findings import LoopFinding

Numbers: TypeAlias = Mapping[str, object]
"""What stands for the names in braces of :data:`spec.claims.parts.PARTS`."""

ASKED_FOR = "asked for: "
"""Begins what a claim asks for, in the monitor's own words."""


@dataclass(frozen=True)
class Condition:
    """One part of a claim: what must be so for the claim to ask something, or what it asks."""

    text: str
    holds: bool


def conditions_of(finding: LoopFinding, timeline: Timeline) -> tuple[Condition, ...]:
    """What the claim takes for granted here, which holds, and at the end what it asks, which fails.

    Args:
        finding: the violation.
        timeline: its picture.
    """
    row = timeline.rows[timeline.contradiction]
    assert isinstance(row, StepRow)
    if finding.claim == "slots-conserved" and row.cache.drifted:
        return _slots(timeline, row)
    made = _NUMBERS.get(finding.claim)
    numbers = None if made is None else made(finding, timeline, row)
    if numbers is not None:
        *premises, asked = (part.format_map(numbers) for part in PARTS[finding.claim])
        return (
            *(Condition(premise, holds=True) for premise in premises),
            Condition(asked, holds=False),
        )
    return (
        Condition(f"seen: {finding.observed}", holds=True),
        Condition(f"{ASKED_FOR}{finding.expected}", holds=False),
    )


def since(finding: LoopFinding, timeline: Timeline) -> str:
    """Since when the last part is false."""
    row = timeline.rows[timeline.contradiction]
    assert isinstance(row, StepRow)
    if finding.loop is not None:
        return f"since pass {finding.loop[0]}; seen in {row.title}, when its state was back"
    return f"since {row.title}, step {row.number + 1} of {timeline.num_steps} in the trace"


def _subject(timeline: Timeline, request: int) -> str:
    alone = len(timeline.tracks) == 1 and not timeline.num_hidden_requests
    return "the request" if alone else f"request {request}"


def _standing(finding: LoopFinding, timeline: Timeline, row: StepRow) -> Numbers | None:
    if finding.request is None or finding.loop is None:
        return None
    standing = {request: rest for request, *rest in row.standing}
    status, computed, tokens = standing.get(finding.request, ("", 0, 0))
    return {
        "request": _subject(timeline, finding.request),
        "status": status,
        "computed": computed,
        "tokens": tokens,
        "first": finding.loop[0],
    }


def _turning(finding: LoopFinding, timeline: Timeline, row: StepRow) -> Numbers | None:
    return None if finding.loop is None else dict(zip(("first", "last"), finding.loop, strict=True))


def _place(finding: LoopFinding, timeline: Timeline, row: StepRow) -> tuple[Lane, Bar, str] | None:
    """The request's lane, the feature's bar and its letter; ``None`` where one is not shown."""
    lane = next((lane for lane in row.lanes if lane.request == finding.request), None)
    if lane is None or finding.request is None or finding.feature is None:
        return None
    bar = timeline.bar(finding.request, finding.feature)
    return None if bar is None else (lane, bar, timeline.entries[bar.entry].letter)


def _read(finding: LoopFinding, timeline: Timeline, row: StepRow) -> Numbers | None:
    place = _place(finding, timeline, row)
    if place is None:
        return None
    lane, bar, letter = place
    (start, end), (offset, feature_end) = lane.processed, bar.span
    return {
        "feature": letter,
        "target": _window(start, end),
        "start": start,
        "end": end,
        "offset": offset,
        "feature_end": feature_end,
    }


def _read_ahead(finding: LoopFinding, timeline: Timeline, row: StepRow) -> Numbers | None:
    place, read = _place(finding, timeline, row), _read(finding, timeline, row)
    if place is None or read is None or place[0].drafter is None:
        return None
    start, end = place[0].processed
    boundary = f"offset {read['offset']} >= computed {start} + scheduled {end - start}"
    return {**read, "drafter": _window(*place[0].drafter), "boundary": boundary}


def _window(start: int, end: int) -> str:
    return f"[{start},{end})"


def _on_worker(finding: LoopFinding, timeline: Timeline, row: StepRow) -> Numbers | None:
    cache = row.cache
    return {
        "entries": _entries(timeline, [state for state in cache.entries if state.resident]),
        "on_worker": cache.num_on_worker,
        "size": cache.size,
    }


def _entries(timeline: Timeline, states: Iterable[EntryState]) -> str:
    """Each entry with its rows."""
    return ", ".join(f"{timeline.entries[state.entry].letter} {state.rows}" for state in states)


def _slots(timeline: Timeline, row: StepRow) -> tuple[Condition, ...]:
    cache = row.cache
    in_book = [state for state in cache.entries if state.state in ("referenced", "freeable")]
    entries = _entries(timeline, in_book)
    seen = f"the book holds {entries} (rows)" if entries else "the book holds no entry"
    is_free_off = cache.num_free != cache.size - cache.num_taken
    asked = (FREE_ROWS if is_free_off else FREEABLE_ROWS).format(
        size=cache.size,
        taken=cache.num_taken,
        free=cache.num_free,
        true_room=cache.true_room,
        room=cache.room,
    )
    return Condition(seen, holds=True), Condition(asked, holds=False)


_NUMBERS: dict[str, Callable[[LoopFinding, Timeline, StepRow], Numbers | None]] = {
    "no-stall": _standing,
    "no-thrash": _turning,
    "boundary-miss-tolerated": _read_ahead,
    "drafter-resident-or-boundary": _read_ahead,
    "target-resident": _read,
    "worker-bounded": _on_worker,
    "item-whole": _read,
}
"""Where the numbers of a claim's parts stand in a timeline; ``None`` where they are not shown."""
