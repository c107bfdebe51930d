"""Prove or refute every claim on the source of one release, on all cores."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from impl.target import RUNNERS
from proofs.jobs.workers import worker_processes
from proofs.smt.solvers import Answer
from proofs.source.answers import Answers, Job, Settled, ask
from proofs.source.ask.piece import RULE, Piece
from proofs.source.ask.reduced import reduced
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import SourceTarget
from proofs.source.functions.book_programs import encoder_decoder_programs, programs
from proofs.source.functions.books import book_pieces, encoder_decoder_pieces
from proofs.source.functions.free import free_pieces, free_rule_piece
from proofs.source.functions.gather_scenario import shapes
from proofs.source.functions.gathers import gather_pieces, tolerance_piece
from proofs.source.functions.ranges import row_range_piece, window_pieces
from proofs.source.passes.run_scenario import FEW_PASSES
from proofs.source.passes.runs import run_pieces, shapes_of_runs
from proofs.source.passes.scheduling import scheduling_pieces, scheduling_shapes
from proofs.source.passes.which_rule import scheduled_inputs_piece
from proofs.symbolic.exploration import Counts
from spec.functions.cases import BookCase, FreeCase, GatherCase, SchedulingCase, WindowCase
from spec.functions.findings import Finding
from spec.record.scenario import Scenario
from spec.verdict import Verdict

MAX_FEATURES = 3


@dataclass(frozen=True)
class SourceResult:
    """A claim, or a rule, on one part of a release, over every shape of input.

    ``finding`` is the smallest counterexample; ``detail`` a formula or the reason for no verdict.
    """

    claim: str
    part: str
    verdict: Verdict
    z3: Answer
    cvc5: Answer
    assumptions: tuple[str, ...]
    shapes: int
    counts: Counts
    resources: int
    milliseconds: float
    detail: str
    finding: Finding | None

    @property
    def is_rule(self) -> bool:
        """Whether this compares code with a rule rather than checking a claim."""
        return self.claim.startswith(RULE)


@dataclass(frozen=True)
class SourceReport:
    """All results on one release.

    Attributes:
        unavailable: parts that the release lacks, and why.
        num_questions: explorations that the results come from.
        num_kept: how many of them an earlier run had settled.
    """

    release: str
    max_features: int
    num_passes: int
    results: tuple[SourceResult, ...]
    unavailable: Mapping[str, str] = field(default_factory=dict)
    num_questions: int = 0
    num_kept: int = 0


def check_source(
    package: Path,
    name: str,
    *,
    changed: Mapping[str, ast.Module] | None = None,
    parts: Sequence[str] | None = None,
    max_features: int = MAX_FEATURES,
    num_passes: int = FEW_PASSES,
    workers: int | None = None,
    answers: Answers | None = None,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> SourceReport:
    """Run every question on a release's source.

    Args:
        changed: syntax trees to use in the place of a module's own, for mutants.
        parts: parts to check; all by default.
        max_features: features at once, 1 to 3.
        num_passes: passes of a whole run, 2 or 3.
        workers: processes; one per core by default.
        answers: those of earlier runs, to be used and added to; every question is asked without.
        advance: called with the jobs done and their total.

    Raises:
        InputError: the folder is not a vLLM package, or its source does not parse.
    """
    release = ReleaseSource(package, OVERRIDES, changed)
    target = SourceTarget(release, name)
    jobs: list[Job] = []
    unavailable: dict[str, str] = {}
    for part, of_part in _jobs_by_part(release, name, max_features, num_passes).items():
        if parts is not None and part not in parts:
            continue
        missing = target.missing(part)  # type: ignore[arg-type]
        if missing is None:
            jobs.extend(of_part)
        else:
            unavailable[part] = missing
    known: list[tuple[Piece, ...] | None] = [
        None if answers is None else answers.find(job, release, name) for job in jobs
    ]
    waiting = [job for job, found in zip(jobs, known, strict=True) if found is None]
    fresh = _map(release, waiting, workers or os.cpu_count() or 1)
    pieces: list[Piece] = []
    for done, (job, found) in enumerate(zip(jobs, known, strict=True), start=1):
        if found is None:
            settled = next(fresh)
            found = settled.pieces
            if answers is not None:
                answers.keep(job, release, name, settled)
        pieces.extend(found)
        advance(done, len(jobs))
    if answers is not None:
        answers.trim()
    return SourceReport(
        name,
        max_features,
        num_passes,
        tuple(_aggregate(pieces, target)),
        unavailable,
        len(jobs),
        len(jobs) - len(waiting),
    )


def pieces_of(
    release: ReleaseSource,
    name: str,
    parts: Sequence[str],
    max_features: int,
    num_passes: int = FEW_PASSES,
    answers: Answers | None = None,
) -> Iterator[Piece]:
    """Settle the questions of some parts one after the other, in this process."""
    for part, jobs in _jobs_by_part(release, name, max_features, num_passes).items():
        for job in jobs if part in parts else ():
            yield from pieces_of_job(job, release, name, answers)


def pieces_of_job(
    job: Job, release: ReleaseSource, name: str, answers: Answers | None = None
) -> tuple[Piece, ...]:
    """Settle a question in this process, unless an earlier run did."""
    found = None if answers is None else answers.find(job, release, name)
    if found is None:
        settled = ask(job, release)
        found = settled.pieces
        if answers is not None:
            answers.keep(job, release, name, settled)
    return found


def _jobs_by_part(
    release: ReleaseSource, name: str, max_features: int, num_passes: int
) -> dict[str, list[Job]]:
    counts = range(1, max_features + 1)
    jobs: dict[str, list[Job]] = {
        "free": [
            free_rule_piece,
            *(partial(free_pieces, name=name, count=count) for count in counts),
        ],
        "window": [partial(window_pieces, name=name, count=count) for count in counts],
        "row_range": [partial(row_range_piece, name=name)],
        "book": [partial(book_pieces, name=name, program=program) for program in programs()],
        "encoder_decoder_book": [
            partial(encoder_decoder_pieces, name=name, program=program)
            for program in encoder_decoder_programs()
        ],
        "scheduling": [
            scheduled_inputs_piece,
            *(
                partial(scheduling_pieces, name=name, shape=shape)
                for shape in scheduling_shapes(release, max_features)
            ),
        ],
        "runs": [
            partial(run_pieces, name=name, shape=shape)
            for shape in shapes_of_runs(release, max_features, num_passes)
        ],
    }
    for runner in RUNNERS:
        jobs[runner] = [
            partial(tolerance_piece, name=name, runner=runner),
            *(
                partial(gather_pieces, name=name, runner=runner, shape=shape)
                for shape in shapes(max_features)
            ),
        ]
    return jobs


def _map(release: ReleaseSource, jobs: Sequence[Job], workers: int) -> Iterator[Settled]:
    """Settle questions side by side, in their order."""
    if workers == 1 or len(jobs) <= 1:
        yield from (ask(job, release) for job in jobs)
        return
    with worker_processes(min(workers, len(jobs))) as pool:
        yield from pool.map(partial(_ask_elsewhere, release.package, release.changed), jobs)


def _ask_elsewhere(package: Path, changed: Mapping[str, ast.Module], job: Job) -> Settled:
    return ask(job, ReleaseSource(package, OVERRIDES, changed) if changed else _unchanged(package))


@cache
def _unchanged(package: Path) -> ReleaseSource:
    # What is parsed and compiled of a release is kept per process: its larger files take a second.
    return ReleaseSource(package, OVERRIDES)


def _aggregate(pieces: Iterable[Piece], target: SourceTarget) -> Iterator[SourceResult]:
    """One result per claim, part and set of assumptions, in the order of first appearance."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[Piece]] = {}
    for piece in pieces:
        groups.setdefault((piece.claim, piece.part, piece.assumptions), []).append(piece)
    for (claim, part, assumptions), group in groups.items():
        worst = _worst(group)
        counts = Counts()
        for piece in group:
            counts.add(piece.counts)
        yield SourceResult(
            claim,
            part,
            worst.verdict,
            worst.z3,
            worst.cvc5,
            assumptions,
            len(group),
            counts,
            sum(piece.resources for piece in group),
            sum(piece.milliseconds for piece in group),
            worst.detail,
            reduced(worst, target),
        )


_WORST_FIRST = (Verdict.ERROR, Verdict.REFUTED, Verdict.UNKNOWN, Verdict.VACUOUS)


def _worst(group: Sequence[Piece]) -> Piece:
    """The piece that decides the group: the first of the worst verdict with the least size."""
    for verdict in _WORST_FIRST:
        found = [piece for piece in group if piece.verdict is verdict]
        if found:
            return min(found, key=_size)
    return group[0]


def _size(piece: Piece) -> tuple[int, int, tuple[int, ...]]:
    """Fewest features or operations first, then the smallest numbers."""
    finding = piece.finding
    if finding is None:
        return (0, 0, piece.size)
    match finding.case:
        case GatherCase(requests=requests):
            return (sum(len(r.features) for r in requests), len(requests), piece.size)
        case FreeCase(features=features) | WindowCase(features=features):
            return (len(features), 0, piece.size)
        case BookCase(operations=operations):
            return (len(operations), 0, piece.size)
        case SchedulingCase(features=features, entries=entries):
            return (len(features), len(entries), piece.size)
        case Scenario(requests=requests):
            return (sum(len(r.features) for r in requests), 0, piece.size)
        case _:
            return (0, 0, piece.size)
