"""How a process that works for another one ends with it, and whether it may be forked."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

_ORPHANED = 70
"""Exit code of a process whose parent is gone; nobody is left to read it."""

_SET_PARENT_DEATH_SIGNAL = 1
"""``PR_SET_PDEATHSIG`` of Linux."""


def end_with(process: int, pipe: int) -> None:
    """End this process as soon as the one that it comes from is gone.

    Args:
        process: its number.
        pipe: descriptor of the end to read from; that process holds the other end, and only it.
    """
    end_with_linux(process)

    def watch() -> None:
        wait([pipe])
        os._exit(_ORPHANED)

    threading.Thread(target=watch, name="end when closed", daemon=True).start()


def end_with_linux(process: int) -> None:
    """Have Linux end this process as soon as the one that it comes from is gone.

    It needs no thread, and does nothing elsewhere.

    Args:
        process: number of the process that this one comes from.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != process:  # It ended before it was asked for.
            os._exit(_ORPHANED)


def has_threads() -> bool:
    """Whether threads are at work besides this one, those of libraries included where known.

    A fork has only the thread that forks.
    """
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir()) > 1
    except OSError:
        return threading.active_count() > 1
