"""A part of a scope: the cases that one job explores, and what it found."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache

from impl.faults.switches import BY_NAME
from impl.target import Runner
from impl.targets.runs import ReferenceLoop
from proofs.explore.case import Case
from proofs.explore.graph import Graph, explore
from proofs.explore.lockstep import Difference, walk
from proofs.explore.paths import scenario_of, shortened
from proofs.explore.related import first_outside
from proofs.explore.scope import cases, scope_named
from proofs.search.runs.reduce import Size, size
from spec.model.claims import NEEDS_SHIFT, claim_names
from spec.model.layout import Layout
from spec.model.rules import FAULTY_RULES, REFERENCE
from spec.record.scenario import Scenario
from spec.relation.runs.projection import Moves

CHUNK = 100
"""Cases of a job."""

CALLS_EVERY = 8
"""Of so many cases that the reference walks, its calls of the book are compared in one."""

_STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True)
class Job:
    """What one job explores.

    Attributes:
        fault: the switch, or ``None``.
        number: number of the job, from 0.
        lockstep: of every so many cases the reference walks one; 0 for none.
        relation: of every so many cases one is laid against the relation of the proofs; 0 for none.
    """

    scope: str
    fault: str | None
    number: int
    lockstep: int
    relation: int

    __pydantic_config__ = _STRICT


@dataclass
class Counts:
    """Sizes of graphs; ``depth`` is the greatest, the others are sums."""

    cases: int = 0
    states: int = 0
    edges: int = 0
    transitions: int = 0
    depth: int = 0

    __pydantic_config__ = _STRICT

    def add(self, more: Counts) -> None:
        """Add the counts of other cases."""
        self.cases += more.cases
        self.states += more.states
        self.edges += more.edges
        self.transitions += more.transitions
        self.depth = max(self.depth, more.depth)


@dataclass(frozen=True)
class Found:
    """A violation.

    Attributes:
        passes: passes up to and with the one in which it shows.
        cases: in how many cases the claim was broken.
    """

    claim: str
    passes: int
    scenario: Scenario
    cases: int

    __pydantic_config__ = _STRICT

    def merged(self, violation: Found) -> Found:
        """The shorter one of two violations of one claim; of equals the smaller."""
        return replace(min(self, violation, key=_order), cases=self.cases + violation.cases)


def _order(found: Found) -> tuple[int, Size]:
    return found.passes, size(found.scenario)


@dataclass
class Walked:
    """What the reference walked: cases, runs, steps of them, and edges."""

    cases: int = 0
    runs: int = 0
    steps: int = 0
    edges: int = 0

    __pydantic_config__ = _STRICT

    def add(self, more: Walked) -> None:
        """Add what was walked elsewhere."""
        self.cases += more.cases
        self.runs += more.runs
        self.steps += more.steps
        self.edges += more.edges


@dataclass
class ChunkResult:
    """What a job found.

    Attributes:
        rows: counts by row of the configuration.
        premises: claims whose premise happened.
        found: the shortest violation of each claim.
        walked: what the reference walked.
        differences: where it and the model part.
        related: edges that were laid against the relation of the unbounded proofs.
        outside: those that are not in it, one of each case.
        seconds: CPU seconds that the model took, claims included.
    """

    job: Job
    rows: dict[int, Counts] = field(default_factory=dict)
    premises: tuple[str, ...] = ()
    found: dict[str, Found] = field(default_factory=dict)
    walked: Walked = field(default_factory=Walked)
    differences: tuple[Difference, ...] = ()
    related: int = 0
    outside: tuple[Difference, ...] = ()
    seconds: float = 0.0

    __pydantic_config__ = _STRICT


def num_jobs(scope: str) -> int:
    """How many jobs a scope makes."""
    return -(-len(cases(scope_named(scope))) // CHUNK)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let the search for garbage in circles wait: graphs make none, and it goes over all of them.

    That takes a seventh of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def explore_chunk(job: Job) -> ChunkResult:
    """Explore the cases of a job."""
    with _uncollected():
        return _explored(job)


def _explored(job: Job) -> ChunkResult:
    rules = REFERENCE if job.fault is None else FAULTY_RULES[job.fault]
    result = ChunkResult(job)
    all_cases = cases(scope_named(job.scope))
    premises, moves = 0, Moves()
    first = job.number * CHUNK
    for number in range(first, min(first + CHUNK, len(all_cases))):
        case = all_cases[number]
        began = time.process_time()
        layout = Layout(case.config, case.requests, rules)
        graph = explore(layout, case.choices)
        result.seconds += time.process_time() - began
        counts = Counts(1, len(graph.nodes), len(graph.edges), graph.transitions, graph.depth)
        result.rows.setdefault(case.row, Counts()).add(counts)
        premises |= judged(case, graph.premises)
        _note_broken(result, case, layout, graph)
        if job.lockstep and number % job.lockstep == 0:
            _walk(result, number // job.lockstep, case, layout, graph)
        if job.relation and number % job.relation == 0:
            _relate(result, case, layout, graph, moves)
    result.premises = tuple(claim_names(premises))
    return result


def _walk(result: ChunkResult, number: int, case: Case, layout: Layout, graph: Graph) -> None:
    """Let the reference walk a case; ``number`` counts the cases that it walks."""
    fault = result.job.fault
    walked = walk(
        case,
        layout,
        graph,
        _reference(fault),
        runner_of(fault),
        record_calls=number % CALLS_EVERY == 0,
    )
    result.walked.add(Walked(1, walked.runs, walked.steps, walked.edges))
    if walked.difference is not None:
        result.differences += (walked.difference,)


def _relate(result: ChunkResult, case: Case, layout: Layout, graph: Graph, moves: Moves) -> None:
    """Lay every edge of a case against the relation."""
    result.related += len(graph.edges)
    outside = first_outside(case.scenario, layout, graph, moves)
    if outside is not None:
        path = graph.path(outside.edge)
        scenario = shortened(scenario_of(case, layout, path), path)
        result.outside += (Difference(scenario, outside.step, outside.what),)


def judged(case: Case, claims: int) -> int:
    """Those of some claims whose assumptions a case keeps."""
    if case.config.scheduler_lookahead < case.config.gather_lookahead:
        return claims & ~NEEDS_SHIFT
    return claims


@cache
def _reference(fault: str | None) -> ReferenceLoop:
    return ReferenceLoop(() if fault is None else (fault,))


def runner_of(fault: str | None) -> Runner:
    """The runner that shows a fault."""
    return "V1" if fault is None else BY_NAME[fault].runner or "V1"


def _note_broken(result: ChunkResult, case: Case, layout: Layout, graph: Graph) -> None:
    for found in broken_in(case, layout, graph):
        earlier = result.found.get(found.claim)
        result.found[found.claim] = found if earlier is None else earlier.merged(found)


def broken_in(case: Case, layout: Layout, graph: Graph) -> Iterator[Found]:
    """A shortest violation of each claim that a graph breaks."""
    for claims, edge in graph.broken.items():
        if judged(case, claims):
            (claim,) = claim_names(claims)
            path = graph.path(edge)
            scenario = shortened(scenario_of(case, layout, path), path)
            yield Found(claim, len(path), scenario, 1)


def merge(results: Iterable[ChunkResult]) -> ChunkResult | None:
    """All results in one, under the first job's name; ``None`` for no results."""
    whole: ChunkResult | None = None
    for result in results:
        if whole is None:
            whole = ChunkResult(result.job)
        for row, counts in result.rows.items():
            whole.rows.setdefault(row, Counts()).add(counts)
        whole.premises = tuple(dict.fromkeys((*whole.premises, *result.premises)))
        for claim, found in result.found.items():
            earlier = whole.found.get(claim)
            whole.found[claim] = found if earlier is None else earlier.merged(found)
        whole.walked.add(result.walked)
        whole.differences += result.differences
        whole.related += result.related
        whole.outside += result.outside
        whole.seconds += result.seconds
    return whole
