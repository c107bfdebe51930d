"""A release's source, run in processes of its own, which answer in lines of JSON.

Whoever asks reads the release too, and runs nothing of it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from impl.vllm.remote.messages import BookSeen, FreeSeen, GatherSeen, RangeSeen
from impl.vllm.remote.pipes import (
    ClosedError,
    Lines,
    NoAnswerError,
    SilentError,
    how_it_ended,
    last_words,
    start_interpreter,
)
from proofs.source.answers import Settled
from proofs.source.code.reads import Read
from proofs.source.host import DESCRIPTORS, MOST_BYTES
from proofs.source.jobs import Place, Scope
from proofs.source.messages import (
    Asked,
    Came,
    Done,
    Failed,
    NotKnown,
    Observe,
    Open,
    OutOfMemory,
    Question,
    Refused,
    Rules,
    RunSeen,
    SchedulingSeen,
    Settle,
    WasRead,
    Watch,
    WhatWasRead,
    WhichRules,
    question_line,
    read_answer,
)
from proofs.symbolic.integers import NotModelled
from spec.errors import InputError
from spec.functions.cases import (
    BookCase,
    Case,
    FreeCase,
    GatherCase,
    RowRangeCase,
    SchedulingCase,
    WindowCase,
)
from spec.functions.observations import Observation
from spec.record.consistency import StepChecker
from spec.record.scenario import Scenario
from spec.record.steps import Step
from spec.rules.releases import NEWEST, ReadRules, rules_of

AnswerT = TypeVar("AnswerT")

_SEEN: Mapping[type, type] = {
    GatherCase: GatherSeen,
    FreeCase: FreeSeen,
    BookCase: BookSeen,
    WindowCase: RangeSeen,
    RowRangeCase: RangeSeen,
    SchedulingCase: SchedulingSeen,
}
"""By kind of a case, the answer that tells what was seen."""


@dataclass(frozen=True)
class Limits:
    """What one question may take.

    Attributes:
        seconds: of computing; many times what the longest takes.
        seconds_of_silence: by the clock, for code that waits without computing.
        num_bytes: memory of its own that a process may have; by default what the machine has.
    """

    seconds: int = 1200
    seconds_of_silence: float = 3600
    num_bytes: int = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


NO_MORE = Limits()


class OverLimitError(NoAnswerError):
    """A question took more than it may; the message says of what."""


class _Host:
    """The process that forks, as its parent sees it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._line = ours
        self.killed: list[int] = []
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the process is
        with theirs:
            process = start_interpreter("proofs.source.host", (theirs.fileno(),), self._log)
        self._end = weakref.finalize(self, _end_host, process, ours)

    def fork(self, descriptors: Sequence[int]) -> int:
        """The number of a new process that has these descriptors."""
        assert len(descriptors) == DESCRIPTORS
        self.wait()
        with suppress(OSError):
            socket.send_fds(self._line, [b"null"], list(descriptors))
        return self._answer()

    def wait(self) -> None:
        """Wait for the end of those that were killed."""
        while self.killed:
            self.exit_code(self.killed.pop())

    def exit_code(self, process: int) -> int:
        """The exit code of such a process, once it has ended; asked once, its number goes then."""
        with suppress(OSError):
            self._line.sendall(json.dumps(process).encode())
        return self._answer()

    def _answer(self) -> int:
        # It runs nothing of a release, so that what it says is so.
        answer = self._line.recv(MOST_BYTES)
        if not answer:
            _hosts.clear()
            words = f"the process that reads sources ended early: {last_words(self._log)}"
            raise NoAnswerError(words.removesuffix(": "))
        number: int = json.loads(answer)
        return number


def _end_host(process: subprocess.Popen[bytes], line: socket.socket) -> None:
    line.close()
    process.kill()
    process.wait()


_hosts: dict[int, _Host] = {}
"""That of this process, by its number: a fork of it needs another."""


