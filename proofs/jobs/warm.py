"""Processes that have made something slow ready, and fork for each job that needs it.

Importing a vLLM takes seconds, and one command has several jobs on the same one. So a process
imports it once and runs nothing: each job is a fork of it, and finds what the process had ready and
nothing that another job left behind.

A fork has only the thread that forks. A process that has others, or whose forks could not use what
it made ready, does one job by itself and ends; the next job gets another process.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import socket
import tempfile
import traceback
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

from impl.process_tree import end_with, end_with_linux, has_threads
from impl.temporary import sweep
from proofs.jobs.workers import (
    WorkerContext,
    WorkerProcess,
    limit_memory,
    write_to,
)

MOST_AT_REST = max(3, os.cpu_count() or 1)
"""Processes that wait for another job; each holds some hundred megabytes."""

_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Libraries of numbers start their threads when they are imported."""


@dataclass(frozen=True)
class WarmUp:
    """What is made ready once for all jobs that name the same.

    Attributes:
        prepare: a function of a module. It says whether a fork can use what it made ready. What it
            raises is lost: a job that needs it meets the same again.
        argument: what it is given.
    """

    prepare: Callable[[Any], bool]
    argument: Hashable


@dataclass(frozen=True)
class Task:
    """What a fork does.

    Attributes:
        function: a function of a module; its first argument is the connection that it answers on.
        log: where it prints to.
        num_bytes: memory of its own that it may have.
    """

    function: Callable[..., None]
    arguments: tuple[Any, ...]
    log: Path
    num_bytes: int


class Fork:
    """A task at work in a warm process, as :class:`multiprocessing.Process` tells of a process."""

    def __init__(self, warm: _Warm) -> None:
        self._warm = warm
        self.exitcode: int | None = None

    def join(self) -> None:
        """Wait until it has ended."""
        if self.exitcode is None:
            self.exitcode = self._warm.ending()

    def kill(self) -> None:
        """End it, and the process that it is a fork of."""
        self._warm.end()


class _Warm:
    """A warm process, as its parent sees it."""

    def __init__(self, warm_up: WarmUp, first: Task) -> None:
        context = WorkerContext()
        self.warm_up = warm_up
        self._connection, theirs = context.Pipe()
        self._process: WorkerProcess = context.Process(target=_host, args=(theirs,), daemon=True)
        with _environment(_ONE_THREAD):
            self._process.start()
        theirs.close()
        self.is_at_rest = True
        with suppress(OSError):  # It has ended already, which whoever waits for answers notices.
            self._connection.send((first.log, first.num_bytes))
            self._connection.send(warm_up)

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def give(self, connection: Connection, task: Task) -> Fork:
        """Have a task done; its answers come over the connection, whose other end is the caller's.

        Where the process has ended there are no answers, as where it ends later on.
        """
        self.is_at_rest = False
        with suppress(OSError):
            self._connection.send(task)
            with socket.socket(fileno=os.dup(self._connection.fileno())) as line:
                socket.send_fds(line, [b"!"], [connection.fileno()])
        return Fork(self)

    def ending(self) -> int | None:
        """Wait for the end of the task that it was given; the exit code."""
        try:
            exit_code: int = self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            return self._process.exitcode
        self.is_at_rest = True
        return exit_code

    def end(self) -> None:
        """End it, with the fork at work."""
        with suppress(ProcessLookupError):  # It has not come to make a group, and has no fork.
            os.killpg(self._process.ident or 0, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self._connection.close()
        sweep(Path(tempfile.gettempdir()))


_processes: list[_Warm] = []
"""Those of this process; that used last is the last."""


def fork(warm_up: WarmUp, connection: Connection, task: Task) -> Fork:
    """Have a task done by a fork of a process that has made ready what it needs.

    Args:
        connection: it is sent along; the caller may close it.
    """
    _processes[:] = [warm for warm in _processes if warm.is_alive]
    latest_first = reversed(_processes)
    found = (warm for warm in latest_first if warm.is_at_rest and warm.warm_up == warm_up)
    warm = next(found, None)
    if warm is None:
        end_at_rest(MOST_AT_REST - 1)
        warm = _Warm(warm_up, task)
    else:
        _processes.remove(warm)
    _processes.append(warm)
    return warm.give(connection, task)


def end_at_rest(most: int = 0) -> None:
    """End processes that wait for another job, those used longest ago first.

    Args:
        most: how many may stay.
    """
    at_rest = [warm for warm in _processes if warm.is_at_rest]
    for warm in at_rest[: max(0, len(at_rest) - most)]:
        _processes.remove(warm)
        warm.end()


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# What runs in the warm process


def _host(connection: Connection) -> NoReturn:
    """Make ready what is asked for, then fork for each task until the parent is gone."""
    # The collector would look at all that is imported, again and again; and it would write to the
    # pages that forks share.
    gc.disable()
    os.setpgid(0, 0)
    parent = multiprocessing.parent_process()
    assert parent is not None
    end_with_linux(parent.pid or 0)
    try:
        log, num_bytes = connection.recv()
        write_to(log)
        limit_memory(num_bytes)
        can_fork = _prepare(connection.recv())
        alive, ours = os.pipe()
        while True:
            task: Task = connection.recv()
            with socket.socket(fileno=os.dup(connection.fileno())) as line:
                _, descriptors, _, _ = socket.recv_fds(line, 1, 1)
            answers = Connection(descriptors[0], readable=False)
            if not can_fork or has_threads():
                _do(task, answers)
            connection.send(_forked(connection, task, answers, alive, ours))
    except EOFError:
        os._exit(0)
    except OSError:
        os._exit(1)


def _prepare(warm_up: WarmUp) -> bool:
    try:
        return warm_up.prepare(warm_up.argument)
    except Exception:
        traceback.print_exc()
        return True
    finally:
        gc.freeze()


def _forked(connection: Connection, task: Task, answers: Connection, alive: int, ours: int) -> int:
    """Do a task in a fork; its exit code. The fork ends when this process does, and the other way.

    Args:
        alive: end of a pipe whose other end only this process holds.
        ours: that end.
    """
    origin = os.getpid()
    ended, at_work = os.pipe()
    child = os.fork()
    if child == 0:
        for descriptor in (connection.fileno(), ended, ours):
            os.close(descriptor)
        end_with(origin, alive)
        _do(task, answers)
    answers.close()
    os.close(at_work)
    if connection in wait([connection, ended]) and not wait([ended], 0):
        # Nothing is sent while a task is at work, so that the parent is gone.
        os.kill(child, signal.SIGKILL)
    os.close(ended)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _do(task: Task, answers: Connection) -> NoReturn:
    """Be the process that does a task. Taking all modules down would take long, and say nothing."""
    code = 1
    try:
        gc.enable()
        write_to(task.log)
        limit_memory(task.num_bytes)
        task.function(answers, *task.arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
