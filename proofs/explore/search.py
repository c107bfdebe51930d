"""Exploring a scope: jobs side by side, results that outlive an interruption, and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from impl.targets.runs import ReferenceLoop
from proofs.explore.chunk import (
    ChunkResult,
    Found,
    Job,
    explore_chunk,
    merge,
    num_jobs,
    runner_of,
)
from proofs.explore.scope import scope_named
from proofs.jobs.progress import ReportProgress
from proofs.jobs.workers import worker_processes
from proofs.results.code_digest import code_digest
from spec.errors import InputError
from spec.functions.case_files import write_atomically
from spec.model.claims import CLAIMS
from spec.model.rules import faulty_rules
from spec.monitor.monitor import LoopMonitor
from spec.record.run_findings import LoopFinding
from spec.verdict import Verdict

_MOST_PASSES = 300
"""Passes in which a violation must show when it is replayed."""


@dataclass(frozen=True)
class ExploreSettings:
    """What to explore.

    Attributes:
        fault: the switch whose rules are explored, or ``None`` for the reference.
        claims: ids of the claims to judge; ``None`` for all.
        lockstep: of every so many cases the reference walks one; 0 for none.
        relation: of every so many cases one is laid against the relation that the unbounded proofs
            are about; 0 for none. With a fault, none is: what departs from the reference need not
            lie in it.
        workers: processes.
        resume: folder in which finished jobs are kept, or ``None``.
        jobs: numbers of the jobs; ``None`` for all.
    """

    scope: str = "default"
    fault: str | None = None
    claims: tuple[str, ...] | None = None
    lockstep: int = 1
    relation: int = 1
    workers: int = 2
    resume: Path | None = None
    jobs: tuple[int, ...] | None = None

    def validate(self) -> None:
        """Check that there is something to do.

        Raises:
            InputError: an unknown scope, switch or claim.
        """
        scope_named(self.scope)
        if self.fault is not None:
            faulty_rules(self.fault)
        for claim in self.claims or ():
            if claim not in CLAIMS:
                raise InputError(
                    f"the model does not show claim {claim!r}; it shows: {', '.join(CLAIMS)}"
                )
        if self.workers < 1:
            raise InputError(f"{self.workers} workers do nothing; give at least 1")


@dataclass(frozen=True)
class Confirmed:
    """A violation, replayed on the reference.

    Attributes:
        found: what the model shows.
        finding: what the monitor says about the run of the reference; ``None`` if it does not
            agree.
        passes: passes of that run up to the finding; 0 without one.
    """

    found: Found
    finding: LoopFinding | None
    passes: int


@dataclass(frozen=True)
class ClaimResult:
    """What became of one claim.

    Attributes:
        verdict: ``HELD`` means: in every case of the scope.
        violation: the shortest one, or ``None``.
    """

    claim: str
    verdict: Verdict
    violation: Confirmed | None = None


@dataclass(frozen=True)
class ExploreReport:
    """What was explored and found.

    Attributes:
        whole: all results in one; ``None`` where nothing was explored.
        claims: what became of each claim.
        interrupted: whether it ended before its time.
    """

    settings: ExploreSettings
    whole: ChunkResult | None
    claims: tuple[ClaimResult, ...]
    jobs_done: int
    jobs: int
    interrupted: bool

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts of all claims, and errors.

        It is an error where the reference and the model part, or a round is outside the proofs.
        """
        verdicts = [result.verdict for result in self.claims]
        if self.whole is not None and (self.whole.differences or self.whole.outside):
            verdicts.append(Verdict.ERROR)
        return verdicts


def run_exploration(
    settings: ExploreSettings,
    report_progress: ReportProgress | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda _: None,
) -> ExploreReport:
    """Explore a scope.

    Args:
        interrupted: whether to stop; asked after each job.
        say: is told when finished jobs cannot be used, since other code finished them.

    Raises:
        InputError: the settings name something unknown, or the folder to resume from holds results
            of something else.
    """
    settings.validate()
    numbers = range(num_jobs(settings.scope)) if settings.jobs is None else settings.jobs
    relation = settings.relation if settings.fault is None else 0
    jobs = [Job(settings.scope, settings.fault, n, settings.lockstep, relation) for n in numbers]
    store = _Store(settings.resume)
    results: dict[int, ChunkResult] = store.load(jobs)
    if store.num_of_other_code:
        say(
            f"{settings.resume}: {store.num_of_other_code} jobs were finished by another version "
            "of this program; they are done again"
        )
    rest = [job for job in jobs if job.number not in results]
    for result in _results(rest, settings.workers, interrupted):
        store.save(result)
        results[result.job.number] = result
        if report_progress is not None:
            report_progress("jobs", len(results), len(jobs))
    whole = merge(results[number] for number in sorted(results))
    claims = () if whole is None else tuple(_judge(settings, whole))
    return ExploreReport(settings, whole, claims, len(results), len(jobs), len(results) < len(jobs))


