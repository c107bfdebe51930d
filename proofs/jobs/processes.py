"""Run jobs side by side, each in a process of its own: a process can hold only one vLLM.

Jobs that say what has to be made ready for them share that: each is a fork of the process that did
so. What a job prints is not shown: releases greet and warn as they please. Only the end of it is
told when a process dies without an answer. A job that hangs is ended, one that takes more memory
than it may breaks down, and none outlives this process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from impl.temporary import temporary_folder
from proofs.jobs.warm import Task, WarmUp, fork
from proofs.jobs.workers import WorkerContext, end_with_parent, limit_memory, write_to
from spec.errors import InputError, NoVerdictError, described

if TYPE_CHECKING:
    from proofs.jobs.progress import ReportProgress

ArgumentT = TypeVar("ArgumentT")
AnswerT = TypeVar("AnswerT")

ShouldStop: TypeAlias = Callable[[], bool]
Work: TypeAlias = Callable[[ArgumentT, "ReportProgress", ShouldStop], AnswerT]

_SECONDS_BETWEEN_LOOKS = 0.2
_LONGEST_LAST_WORDS = 300


class JobError(NoVerdictError):
    """A job broke down, was killed or hung, so that nothing is known of what it was about."""


@dataclass(frozen=True)
class Limits:
    """What a job may take.

    Attributes:
        seconds_of_silence: after so long without progress a job is taken to hang. It is far more
            than the longest step takes on a busy machine.
        num_bytes: memory of its own that a job may have; by default what the machine has.
    """

    seconds_of_silence: float = 1800
    num_bytes: int = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


_NO_MORE = Limits()


@dataclass(frozen=True)
class Answer(Generic[AnswerT]):
    """What became of a job.

    Attributes:
        index: its place among the jobs.
        value: what it returned; ``None`` where it did not.
        refused: why its input was wrong, or ``None``.
        failed: why it broke down, or ``None``.
    """

    index: int
    value: AnswerT | None = None
    refused: str | None = None
    failed: str | None = None

    def require(self, name: str) -> AnswerT:
        """What it returned.

        Raises:
            InputError: its input was wrong.
            JobError: it broke down.
        """
        if self.refused is not None:
            raise InputError(f"{name}: {self.refused}")
        if self.value is None:
            raise JobError(f"{name}: {self.failed}")
        return self.value


class _Process(Protocol):
    """A process of its own, or a fork of a warm one."""

    @property
    def exitcode(self) -> int | None: ...

    def join(self) -> None: ...

    def kill(self) -> None: ...


@dataclass
class _Running:
    index: int
    process: _Process
    log: Path
    limits: Limits
    last_sign: float = field(default_factory=time.monotonic)
    activity: str = "starting"

    @property
    def hangs(self) -> bool:
        return time.monotonic() - self.last_sign > self.limits.seconds_of_silence


@dataclass
class _Progress:
    """One bar for all jobs: a hundred steps for each, or the job's own where there is one."""

    names: Sequence[str]
    report: ReportProgress
    shares: dict[int, float] = field(default_factory=dict)

    def tell(self, index: int, activity: str, done: int, total: int) -> None:
        if len(self.names) == 1:
            self.report(activity, done, total)
            return
        self.shares[index] = done / max(1, total)
        steps = int(100 * sum(self.shares.values()))
        self.report(f"{self.names[index]}: {activity}", steps, 100 * len(self.names))


