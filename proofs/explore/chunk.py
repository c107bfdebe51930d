"""A part of a scope: the cases that one job explores, and what it found."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache

from impl.faults import BY_NAME
from impl.reference.loop_target import ReferenceLoop
from impl.target import Runner
from proofs.explore.graph import Graph, explore
from proofs.explore.lockstep import Difference, walk
from proofs.explore.paths import scenario_of, shortened
from proofs.explore.scope import Case, cases, scope_named
from proofs.search.loop.size import Size, size
from spec.loop.scenario import Scenario
from spec.model.claims import NEEDS_SHIFT, claim_names
from spec.model.layout import Layout
from spec.model.variant import REFERENCE, VARIANTS

CHUNK = 100
"""Cases of a job."""

CALLS_EVERY = 8
"""Of so many cases that the reference walks, its calls of the book are compared in one."""

RELATION_EVERY = 64
"""Of so many of them, its runs must lie in the relation of the unbounded proofs in one."""

_STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True)
class Job:
    """What one job explores.

    Attributes:
        scope: name of the scope.
        fault: the switch, or ``None``.
        number: number of the job, from 0.
        lockstep: of every so many cases the reference walks one; 0 for none.
    """

    scope: str
    fault: str | None
    number: int
    lockstep: int

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

    def add(self, other: Counts) -> None:
        """Add the counts of other cases."""
        self.cases += other.cases
        self.states += other.states
        self.edges += other.edges
        self.transitions += other.transitions
        self.depth = max(self.depth, other.depth)


@dataclass(frozen=True)
class Found:
    """A violation.

    Attributes:
        claim: id of the claim.
        passes: passes up to and with the one in which it shows.
        scenario: what was chosen.
        cases: in how many cases the claim was broken.
    """

    claim: str
    passes: int
    scenario: Scenario
    cases: int

    __pydantic_config__ = _STRICT

    def merged(self, other: Found) -> Found:
        """The shorter one of two violations of one claim; of equals the smaller."""
        return replace(min(self, other, key=_order), cases=self.cases + other.cases)


def _order(found: Found) -> tuple[int, Size]:
    return found.passes, size(found.scenario)


@dataclass
class Walked:
    """What the reference walked: cases, runs, steps of them, and edges.

    Of ``related`` edges it was checked that they lie in the relation of the unbounded proofs.
    """

    cases: int = 0
    runs: int = 0
    steps: int = 0
    edges: int = 0
    related: int = 0

    __pydantic_config__ = _STRICT

    def add(self, other: Walked) -> None:
        """Add what was walked elsewhere."""
        self.cases += other.cases
        self.runs += other.runs
        self.steps += other.steps
        self.edges += other.edges
        self.related += other.related


@dataclass
class ChunkResult:
    """What a job found.

    Attributes:
        job: what it explored.
        rows: counts by row of the configuration.
        premises: claims whose premise happened.
        found: the shortest violation of each claim.
        walked: what the reference walked.
        differences: where it and the model part.
        seconds: CPU seconds that the model took, claims included.
    """

    job: Job
    rows: dict[int, Counts] = field(default_factory=dict)
    premises: tuple[str, ...] = ()
    found: dict[str, Found] = field(default_factory=dict)
    walked: Walked = field(default_factory=Walked)
    differences: tuple[Difference, ...] = ()
    seconds: float = 0.0

    __pydantic_config__ = _STRICT


def num_jobs(scope: str) -> int:
    """How many jobs a scope makes."""
    return -(-len(cases(scope_named(scope))) // CHUNK)


def explore_chunk(job: Job) -> ChunkResult:
    """Explore the cases of a job."""
    variant = REFERENCE if job.fault is None else VARIANTS[job.fault]
    result = ChunkResult(job)
    all_cases = cases(scope_named(job.scope))
    premises = 0
    first = job.number * CHUNK
    for number in range(first, min(first + CHUNK, len(all_cases))):
        case = all_cases[number]
        began = time.process_time()
        layout = Layout(case.config, case.requests, variant)
        graph = explore(layout, case.choices)
        result.seconds += time.process_time() - began
        counts = Counts(1, len(graph.nodes), len(graph.edges), graph.transitions, graph.depth)
        result.rows.setdefault(case.row, Counts()).add(counts)
        premises |= judged(case, graph.premises)
        _note_broken(result, case, layout, graph)
        if job.lockstep and number % job.lockstep == 0:
            _walk(result, number // job.lockstep, case, layout, graph)
    result.premises = tuple(claim_names(premises))
    return result


def _walk(result: ChunkResult, number: int, case: Case, layout: Layout, graph: Graph) -> None:
    """Let the reference walk a case; ``number`` counts the cases that it walks."""
    fault = result.job.fault
    # What departs from the reference need not lie in the relation.
    check_relation = fault is None and number % RELATION_EVERY == 0
    walked = walk(
        case,
        layout,
        graph,
        _reference(fault),
        runner_of(fault),
        record_calls=number % CALLS_EVERY == 0,
        check_relation=check_relation,
    )
    related = walked.edges if check_relation else 0
    result.walked.add(Walked(1, walked.runs, walked.steps, walked.edges, related))
    if walked.difference is not None:
        result.differences += (walked.difference,)


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
    for claims, edge in graph.broken.items():
        if not judged(case, claims):
            continue
        (claim,) = claim_names(claims)
        passes = graph.depths[graph.edges[edge][0]] + 1
        known = result.found.get(claim)
        if known is not None and known.passes < passes:
            result.found[claim] = replace(known, cases=known.cases + 1)
            continue
        path = graph.path(edge)
        scenario = shortened(scenario_of(case, layout, path), path)
        found = Found(claim, passes, scenario, 1)
        result.found[claim] = found if known is None else known.merged(found)


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
            known = whole.found.get(claim)
            whole.found[claim] = found if known is None else known.merged(found)
        whole.walked.add(result.walked)
        whole.differences += result.differences
        whole.seconds += result.seconds
    return whole