def _host() -> _Host:
    process = os.getpid()
    if process not in _hosts:
        _hosts.clear()
        _hosts[process] = _Host()
    return _hosts[process]


class _Worker:
    """A process that runs one release's source.

    Raises:
        InputError: the release cannot be read.
        NoAnswerError: the process ended, or did not answer as it should.
    """

    def __init__(self, package: Path, name: str, scope: Scope, limits: Limits) -> None:
        self._name = name
        self._limits = limits
        self._number = 0
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the process is
        theirs_in, questions = os.pipe()
        answers, theirs_out = os.pipe()
        self._host = _host()
        try:
            self._process = self._host.fork((theirs_in, theirs_out, self._log.fileno()))
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self._pipes = (questions, answers)
        self._lines = Lines(questions, answers)
        self._end = weakref.finalize(self, _end_worker, self._host, self._process, self._pipes)
        self.ask(Open(str(package), name, scope, limits.num_bytes), Done)

    def fileno(self) -> int:
        """Where its answers come in."""
        return self._lines.fileno()

    def begin(self, question: Question) -> None:
        """Ask without waiting for the answer."""
        self._number += 1
        self._asked_at = time.monotonic()
        with suppress(ClosedError):  # Its answer will be missing, too.
            self._lines.send(question_line(Asked(self._number, question)))

    @property
    def seconds_left(self) -> float:
        """For the answer, by the clock."""
        return max(0.0, self._asked_at + self._limits.seconds_of_silence - time.monotonic())

    def hear(self, kind: type[AnswerT]) -> AnswerT:
        """The answer to what was asked last.

        Raises:
            InputError: the release cannot be read.
            NotModelled: the code does something that is not modelled.
            OverLimitError: it took more than it may; the process has ended.
            NoAnswerError: the process ended, or did not answer as it should.
        """
        try:
            answer = read_answer(self._lines.receive(self.seconds_left), self._number)
        except SilentError:
            self.end()
            seconds = f"{self._limits.seconds_of_silence:g} s"
            raise OverLimitError(f"no answer for {seconds}") from None
        except ClosedError:
            raise self._ended() from None
        except NoAnswerError as error:
            self.end()
            raise self._no_answer(str(error)) from None
        match answer:
            case Refused():
                raise InputError(answer.message)
            case NotKnown():
                raise NotModelled(answer.message)
            case OutOfMemory():
                self.end()
                raise OverLimitError("out of memory")
            case Failed():
                raise self._no_answer(answer.message)
        if not isinstance(answer, kind):
            self.end()
            raise self._no_answer(f"it answered {answer.kind!r}")
        return answer

    def ask(self, question: Question, kind: type[AnswerT]) -> AnswerT:
        """The answer to a question; raises as :meth:`hear`."""
        self.begin(question)
        return self.hear(kind)

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._end.alive

    def end(self) -> None:
        """End the process."""
        self._end()

    def _ended(self) -> NoAnswerError:
        code = self._host.exit_code(self._process)
        self._end.detach()
        for descriptor in self._pipes:
            os.close(descriptor)
        if code == -signal.SIGXCPU:
            return OverLimitError(f"no end after {self._limits.seconds} s of computing")
        return self._no_answer(how_it_ended(code, self._log))

    def _no_answer(self, why: str) -> NoAnswerError:
        return NoAnswerError(f"the process that runs the source of {self._name}: {why}")


def _end_worker(host: _Host, process: int, descriptors: tuple[int, ...]) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)  # It has nothing to finish.
    for descriptor in descriptors:
        os.close(descriptor)
    host.killed.append(process)  # To ask the host may not be the moment: see weakref.


