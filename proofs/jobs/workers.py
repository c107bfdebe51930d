"""Processes that work for this one: they leave interrupts to it, and end when it does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext, SpawnProcess

_ORPHANED = 70
"""Exit code of a worker whose parent is gone; nobody is left to read it."""


class WorkerProcess(SpawnProcess):
    """A new interpreter, in which Ctrl-C is blocked from the beginning.

    A terminal sends it to all processes, and only the parent may answer to it.
    """

    def start(self) -> None:
        """Start it; this process takes interrupts again afterwards."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerContext(SpawnContext):
    """Makes such processes."""

    Process = WorkerProcess


def end_with_parent() -> None:
    """End this process as soon as its parent is gone, however that ended.

    A parent that was killed can tell its workers nothing. They hold one end of a pipe of which it
    holds the other, and a thread waits for that to close: it is of use whatever the worker does,
    as long as it lets other threads run.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(_ORPHANED)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


def worker_processes(workers: int) -> ProcessPoolExecutor:
    """A pool of such processes, which finish what they are at when this one is interrupted."""
    return ProcessPoolExecutor(workers, mp_context=WorkerContext(), initializer=end_with_parent)