def _results(
    jobs: Sequence[Job], workers: int, interrupted: Callable[[], bool]
) -> Iterator[ChunkResult]:
    """Results as they come, until an interruption; what had begun by then is finished."""
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            if interrupted():
                return
            yield explore_chunk(job)
        return
    waiting = list(reversed(jobs))
    with worker_processes(workers) as pool:
        running: set[Future[ChunkResult]] = set()
        while True:
            while waiting and len(running) < workers + 1 and not interrupted():
                running.add(pool.submit(explore_chunk, waiting.pop()))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


@dataclass(frozen=True)
class _Kept:
    """A finished job as a file holds it.

    Attributes:
        code: digest of the code that finished it.
    """

    code: str
    result: ChunkResult

    __pydantic_config__ = {"extra": "forbid", "strict": True}


class _Store:
    """Finished jobs in a folder, one file each.

    Attributes:
        num_of_other_code: jobs that were found, and that other code had finished.
    """

    def __init__(self, folder: Path | None) -> None:
        self.num_of_other_code = 0
        self._folder = folder
        self._adapter = TypeAdapter(_Kept)
        self._code = code_digest("proofs.explore.chunk")

    def _path(self, number: int) -> Path:
        assert self._folder is not None
        return self._folder / f"job-{number:05}.json"

    def load(self, jobs: Sequence[Job]) -> dict[int, ChunkResult]:
        """The jobs among those given that are done."""
        results: dict[int, ChunkResult] = {}
        if self._folder is None or not self._folder.is_dir():
            return results
        for job in jobs:
            path = self._path(job.number)
            if not path.is_file():
                continue
            try:
                kept = self._adapter.validate_json(path.read_bytes())
            except ValidationError:
                raise InputError(
                    f"{path}: not a finished job of this version; remove it, or give --resume "
                    "another folder"
                ) from None
            if kept.result.job != job:
                raise InputError(
                    f"{path}: {_words(kept.result.job)}; this run is about {_words(job)}. Give "
                    "--resume another folder"
                )
            if kept.code != self._code:
                self.num_of_other_code += 1
                continue
            results[job.number] = kept.result
        return results

    def save(self, result: ChunkResult) -> None:
        """Keep a finished job."""
        if self._folder is not None:
            text = self._adapter.dump_json(_Kept(self._code, result)).decode()
            write_atomically(self._path(result.job.number), text + "\n")


def _words(job: Job) -> str:
    """A job as a person names it."""
    what = "the reference" if job.fault is None else f"fault {job.fault}"
    return (
        f"job {job.number} of scope {job.scope}, {what}, with --lockstep {job.lockstep} and "
        f"--relation {job.relation}"
    )


def _judge(settings: ExploreSettings, whole: ChunkResult) -> Iterator[ClaimResult]:
    for claim in CLAIMS:
        if settings.claims is not None and claim not in settings.claims:
            continue
        found = whole.found.get(claim)
        if found is not None:
            confirmed = confirm(found, settings.fault)
            refuted = confirmed.finding is not None
            yield ClaimResult(claim, Verdict.REFUTED if refuted else Verdict.ERROR, confirmed)
        elif claim in whole.premises:
            yield ClaimResult(claim, Verdict.HELD)
        else:
            yield ClaimResult(claim, Verdict.VACUOUS)


def confirm(found: Found, fault: str | None) -> Confirmed:
    """Replay a violation on the reference with the same fault, and let the monitor judge it."""
    runner = runner_of(fault)
    target = ReferenceLoop(() if fault is None else (fault,))
    monitor = LoopMonitor(found.scenario, runner)
    passes = 0
    for step in target.run(found.scenario, runner):
        passes += step.kind == "pass"
        for finding in monitor.observe(step):
            if finding.claim == found.claim:
                return Confirmed(found, finding, passes + (step.kind == "event"))
        if passes == _MOST_PASSES or step.error is not None:
            return Confirmed(found, None, 0)
    for finding in monitor.finish("idle"):
        if finding.claim == found.claim:
            return Confirmed(found, finding, passes)
    return Confirmed(found, None, 0)
