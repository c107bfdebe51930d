"""Start a process that holds a vLLM, and ask it one question after the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from typing import IO

from impl.target import AdapterError
from impl.time_limit import TimeLimitError
from impl.vllm.launch.source import Source
from impl.vllm.remote.messages import (
    MOST_BYTES,
    Answer,
    Asked,
    Begin,
    Failed,
    Load,
    NoAnswerError,
    Question,
    Refused,
    question_line,
    read_answer,
)
from spec.errors import InputError

_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from impl.vllm.remote.child import main
main(*map(int, sys.argv[2:]))
"""

_NOT_PASSED_ON = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT")
"""Variables that let others' code into an interpreter as it starts; it is given the path here."""

_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Libraries of numbers start their threads when they are imported, and a fork lacks them."""

_LONGEST_LAST_WORDS = 300
_BYTES_OF_LAST_WORDS = 4096
_SECONDS_TO_END = 5
_AT_ONCE = 1 << 16


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
        self._load = Load(
            source.name,
            str(source.root),
            str(source.package),
            source.release,
            source.digest,
            scheduler_class,
        )
        self._start()

    def _start(self) -> None:
        self._owner = self._asker = os.getpid()
        self._number = 0
        self._buffer = bytearray()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the process is
        theirs_in, self._questions = os.pipe()
        self._answers, theirs_out = os.pipe()
        alive, ours = os.pipe()
        theirs = (theirs_in, theirs_out, alive)
        try:
            self._process = _start(theirs, self._log)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self._end = weakref.finalize(
            self, _end, self._process, (self._questions, self._answers, ours), self._log
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
            self._send(question_line(Asked(self._number, question)))
            answer = read_answer(self._line(), self._number)
        except NoAnswerError as error:
            self._end()
            raise NoAnswerError(
                f"the process that runs {self.source.name} gave no answer: {error}"
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

    def _send(self, line: bytes) -> None:
        left = memoryview(line)
        try:
            while left:
                left = left[os.write(self._questions, left) :]
        except BrokenPipeError:  # Of our own output it would be the end of the command.
            raise NoAnswerError(self._how_it_ended()) from None

    def _line(self) -> bytes:
        """The next line, without its end.

        Raises:
            NoAnswerError: none comes, one that is too long, or more than one.
        """
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MOST_BYTES:
                raise NoAnswerError(f"it is longer than {MOST_BYTES} bytes")
            read = os.read(self._answers, _AT_ONCE)
            if not read:
                raise NoAnswerError(self._how_it_ended())
            self._buffer += read
        if end + 1 < len(self._buffer):
            raise NoAnswerError("it sent more than was asked for")
        line = bytes(self._buffer[:end])
        self._buffer.clear()
        return line

    def _how_it_ended(self) -> str:
        """How the process ended that closed its pipe, and the last that it printed."""
        how = "it ended early"
        if self._owner == os.getpid():  # Nobody else can wait for its end.
            try:
                how += f" (exit code {self._process.wait(_SECONDS_TO_END)})"
            except subprocess.TimeoutExpired:
                return "it closed the pipe"
        size = os.fstat(self._log.fileno()).st_size
        start = max(0, size - _BYTES_OF_LAST_WORDS)
        text = os.pread(self._log.fileno(), _BYTES_OF_LAST_WORDS, start).decode(errors="replace")
        last = next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")
        return f"{how}: {last[:_LONGEST_LAST_WORDS]}" if last else how


def _start(theirs: tuple[int, ...], log: IO[bytes]) -> subprocess.Popen[bytes]:
    arguments = [json.dumps(sys.path), *map(str, theirs), str(os.getpid())]
    environment = {name: os.environ[name] for name in os.environ if name not in _NOT_PASSED_ON}
    environment |= _ONE_THREAD
    # A terminal sends Ctrl-C to all processes, and only the one that asks may answer to it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=theirs,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(process: subprocess.Popen[bytes], descriptors: tuple[int, ...], log: IO[bytes]) -> None:
    process.kill()  # It has nothing to finish.
    process.wait()
    for descriptor in descriptors:
        os.close(descriptor)
    log.close()
