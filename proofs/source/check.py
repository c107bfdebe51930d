"""Prove or refute every claim on the source of one release, on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from impl.vllm.remote.pipes import NoAnswerError
from proofs.smt.solvers import Answer
from proofs.source.answers import Answers, Job, Settled
from proofs.source.ask.piece import RULE, Piece
from proofs.source.ask.reduced import reduced
from proofs.source.code.reads import Read
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import SourceTarget
from proofs.source.elsewhere import NO_MORE, Elsewhere, Limits, OverLimitError
from proofs.source.here import Here
from proofs.source.jobs import (
    MAX_FEATURES,
    Place,
    Scope,
    jobs_by_part,
    misfit,
    unknown,
    words_of,
)
from proofs.source.passes.run_scenario import FEW_PASSES
from proofs.source.passes.runs import judged
from proofs.symbolic.exploration import Counts
from proofs.symbolic.integers import NotModelled
from spec.errors import InputError
from spec.functions.cases import (
    BookCase,
    Case,
    FreeCase,
    GatherCase,
    SchedulingCase,
    WindowCase,
)
from spec.functions.findings import Finding
from spec.functions.observations import Observation, SchedulingObservation
from spec.monitor.functions.scheduled_passes import check_scheduling
from spec.record.scenario import Scenario
from spec.record.steps import Step
from spec.verdict import Verdict


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


class Code(Protocol):
    """Whoever runs a release's code, and judges nothing of what is observed."""

    def settled(self, places: Sequence[Place], workers: int) -> Iterator[Settled | str]:
        """What becomes of questions, in their order; why, where it took more than it may."""

    def watch(self) -> None:
        """From here on note what is read of the release."""

    def reads(self) -> tuple[Read, ...] | None:
        """What was read of the release since it is watched; ``None`` where that was lost."""

    def observe(self, case: Case | SchedulingCase, part: str) -> Observation:
        """What a function, or the scheduling, does with a case."""

    def steps(self, case: Scenario) -> Iterator[Step]:
        """The steps of a whole run."""

    def close(self) -> None:
        """End what runs it."""


def check_source(
    package: Path,
    name: str,
    *,
    parts: Sequence[str] | None = None,
    max_features: int = MAX_FEATURES,
    num_passes: int = FEW_PASSES,
    workers: int | None = None,
    answers: Answers | None = None,
    limits: Limits = NO_MORE,
    here: Here | None = None,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> SourceReport:
    """Run every question on a release's source, in processes of its own.

    Args:
        parts: parts to check; all by default.
        max_features: features at once, 1 to 3.
        num_passes: passes of a whole run, 2 or 3.
        workers: processes; one per core by default.
        answers: those of earlier runs, to be used and added to; every question is asked without.
        limits: what one question may take.
        here: code to run in this process instead, for changes of our own to a release.
        advance: called with the jobs done and their total.

    Raises:
        InputError: the folder is not a vLLM package, or its source does not parse.
        NoAnswerError: a process that runs the code ended, or did not answer as it should.
    """
    release = ReleaseSource(package, OVERRIDES) if here is None else here.release
    scope = Scope(max_features, num_passes)
    jobs: list[tuple[Place, Job]] = []
    unavailable: dict[str, str] = {}
    target = SourceTarget(release, name)
    for part, of_part in jobs_by_part(release, name, scope).items():
        if parts is not None and part not in parts:
            continue
        missing = target.missing(part)  # type: ignore[arg-type]
        if missing is None:
            jobs.extend((Place(part, number), job) for number, job in enumerate(of_part))
        else:
            unavailable[part] = missing
    known = [None if answers is None else answers.find(job, release, name) for _, job in jobs]
    waiting = [place for (place, _), found in zip(jobs, known, strict=True) if found is None]
    code: Code = Elsewhere(package, name, scope, limits) if here is None else here
    pieces: list[Piece] = []
    with closing(code):
        fresh = code.settled(waiting, min(workers or os.cpu_count() or 1, len(waiting)))
        for done, ((_, job), found) in enumerate(zip(jobs, known, strict=True), start=1):
            if found is None:
                settled = _require_fit(job, next(fresh), name)
                found = settled.pieces
                if answers is not None:
                    answers.keep(job, release, name, settled)
            pieces.extend(found)
            advance(done, len(jobs))
        shown = _Shown(code, release, name, answers)
        results = tuple(_aggregate(pieces, shown))
    if answers is not None:
        answers.trim()
    return SourceReport(
        name,
        max_features,
        num_passes,
        results,
        unavailable,
        len(jobs),
        len(jobs) - len(waiting),
    )


def _require_fit(job: Job, came: Settled | str, name: str) -> Settled:
    """What became of a job, or that it is not known, which is not kept.

    Raises:
        NoAnswerError: that cannot be.
    """
    if isinstance(came, str):
        return Settled(unknown(job, came), ())
    why = misfit(job, came.pieces, came.reads, name)
    if why is not None:
        raise NoAnswerError(f"no answer to {words_of(job)}: {why}")
    return came


@dataclass(frozen=True)
class _Shown:
    """Judges what proofs found, by running its case once more; keeps what came of that."""

    code: Code
    release: ReleaseSource
    name: str
    answers: Answers | None

    def finding(self, piece: Piece) -> Finding | None:
        """A piece's finding, with a case as small as leaving parts out makes it.

        Raises:
            NoAnswerError: the case does not show it.
        """
        original = piece.finding
        if original is None:
            return None
        job = (
            f"the smallest case of {original.claim} of {piece.part}, {original.mechanism}: "
            f"{original.case!r}"
        )
        kept = None if self.answers is None else self.answers.find(job, self.release, self.name)
        if kept is not None and len(kept) == 1 and kept[0].finding is not None:
            return kept[0].finding
        self.code.watch()
        found = self._judged(original, piece.part)
        if found is None or found.fingerprint != original.fingerprint:
            raise NoAnswerError(
                f"the proof of {piece.claim} of {piece.part} names a violation that is none when "
                "its case is run once more"
            )
        reads = self.code.reads()
        if self.answers is not None and reads is not None:
            settled = Settled((replace(piece, finding=found),), reads)
            self.answers.keep(job, self.release, self.name, settled)
        return found

    def _judged(self, original: Finding, part: str) -> Finding | None:
        case = original.case
        try:
            case.validate()
        except InputError:
            return None
        if isinstance(case, Scenario):
            with suppress(NotModelled, OverLimitError):
                steps = self.code.steps(case)
                return next(iter(judged(case, steps, original.target, original.claim)), None)
            return None
        if isinstance(case, SchedulingCase):
            seen = self._observed(case, part)
            if not isinstance(seen, SchedulingObservation):
                return None
            all_found = check_scheduling(case, seen, original.target)
            return next((f for f in all_found if f.fingerprint == original.fingerprint), None)
        return reduced(original, case, lambda smaller: self._observed(smaller, part))

    def _observed(self, case: Case | SchedulingCase, part: str) -> Observation | None:
        with suppress(NotModelled, OverLimitError):
            return self.code.observe(case, part)
        return None


def _aggregate(pieces: Iterable[Piece], shown: _Shown) -> Iterator[SourceResult]:
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
            shown.finding(worst),
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
