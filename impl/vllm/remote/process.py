"""Start a process that holds a vLLM, and ask it one question after the other."""

from __future__ import annotations

import os
import subprocess
import tempfile
import weakref
from typing import IO

from impl.target import AdapterError
from impl.time_limit import TimeLimitError
from impl.vllm.launch.source import Source
from impl.vllm.remote.messages import (
    Answer,
    Asked,
    Begin,
    Failed,
    Load,
    Question,
    Refused,
    question_line,
    read_answer,
)
from impl.vllm.remote.pipes import (
    ClosedError,
    Lines,
    NoAnswerError,
    how_it_ended,
    start_interpreter,
)
from spec.errors import InputError

_SECONDS_TO_END = 5


class RaisedThereError(Exception):
    """The other process raised something that is no observation; the message says what."""


class RemoteProcess:
    """A process that holds one vLLM.

    It ends when this object goes, and when the process that started it ends, however it does. A
    fork of the process that started it has a fork of it, which finds what was loaded and nothing
    that others asked; such forks ask one after the other.

    Args:
        source: a release or a directory.
        scheduler_class: ``package.module:Class`` to use in place of the release's schedulers.

    Raises:
        InputError: the vLLM cannot be loaded.
        NoAnswerError: the process ended or did not answer as it should.
    """

    def __init__(self, source: Source, scheduler_class: str | None = None) -> None:
        self.source = source
        self._load = Load.of(source, scheduler_class)
        self._start()

    def _start(self) -> None:
        self._owner = self._asker = os.getpid()
        self._number = 0
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the process is
        theirs_in, questions = os.pipe()
        answers, theirs_out = os.pipe()
        alive, ours = os.pipe()
        theirs = (theirs_in, theirs_out, alive)
        try:
            self._process = start_interpreter("impl.vllm.remote.child", theirs, self._log)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self._lines = Lines(questions, answers)
        self._end = weakref.finalize(
            self, _end, self._process, (questions, answers, ours), self._log
        )
        self._ask(self._load)

    def _begin(self) -> None:
        """Have what follows answered by a fork, or by a new process where there can be none."""
        self._asker = os.getpid()
        try:
            self._ask(Begin())
        except NoAnswerError:
            self._start()

    def ask(self, question: Question) -> Answer:
        """The answer to a question.

        Raises:
            InputError: the vLLM cannot be asked that.
            AdapterError: what stands between us and the vLLM does not fit it.
            TimeLimitError: it had to be ended.
            RaisedThereError: something else was raised that is no observation.
            NoAnswerError: the process ended, or did not answer as it should.
        """
        if self._asker != os.getpid():
            self._begin()
        return self._ask(question)

    def _ask(self, question: Question) -> Answer:
        if not self._end.alive:
            raise NoAnswerError(f"the process that runs {self.source.name} has been ended")
        self._number += 1
        try:
            self._lines.send(question_line(Asked(self._number, question)))
            answer = read_answer(self._lines.receive(), self._number)
        except NoAnswerError as error:
            why = self._how_it_ended() if isinstance(error, ClosedError) else str(error)
            self._end()
            raise NoAnswerError(
                f"the process that runs {self.source.name} gave no answer: {why}"
            ) from None
        match answer:
            case Refused():
                raise InputError(answer.message)
            case Failed(why="unfit"):
                raise AdapterError(answer.message)
            case Failed(why="endless"):
                raise TimeLimitError(answer.message)
            case Failed():
                raise RaisedThereError(f"{answer.type}: {answer.message}".removesuffix(": "))
        return answer

    def _how_it_ended(self) -> str:
        """How the process ended that closed its pipe, and the last that it printed."""
        code = None
        if self._owner == os.getpid():  # Nobody else can wait for its end.
            try:
                code = self._process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                return "it closed the pipe"
        return how_it_ended(code, self._log)


def _end(process: subprocess.Popen[bytes], descriptors: tuple[int, ...], log: IO[bytes]) -> None:
    process.kill()  # It has nothing to finish.
    process.wait()
    for descriptor in descriptors:
        os.close(descriptor)
    log.close()
