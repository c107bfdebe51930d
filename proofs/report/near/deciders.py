"""Which guard decides a violation, and where its edge lies: the same run with one thing changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from impl.faults.switches import FAULTS, Fault, fault
from proofs.describe.words import counted
from proofs.report.near.neighbours import variations
from proofs.report.near.rerun import Rerun, most_runs, reference_rerun
from proofs.search.runs.results import LoopCounterexample

RunOutcome: TypeAlias = Literal["passes", "breaks", "not run"]

_FARTHEST = 3
_MOST_PASSING = 5
_MOST_BREAKING = 4
_MOST_PAIRS = 3
_MOST_NAMED = 3


@dataclass(frozen=True)
class Tried:
    """One alternative that was run.

    Attributes:
        what: what was different.
        outcome: whether the claim held in that run.
        note: what there is to say about it; may be empty.
    """

    what: str
    outcome: RunOutcome
    note: str = ""


def outcome_of(is_violated: bool | None) -> RunOutcome:
    """In a word."""
    if is_violated is None:
        return "not run"
    return "breaks" if is_violated else "passes"


def deciders(example: LoopCounterexample, faults: Iterable[str]) -> tuple[Tried, ...]:
    """The same scenario on the reference with other guards.

    Of a run of the reference with switches, each switch is taken back. Of a real engine's run, the
    reference as it is and each switch that can break the claim show which guard it may be. Switches
    that change nothing here are counted. Long runs are made a few times only.

    Args:
        example: the violation.
        faults: switches of the reference that it was found with; none for a real engine.
    """
    switched_on = frozenset(faults)
    tried = []
    for name in sorted(switched_on):
        rest = switched_on - {name}
        left = f", with {' and '.join(sorted(rest))}" if rest else ""
        switch = fault(name)
        what = f"the reference without the switch {name}{left}"
        tried.append(Tried(what, _run(example, rest), _of(switch, "the switch: ")))
    if len(switched_on) != 1:
        what = "the reference, all guards as they should be"
        tried.append(Tried(what, _run(example, ())))
    runs = most_runs(example)
    related = _related(example, switched_on)[:runs]
    outcomes = {other.name: _run(example, (other.name,)) for other in related}
    for other in related:
        if outcomes[other.name] == "breaks":
            what = f"the reference with the switch {other.name} instead"
            tried.append(Tried(what, "breaks", _of(other, "")))
    if not switched_on and "breaks" not in outcomes.values():
        tried += _pairs(example, related, runs - len(related))
    harmless = [other.name for other in related if outcomes[other.name] == "passes"]
    if harmless:
        number = counted(len(harmless), "other switch", "other switches")
        named = ", ".join(harmless[:_MOST_NAMED]) + (" ..." if len(harmless) > _MOST_NAMED else "")
        note = f"{named}: can break this claim elsewhere, and not here"
        each = ", each alone" if len(harmless) > 1 else " alone"
        tried.append(Tried(f"the reference with {number}{each}", "passes", note))
    return tuple(tried)


def _pairs(example: LoopCounterexample, related: list[Fault], runs: int) -> list[Tried]:
    """Two switches together: some faults show only where another one has left an item out."""
    tried: list[Tried] = []
    overrides: set[tuple[object, object]] = set()
    for switch in related:
        for other in FAULTS:
            if len(tried) == _MOST_PAIRS or len(overrides) >= runs:
                return tried
            # Two switches may be two reports of one override.
            if other is switch or (switch.apply, other.apply) in overrides:
                continue
            overrides.add((switch.apply, other.apply))
            if _run(example, (switch.name, other.name)) == "breaks":
                what = f"the reference with the switches {switch.name} and {other.name}"
                tried.append(Tried(what, "breaks", f"{switch.sentence}; {other.sentence}"))
    return tried


def _related(example: LoopCounterexample, switched_on: frozenset[str]) -> list[Fault]:
    """Switches of other parts that can break the claim; one override may have two names."""
    claim = example.finding.claim
    on = {fault(name).apply for name in switched_on}
    related = {
        switch.apply: switch
        for switch in reversed(FAULTS)
        if claim in (*switch.breaks_in_loop, *switch.may_also_break) and switch.apply not in on
    }
    return list(reversed(related.values()))


def _run(example: LoopCounterexample, faults: Iterable[str]) -> RunOutcome:
    return outcome_of(reference_rerun(example, faults)([example.trace.scenario])[0])


def _of(switch: Fault, start: str) -> str:
    reference, _, rest = switch.public.partition("none: ")
    public = switch.public if reference or not rest else f"no public report; {rest}"
    return f"{start}{switch.sentence} ({public})"


def neighbours(example: LoopCounterexample, rerun: Rerun) -> tuple[Tried, ...]:
    """Scenarios that differ in one number, the nearest that pass and some that do not.

    Args:
        example: the violation.
        rerun: runs scenarios on the target of the violation.
    """
    breaking: list[Tried] = []
    number = reached = 0
    runs = most_runs(example)
    for distance in range(1, _FARTHEST + 1):
        around = variations(example.trace.scenario, distance)[: max(runs, 0)]
        runs -= len(around)
        outcomes = rerun([neighbour.scenario for neighbour in around])
        tried = [
            Tried(neighbour.what, outcome_of(outcome))
            for neighbour, outcome in zip(around, outcomes, strict=True)
        ]
        breaking += [neighbour for neighbour in tried if neighbour.outcome == "breaks"]
        ran = sum(neighbour.outcome != "not run" for neighbour in tried)
        number += ran
        reached = distance if ran else reached
        passing = [neighbour for neighbour in tried if neighbour.outcome == "passes"]
        if passing:
            return (*passing[:_MOST_PASSING], *breaking[:_MOST_BREAKING])
    if not number:
        return ()
    by = f"by up to {reached}" if reached > 1 else "by 1"
    what = f"each of {number} scenarios that differ in one number, {by}"
    return (Tried(what, "breaks", "none of them passes"),)
