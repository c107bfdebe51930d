"""What the model shows of a cell: the smallest run with a miss, and the smallest that stops.

A miss that raises ends a run, and what comes after it is never seen. Whether requests get to their
end is therefore asked of runs in which no miss ends anything. That changes no schedule, since
nothing of a gather's result is an input of scheduling; so one run answers for both kinds of
gather.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from proofs.ablate.cells import Scheduling
from proofs.ablate.scope import scope
from spec.model.layout import Layout
from spec.model.run import ModelPass, run_layout
from spec.model.state import PassRecord, State
from spec.record.scenario import Scenario

MAX_PASSES = 200
"""A run of the scope ends or stands still in far fewer."""


@dataclass(frozen=True)
class Evidence:
    """What one choice of scheduling and a look-ahead showed in the scope.

    Attributes:
        interior: the smallest run in which a gather reads a missing feature that is not at the
            boundary; ``None`` where there is none.
        boundary: the smallest in which the drafter reads a missing feature at the boundary.
        stops: the smallest that stands still, or turns in a circle.
    """

    interior: Scenario | None
    boundary: Scenario | None
    stops: Scenario | None


class UnfinishedRunError(RuntimeError):
    """A run neither ended nor came back to a state: the scope says nothing of progress."""


def evidence(scheduling: Scheduling, gather_lookahead: int) -> Evidence:
    """Try every run of the scope.

    Raises:
        UnfinishedRunError: a run took more passes than any should.
    """
    first: dict[str, Scenario] = {}
    for scenario in scope(scheduling.scheduler_lookahead, gather_lookahead):
        for name in _shown(scenario, scheduling):
            first.setdefault(name, scenario)
    return Evidence(first.get("interior"), first.get("boundary"), first.get("stops"))


def _shown(scenario: Scenario, scheduling: Scheduling) -> set[str]:
    rules = replace(scheduling.rules, tolerates_boundary=True, raises_interior=False)
    layout = Layout(scenario.config, scenario.requests, rules)
    shown: set[str] = set()
    seen: set[State] = set()
    for step in run_layout(scenario, layout):
        if not isinstance(step, ModelPass):
            continue
        if step.index > MAX_PASSES:
            raise UnfinishedRunError(f"{scenario} did not end in {MAX_PASSES} passes")
        shown.update(_misses(layout, step.record, step.state))
        if step.state in seen:
            return shown | {"stops"}
        seen.add(step.state)
    return shown


def _misses(layout: Layout, record: PassRecord, state: State) -> Iterator[str]:
    for request, start, num_tokens, *_ in record.scheduled:
        reads = layout.window_reads(request, start, num_tokens)
        if layout.hashes_of(reads.target | reads.interior) & ~state.worker:
            yield "interior"
        if layout.hashes_of(reads.boundary) & ~state.worker:
            yield "boundary"
