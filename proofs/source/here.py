"""A release's source, run in this process: for releases that we changed ourselves, and know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proofs.source.answers import Answers, Job, Settled, ask
from proofs.source.ask.piece import Piece
from proofs.source.code.reads import Read, Reads
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_setup import RunCode
from proofs.source.jobs import Place, Scope, jobs_by_part
from proofs.source.observe import observed
from proofs.source.passes.runs import run_plain
from spec.functions.cases import Case, SchedulingCase
from spec.functions.observations import Observation
from spec.record.scenario import Scenario
from spec.record.steps import Step


class Here:
    """Answers as :class:`proofs.source.elsewhere.Elsewhere` does."""

    def __init__(self, release: ReleaseSource, name: str, scope: Scope) -> None:
        self.release = release
        self._name = name
        self._jobs = jobs_by_part(release, name, scope)
        self._reads = Reads()
        self._watched = release

    def settled(self, places: Sequence[Place], workers: int) -> Iterator[Settled | str]:
        """What becomes of questions, one after the other."""
        del workers
        return (ask(self._jobs[place.part][place.number], self.release) for place in places)

    def watch(self) -> None:
        """From here on note what is read of the release."""
        self._reads = Reads()
        self._watched = self.release.watched(self._reads)

    def reads(self) -> tuple[Read, ...]:
        """What was read of the release since it is watched."""
        return self._reads.listed

    def observe(self, case: Case | SchedulingCase, part: str) -> Observation:
        """What a function, or the scheduling, does with a case."""
        return observed(self._watched, self._name, case, part)

    def steps(self, case: Scenario) -> Iterator[Step]:
        """The steps of a whole run."""
        return run_plain(RunCode(self._watched), case)

    def close(self) -> None:
        """Nothing else runs it."""


def pieces_of(
    release: ReleaseSource,
    name: str,
    parts: Sequence[str],
    scope: Scope,
    answers: Answers | None = None,
) -> Iterator[Piece]:
    """Settle the questions of some parts one after the other."""
    for part, jobs in jobs_by_part(release, name, scope).items():
        for job in jobs if part in parts else ():
            yield from pieces_of_job(job, release, name, answers)


def pieces_of_job(
    job: Job, release: ReleaseSource, name: str, answers: Answers | None = None
) -> tuple[Piece, ...]:
    """Settle a question, unless an earlier run did."""
    found = None if answers is None else answers.find(job, release, name)
    if found is None:
        settled = ask(job, release)
        found = settled.pieces
        if answers is not None:
            answers.keep(job, release, name, settled)
    return found