class Elsewhere:
    """A release's source in other processes, which begin when they are needed.

    Args:
        package: the folder ``vllm``.
        name: for reports.
    """

    def __init__(self, package: Path, name: str, scope: Scope, limits: Limits = NO_MORE) -> None:
        self._package = package
        self._name = name
        self._scope = scope
        self._limits = limits
        self._at_rest: list[_Worker] = []
        self._watched: _Worker | None = None

    def settled(self, places: Sequence[Place], workers: int) -> Iterator[Settled | str]:
        """What becomes of questions, in their order; why, where it took more than it may.

        Args:
            workers: processes at once.

        Raises:
            InputError: the release cannot be read.
            NoAnswerError: a process ended, or did not answer as it should.
        """
        left = iter(enumerate(places))
        at_work: dict[_Worker, int] = {}
        done: dict[int, Settled | str] = {}
        try:
            for index in range(len(places)):
                while index not in done:
                    while len(at_work) < workers and (following := next(left, None)) is not None:
                        worker = self._worker()
                        worker.begin(Settle(following[1], self._limits.seconds))
                        at_work[worker] = following[0]
                    for worker in _next_of(at_work):
                        done[at_work.pop(worker)] = self._hear(worker)
                yield done.pop(index)
        finally:
            for worker in at_work:
                worker.end()

    def _hear(self, worker: _Worker) -> Settled | str:
        try:
            came = worker.hear(Came)
        except OverLimitError as error:
            return str(error)
        except NotModelled as error:
            self._at_rest.append(worker)
            return f"not modelled: {error}"
        self._at_rest.append(worker)
        return came.settled

    def _worker(self) -> _Worker:
        if self._at_rest:
            return self._at_rest.pop()
        return _Worker(self._package, self._name, self._scope, self._limits)

    def _ask(self, question: Question, kind: type[AnswerT]) -> AnswerT:
        worker = self._worker()
        try:
            return worker.ask(question, kind)
        finally:
            if worker.is_alive:
                self._at_rest.append(worker)

    def watch(self) -> None:
        """From here on note what is read of the release."""
        self._ask(Watch(), Done)
        self._watched = self._at_rest[-1]

    def reads(self) -> tuple[Read, ...] | None:
        """What was read of the release since it is watched; ``None`` where that was lost."""
        if self._watched is None or not self._watched.is_alive:
            return None
        return self._ask(WhatWasRead(), WasRead).reads

    def observe(self, case: Case | SchedulingCase, part: str) -> Observation:
        """What a function, or the scheduling, does with a case; it judges nothing.

        Raises:
            NotModelled: the code uses something that is not modelled.
            OverLimitError: it takes more than it may.
        """
        seen: Any = self._ask(Observe(case, part, self._limits.seconds), _SEEN[type(case)])
        observation: Observation = seen.seen
        return observation

    def steps(self, case: Scenario) -> Iterator[Step]:
        """The steps of a whole run; raises as :meth:`observe` behind those that are known."""
        seen = self._ask(Observe(case, "", self._limits.seconds), RunSeen)
        checker = StepChecker(case)
        for place, step in enumerate(seen.steps):
            try:
                checker.check(step, f"step {place}")
            except InputError as error:
                raise NoAnswerError(f"{self._name} cannot have done that: {error}") from None
            yield step
        if seen.not_modelled is not None:
            raise NotModelled(seen.not_modelled)

    def rules(self) -> ReadRules:
        """By what rules it schedules, as far as they can be proved."""
        try:
            return self._ask(WhichRules(self._limits.seconds), Rules).rules
        except OverLimitError as error:
            return ReadRules(rules_of(NEWEST), (f"how {self._name} schedules: {error}",))

    def close(self) -> None:
        """End its processes."""
        for worker in self._at_rest:
            worker.end()
        self._at_rest.clear()
        host = _hosts.get(os.getpid())
        if host is not None:
            with suppress(NoAnswerError):  # It has ended, and they with it.
                host.wait()


def _next_of(at_work: Mapping[_Worker, int]) -> list[_Worker]:
    """Those that have answered, once one has, and those that may wait no longer."""
    seconds = min(worker.seconds_left for worker in at_work)
    ready, _, _ = select.select(list(at_work), [], [], seconds)
    return [worker for worker in at_work if worker in ready or not worker.seconds_left]
