"""Processes that work for this one: they leave interrupts to it, and end when it does."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path

from impl.process_tree import end_with

_SAFE_PATH = "PYTHONSAFEPATH"
_NOT_PASSED_ON = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT")
"""Variables that let others' code into an interpreter as it starts. A worker gets the path of this
process by other ways, once it has started."""


@contextmanager
def _safe_interpreters() -> Iterator[None]:
    """Let interpreters that start now import nothing from the current folder.

    A new interpreter that is given its program as an argument looks there first, and a checkout may
    hold a ``multiprocessing.py`` or ``json.py``.
    """
    names = (_SAFE_PATH, *_NOT_PASSED_ON)
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]
        os.environ.update(before)


class WorkerProcess(SpawnProcess):
    """A new interpreter, in which Ctrl-C is blocked from the beginning.

    A terminal sends it to all processes, and only the parent may answer to it.
    """

    def start(self) -> None:
        """Start it; this process takes interrupts again afterwards."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _safe_interpreters():
                super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerContext(SpawnContext):
    """Makes such processes, and whatever they share with this one."""

    Process = WorkerProcess

    def __init__(self) -> None:
        super().__init__()
        with _safe_interpreters():
            # An interpreter too, which begins with the first thing that is shared.
            resource_tracker.ensure_running()


def end_with_parent() -> None:
    """End this process as soon as its parent is gone, however that ended.

    A parent that was killed can tell its workers nothing. They hold one end of a pipe of which it
    holds the other, and a thread waits for that to close. A worker in a solver lets no other thread
    run: Linux ends it all the same.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        end_with(parent.pid or 0, parent.sentinel)


def write_to(log: Path) -> None:
    """Send to a file what this process prints, and what libraries print in it."""
    descriptor = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def limit_memory(num_bytes: int) -> None:
    """Let this process have so much memory of its own (bytes), and no more."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = num_bytes if hard == resource.RLIM_INFINITY else min(num_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def worker_processes(workers: int) -> ProcessPoolExecutor:
    """A pool of such processes, which finish what they are at when this one is interrupted."""
    return ProcessPoolExecutor(workers, mp_context=WorkerContext(), initializer=end_with_parent)
