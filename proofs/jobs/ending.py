"""How every command ends: with one line and one exit code, whatever happened.

The subcommands of ``residency``, ``python -m proofs`` and the scripts of the groups all end here.
Exit code 1 says that a claim is refuted, so that nothing else may end with it.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from proofs.describe.visible import error_line, print_lines
from spec.errors import InputError, NoVerdictError, described
from spec.verdict import INTERRUPTED_EXIT_CODE, USAGE_EXIT_CODE, Verdict, exit_code

CLOSED_PIPE_EXIT_CODE = 128 + signal.SIGPIPE
"""Exit code of a command whose reader has gone: that of a program that the signal ended."""

ERROR_EXIT_CODE = exit_code([Verdict.ERROR])

_LEAST_MEMORY = 800_000 << 10
"""Bytes of address space that tensors and both solvers take before anything is computed."""

TRACEBACK_VARIABLE = "RESIDENCY_TRACEBACK"
"""Environment variable that asks for the traceback of an unexpected error."""


def code_of(command: Callable[[], Any]) -> int:
    """Run a command; the exit code, after the one line that says why it ended early, if it did.

    A command returns its exit code, or ``None`` for 0. SIGTERM ends it as Ctrl-C does. What click
    raises to end a command passes through.
    """
    terminated: list[int] = []
    interrupted: list[int] = []
    with _noted_interrupts(interrupted), _sigterm_interrupts(terminated):
        try:
            try:
                _require_memory()
                result = command()
                code = result if isinstance(result, int) else 0
            except SystemExit as ending:
                code = _code_of_exit(ending)
            _flush()
            if interrupted and code != INTERRUPTED_EXIT_CODE:
                return _end("Interrupted.", INTERRUPTED_EXIT_CODE)
            return code
        except click.ClickException as error:
            raise _harmless(error) from None
        except (click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            return _end("Interrupted.", INTERRUPTED_EXIT_CODE)
        except BrokenPipeError:
            _silence()
            return CLOSED_PIPE_EXIT_CODE
        except Exception as error:
            if terminated:  # The signal took workers along, and their end is no fault.
                return _end("Interrupted.", INTERRUPTED_EXIT_CODE)
            return _end(*_line_and_code(error))


def _require_memory() -> None:
    """Refuse to begin where the libraries cannot be loaded: the loader would end without a word.

    Raises:
        MemoryError: the process may have less memory than that.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_MEMORY:
        raise MemoryError


def _code_of_exit(ending: SystemExit) -> int:
    if ending.code is None or isinstance(ending.code, int):
        return ending.code or 0
    return _end(f"Error: {error_line(str(ending.code))}", ERROR_EXIT_CODE)


def _line_and_code(error: Exception) -> tuple[str, int]:
    """What to say of an error, and the exit code."""
    if isinstance(error, InputError):
        return f"Error: {error_line(str(error))}", USAGE_EXIT_CODE
    if os.environ.get(TRACEBACK_VARIABLE):
        with suppress(OSError):
            print_lines("".join(traceback.format_exception(error)).rstrip(), err=True)
    match error:
        case MemoryError():
            why = "out of memory; give it more, or ask for less at once (fewer examples or workers)"
        case BrokenProcessPool():
            why = "a worker process ended early: it was killed, or ran out of memory"
        case NoVerdictError():
            why = str(error)
        case OSError(errno=errno.ENOSPC):
            _silence()
            why = f"{error.filename or 'output'}: no space left to write to"
        case OSError():
            _silence()
            why = f"{error.filename or 'input or output'}: {error.strerror or error}"
        case _:
            what = described(error)
            why = (
                f"{what} (in {_place(error)}). Nobody expected this, and it says nothing of any "
                f"claim; {TRACEBACK_VARIABLE}=1 shows how it came about"
            )
    return f"{Verdict.ERROR.name} {error_line(why)}", ERROR_EXIT_CODE


def _place(error: Exception) -> str:
    """File and line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "an unknown place"
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"


def _end(line: str, code: int) -> int:
    with suppress(OSError):  # A closed or full stream must not change the code.
        print_lines(line, err=True)
    with suppress(OSError):
        _flush()
        return code
    _silence()
    return code


def _flush() -> None:
    """Write what is left of the output, while an error still has somebody to hear it."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _silence() -> None:
    """Let the interpreter write what is left to nowhere, instead of failing with it at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError, ValueError):  # Not every stream is a file.
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _noted_interrupts(interrupted: list[int]) -> Iterator[None]:
    """Note each Ctrl-C that nobody else handles, and raise what Python raises.

    The exception is lost where it is raised in a callback or while an object is taken away, and the
    command goes on; so that what it returns is not all that tells.

    Args:
        interrupted: gets the signal's number when it comes.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _sigterm_interrupts(terminated: list[int]) -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does, which differs from command to command.

    Args:
        terminated: gets the signal's number when it comes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread may set handlers.
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        terminated.append(number)
        if callable(signal.getsignal(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)
        else:  # In the background of a shell Ctrl-C is ignored.
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _harmless(error: click.ClickException) -> click.ClickException:
    """What click says of wrong use, which repeats the words that were given."""
    if not isinstance(error, click.UsageError):
        return click.UsageError(error_line(error.format_message()))
    if type(error).show is not click.UsageError.show:
        return error  # It shows the help, and nothing that was given.
    return click.UsageError(error_line(error.format_message()), error.ctx)


class _PlainUse(click.Command):
    """A command that says harmlessly what is wrong with the words that it was given."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the command line."""
        try:
            return super().make_context(*args, **extra)
        except click.ClickException as error:
            raise _harmless(error) from None


class PlainCommand(_PlainUse):
    """A command that ends as :func:`code_of` says; it returns its exit code."""

    def invoke(self, ctx: click.Context) -> NoReturn:
        """Run it, and end the process."""
        ctx.exit(code_of(lambda: super(PlainCommand, self).invoke(ctx)))


class PlainGroup(_PlainUse, click.Group):
    """A group that ends as :func:`code_of` says, whatever its subcommands are made of."""

    command_class = PlainCommand

    def invoke(self, ctx: click.Context) -> NoReturn:
        """Run the subcommand, and end the process."""
        ctx.exit(code_of(lambda: super(PlainGroup, self).invoke(ctx)))

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the program."""
        try:
            return super().main(*args, **extra)
        except SystemExit:
            # Click ends with 1 where the reader of its help has gone.
            if type(sys.stdout).__name__ == "PacifyFlushWrapper":
                sys.exit(CLOSED_PIPE_EXIT_CODE)
            raise


PlainGroup.group_class = PlainGroup