def run_jobs(
    work: Work[ArgumentT, AnswerT],
    arguments: Sequence[ArgumentT],
    names: Sequence[str],
    report_progress: ReportProgress | None = None,
    should_stop: ShouldStop | None = None,
    at_once: int | None = None,
    limits: Limits = _NO_MORE,
    warm_up_of: Callable[[ArgumentT], WarmUp] | None = None,
) -> Iterator[Answer[AnswerT]]:
    """Run a function on each argument; the answers in the order in which they come.

    Args:
        work: a function of a module. It is also given where to tell its progress, and what says
            whether it should stop and return what it has.
        arguments: one for each job.
        names: what each job is called, for the progress bar.
        report_progress: told of the progress of all jobs together.
        should_stop: asked again and again. Once it says yes, no further job starts, and those that
            run are asked to stop.
        at_once: processes at once; as many as the machine has cores by default.
        limits: what each job may take.
        warm_up_of: what is made ready for a job, once for all jobs that say the same; ``None``
            where there is nothing. It has no progress, so that all of it is one silence.
    """
    context = WorkerContext()
    progress = _Progress(names, report_progress or (lambda *_: None))
    limit = at_once or os.cpu_count() or 1
    left = list(range(len(arguments)))
    running: dict[Connection, _Running] = {}
    with temporary_folder("jobs") as folder:
        # A file, since a process that is there already can be handed no event.
        stop = Path(folder) / "stop"
        try:
            while left or running:
                if should_stop is not None and should_stop():
                    stop.touch()
                    left.clear()
                while left and len(running) < limit:
                    index = left.pop(0)
                    log = Path(folder) / str(index)
                    receiver, sender = context.Pipe(duplex=False)
                    argument = arguments[index]
                    task = Task(_serve, (stop, work, argument), log, limits.num_bytes)
                    warm_up = None if warm_up_of is None else warm_up_of(argument)
                    process = _begin(warm_up, sender, task)
                    sender.close()
                    running[receiver] = _Running(index, process, log, limits)
                    progress.tell(index, running[receiver].activity, 0, 1)
                for connection in wait(list(running), _SECONDS_BETWEEN_LOOKS):
                    assert isinstance(connection, Connection)
                    answer = _hear(connection, running[connection], progress)
                    if answer is not None:
                        running.pop(connection).process.join()
                        connection.close()
                        progress.tell(answer.index, "done", 1, 1)
                        yield answer
                for connection in [c for c, job in running.items() if job.hangs]:
                    job = running.pop(connection)
                    job.process.kill()
                    job.process.join()
                    connection.close()
                    yield Answer(job.index, failed=_why_ended(job))
        finally:
            for job in running.values():
                job.process.kill()  # One that hangs might not hear anything milder.
                job.process.join()


def _begin(warm_up: WarmUp | None, connection: Connection, task: Task) -> _Process:
    """Begin a task in a process of its own."""
    if warm_up is not None:
        return fork(warm_up, connection, task)
    process = WorkerContext().Process(target=_alone, args=(connection, task), daemon=True)
    process.start()
    return process


def _why_ended(job: _Running) -> str:
    seconds = f"{job.limits.seconds_of_silence:g} s"
    return f"ended after {seconds} without progress, at: {job.activity}"


def _hear(connection: Connection, job: _Running, progress: _Progress) -> Answer[Any] | None:
    """What a job sent, if that was its answer."""
    try:
        kind, content = connection.recv()
    except EOFError:
        job.process.join()
        return Answer(job.index, failed=f"its process ended early {_how_it_ended(job)}")
    match kind:
        case "progress":
            activity, done, total = content
            job.last_sign = time.monotonic()
            job.activity = f"{activity} ({done} of {total})"
            progress.tell(job.index, *content)
            return None
        case "done":
            return Answer(job.index, value=content)
        case "refused":
            return Answer(job.index, refused=content)
        case _:
            return Answer(job.index, failed=content)


def _how_it_ended(job: _Running) -> str:
    how = f"(exit code {job.process.exitcode})"
    try:
        lines = job.log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return how
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{how}: {last[:_LONGEST_LAST_WORDS]}" if last else how


def _alone(connection: Connection, task: Task) -> None:
    """Do a task in this process, which is there for nothing else."""
    end_with_parent()
    limit_memory(task.num_bytes)
    write_to(task.log)
    task.function(connection, *task.arguments)


def _serve(connection: Connection, stop: Path, work: Work[Any, Any], argument: Any) -> None:
    """Do the work in this process, and send what comes of it."""

    def report_progress(activity: str, done: int, total: int) -> None:
        connection.send(("progress", (activity, done, total)))

    try:
        connection.send(("done", work(argument, report_progress, stop.exists)))
    except InputError as error:
        connection.send(("refused", str(error)))
    except NoVerdictError as error:
        connection.send(("failed", str(error)))
    except Exception as error:
        connection.send(("failed", described(error)))
