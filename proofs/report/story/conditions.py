"""The parts of a claim with the numbers of a run: which of them is false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proofs.report.story.timeline import Bar, Lane, StepRow, Timeline
from spec.record.run_findings import LoopFinding

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
    made = _BY_CLAIM.get(finding.claim)
    found = () if made is None else made(finding, timeline, row)
    if found:
        return found
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


def _who(timeline: Timeline, request: int) -> str:
    alone = len(timeline.tracks) == 1 and not timeline.num_hidden_requests
    return "the request" if alone else f"request {request}"


def _stall(finding: LoopFinding, timeline: Timeline, row: StepRow) -> tuple[Condition, ...]:
    if finding.request is None or finding.loop is None:
        return ()
    standing = {request: rest for request, *rest in row.standing}
    status, computed, tokens = standing.get(finding.request, ("", 0, 0))
    return (
        Condition("nothing is in flight", holds=True),
        Condition("no event is still to come", holds=True),
        Condition(
            f"{_who(timeline, finding.request)} is {status} at {computed} of {tokens} tokens, "
            "neither finished nor paused",
            holds=True,
        ),
        Condition(f"pass {finding.loop[0]} changes the state", holds=False),
    )


def _thrash(finding: LoopFinding, timeline: Timeline, row: StepRow) -> tuple[Condition, ...]:
    if finding.loop is None:
        return ()
    first, last = finding.loop
    return (
        Condition(f"no event comes in passes {first} to {last}", holds=True),
        Condition("no request gets further in them than it ever was", holds=True),
        Condition(f"the state after pass {last} is not the one before pass {first}", holds=False),
    )


def _place(finding: LoopFinding, timeline: Timeline, row: StepRow) -> tuple[Lane, Bar, str] | None:
    """The request's lane, the feature's bar and its letter; ``None`` where one is not shown."""
    lane = next((lane for lane in row.lanes if lane.request == finding.request), None)
    if lane is None or finding.request is None or finding.feature is None:
        return None
    bar = timeline.bar(finding.request, finding.feature)
    return None if bar is None else (lane, bar, timeline.entries[bar.entry].letter)


def _boundary(finding: LoopFinding, timeline: Timeline, row: StepRow) -> tuple[Condition, ...]:
    place = _place(finding, timeline, row)
    if place is None:
        return ()
    lane, bar, letter = place
    if lane.drafter is None:
        return ()
    offset, (start, end) = bar.span[0], lane.processed
    test = f"offset {offset} >= computed {start} + scheduled {end - start}"
    reads = f"{letter} has a row in the drafter's window [{lane.drafter[0]},{lane.drafter[1]})"
    if finding.claim == "boundary-miss-tolerated":
        return (
            Condition(reads, holds=True),
            Condition(f"{letter} is not on the worker", holds=True),
            Condition(f"{letter} begins at or past the processed end: {test}", holds=True),
            Condition("the gather skips it and raises nothing", holds=False),
        )
    return (
        Condition(reads, holds=True),
        Condition(
            f"{letter} is on the worker, or begins at or past the processed end: {test}",
            holds=False,
        ),
    )


def _target(finding: LoopFinding, timeline: Timeline, row: StepRow) -> tuple[Condition, ...]:
    place = _place(finding, timeline, row)
    if place is None:
        return ()
    lane, _, letter = place
    start, end = lane.processed
    return (
        Condition(f"{letter} has a row in the target's window [{start},{end})", holds=True),
        Condition(f"{letter} is on the worker", holds=False),
    )


def _slots(finding: LoopFinding, timeline: Timeline, row: StepRow) -> tuple[Condition, ...]:
    cache = row.cache
    if not cache.drifted:
        return ()
    parts = [
        f"{timeline.entries[state.entry].letter} {state.rows}"
        for state in cache.entries
        if state.state in ("referenced", "freeable")
    ]
    told = f"the book holds {', '.join(parts)} (rows)" if parts else "the book holds no entry"
    held = Condition(told, holds=True)
    if cache.num_free != cache.size - cache.num_taken:
        asked = (
            f"free rows = size {cache.size} - taken {cache.num_taken}; the book counts "
            f"{cache.num_free}"
        )
    else:
        asked = f"free or freeable rows = {cache.true_room}; the book counts {cache.room}"
    return held, Condition(asked, holds=False)


def _bounded(finding: LoopFinding, timeline: Timeline, row: StepRow) -> tuple[Condition, ...]:
    cache = row.cache
    parts = [
        f"{timeline.entries[state.entry].letter} {state.rows}"
        for state in cache.entries
        if state.resident
    ]
    return (
        Condition(f"the worker holds {', '.join(parts)} (rows)", holds=True),
        Condition(f"rows held {cache.num_on_worker} <= cache size {cache.size}", holds=False),
    )


def _whole(finding: LoopFinding, timeline: Timeline, row: StepRow) -> tuple[Condition, ...]:
    place = _place(finding, timeline, row)
    if place is None:
        return ()
    lane, bar, letter = place
    start, end = lane.processed
    return (
        Condition("items are not to be split", holds=True),
        Condition(
            f"the range starts at or before {letter}: start {start} <= offset {bar.span[0]}",
            holds=True,
        ),
        Condition(
            f"it does not end inside {letter}: end {end} <= offset {bar.span[0]} or end {end} >= "
            f"the item's end {bar.span[1]}",
            holds=False,
        ),
    )


_Made = Callable[[LoopFinding, Timeline, StepRow], tuple[Condition, ...]]

_BY_CLAIM: dict[str, _Made] = {
    "no-stall": _stall,
    "no-thrash": _thrash,
    "boundary-miss-tolerated": _boundary,
    "drafter-resident-or-boundary": _boundary,
    "target-resident": _target,
    "slots-conserved": _slots,
    "worker-bounded": _bounded,
    "item-whole": _whole,
}
