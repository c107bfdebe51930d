"""Two processes that ask and answer by lines: what holds for every line, whatever it is about.

An answer comes from a process in which a stranger's code runs. It is read by its schema, and has to
be the very text that we would write for what was read: so no key stands twice, no field is unknown
or left out, and nothing that is no number passes for one. What the fields say may still be a lie.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import IO, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from spec.errors import NoVerdictError
from spec.record.json_document import first_error

MOST_BYTES = 16 << 20
"""Of one answer."""

MOST_CHARACTERS = 20_000
"""Of a name or a message in an answer (bytes of UTF-8, escapes as they are written)."""

_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_LONGEST_LAST_WORDS = 300
_BYTES_OF_LAST_WORDS = 4096
_AT_ONCE = 1 << 16

_PROGRAM = """
import importlib, json, sys
sys.path[:] = json.loads(sys.argv[1])
importlib.import_module(sys.argv[2]).main(*map(int, sys.argv[3:]))
"""

_NOT_PASSED_ON = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT")
"""Variables that let others' code into an interpreter as it starts; it is given the path here."""

_GIVEN = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
"""Libraries of numbers start their threads when they are imported, and a fork lacks them. Sets of
strings have one order, so that two runs of the same code do not differ by it."""

T = TypeVar("T")


class NoAnswerError(NoVerdictError):
    """A process that runs a vLLM's code did not answer as it should, so that nothing was seen."""


class ClosedError(NoAnswerError):
    """The process has closed its pipe, as it does when it ends."""


class SilentError(NoAnswerError):
    """The process has not answered for as long as it may take."""


class Lines:
    """One end of two pipes: questions go out, and answers come in, one for each.

    Args:
        questions: descriptor to write to.
        answers: descriptor to read from.
    """

    def __init__(self, questions: int, answers: int) -> None:
        self._questions = questions
        self._answers = answers
        self._buffer = bytearray()

    def fileno(self) -> int:
        """Where answers come in, to wait for several processes."""
        return self._answers

    def send(self, line: bytes) -> None:
        """Ask.

        Raises:
            ClosedError: nobody reads it.
        """
        left = memoryview(line)
        try:
            while left:
                left = left[os.write(self._questions, left) :]
        except BrokenPipeError:  # Of our own output it would be the end of the command.
            raise ClosedError("it reads no questions") from None

    def receive(self, seconds: float | None = None) -> bytes:
        """The next line, without its end.

        Args:
            seconds: how long to wait for it; for ever by default.

        Raises:
            ClosedError: none comes.
            SilentError: none has come yet.
            NoAnswerError: it is too long, or there is more than one.
        """
        ends_at = None if seconds is None else time.monotonic() + seconds
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MOST_BYTES:
                raise NoAnswerError(f"it is longer than {MOST_BYTES} bytes")
            if ends_at is not None:
                left = max(0.0, ends_at - time.monotonic())
                if not select.select([self._answers], [], [], left)[0]:
                    raise SilentError(f"none for {seconds:g} s")
            read = os.read(self._answers, _AT_ONCE)
            if not read:
                raise ClosedError("it closed the pipe")
            self._buffer += read
        if end + 1 < len(self._buffer):
            raise NoAnswerError("it sent more than was asked for")
        line = bytes(self._buffer[:end])
        self._buffer.clear()
        return line


def environment() -> dict[str, str]:
    """The variables with which an interpreter is started."""
    passed_on = {name: os.environ[name] for name in os.environ if name not in _NOT_PASSED_ON}
    return passed_on | _GIVEN


def start_interpreter(
    module: str, descriptors: Sequence[int], log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a process that asks nothing of the current folder and leaves interrupts to this one.

    Args:
        module: its function ``main`` is given the descriptors, and the number of this process.
        descriptors: those of this process's that it has, too.
        log: where it prints to.
    """
    arguments = [json.dumps(sys.path), module, *map(str, descriptors), str(os.getpid())]
    # A terminal sends Ctrl-C to all processes, and only the one that asks may answer to it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *arguments],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=descriptors,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def last_words(log: IO[bytes]) -> str:
    """The last line that a process printed; empty where it printed none."""
    size = os.fstat(log.fileno()).st_size
    start = max(0, size - _BYTES_OF_LAST_WORDS)
    text = os.pread(log.fileno(), _BYTES_OF_LAST_WORDS, start).decode(errors="replace")
    last = next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")
    return last[:_LONGEST_LAST_WORDS]


def how_it_ended(code: int | None, log: IO[bytes]) -> str:
    """How a process ended that closed its pipe, and the last that it printed.

    Args:
        code: its exit code; ``None`` where that is not known.
        log: where it printed to.
    """
    how = "it ended early" if code is None else f"it ended early (exit code {code})"
    last = last_words(log)
    return f"{how}: {last}" if last else how


def write_all(descriptor: int, line: bytes) -> None:
    """Write a line to a pipe, however little it takes at once."""
    left = memoryview(line)
    while left:
        left = left[os.write(descriptor, left) :]


def read_exactly(line: bytes, adapter: TypeAdapter[T]) -> T:
    """What a line holds, where it is the line that we would write for that.

    Raises:
        NoAnswerError: it is not.
    """
    if has_long_string(line, MOST_CHARACTERS):
        raise NoAnswerError(f"a text of more than {MOST_CHARACTERS} bytes")
    try:
        read = adapter.validate_json(line)
    except ValidationError as error:
        raise NoAnswerError(first_error(error)) from None
    if to_json(read) != line:
        raise NoAnswerError("a key stands twice, a field is left out, or it is written otherwise")
    return read


class Numbered(Protocol):
    """An answer with the number of its question."""

    @property
    def number(self) -> int:
        """That of the question."""


AnsweredT = TypeVar("AnsweredT", bound=Numbered)


def read_numbered(line: bytes, adapter: TypeAdapter[AnsweredT], number: int) -> AnsweredT:
    """What a line holds, as :func:`read_exactly`, where it answers the question of that number.

    Raises:
        NoAnswerError: it does not.
    """
    answered = read_exactly(line, adapter)
    if answered.number != number:
        raise NoAnswerError(f"an answer to question {answered.number}, where {number} was asked")
    return answered


def has_long_string(line: bytes, most: int) -> bool:
    """Whether a JSON text holds a string of more bytes than that, escapes as they are written."""
    if b'\\"' not in line and max(map(len, line.split(b'"'))) <= most:
        return False  # Most lines end here: to find each string takes longer.
    return any(len(found[1]) > most for found in _STRING.finditer(line))
