"""Jobs that end in each way a job can, for processes of their own, which import this module."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from proofs.jobs.processes import ShouldStop
from proofs.jobs.warm import WarmUp
from spec.errors import InputError

if TYPE_CHECKING:
    from proofs.jobs.progress import ReportProgress


def any_end(how: str, report_progress: ReportProgress, should_stop: ShouldStop) -> str:
    """End as the argument says."""
    report_progress(how, 1, 2)
    print("not to be shown")
    match how:
        case "refuse":
            raise InputError("wrong on purpose")
        case "break down":
            raise ZeroDivisionError("on purpose")
        case "die":
            print("the last words", file=sys.stderr, flush=True)
            os._exit(7)
        case "wait":
            while not should_stop():
                time.sleep(0.05)
            return "stopped"
        case "hang":
            time.sleep(3600)
        case "take all memory":
            kept = []
            while True:
                kept.append(bytearray(1 << 26))
    return f"did {how}"


def hold(file: str, report_progress: ReportProgress, should_stop: ShouldStop) -> None:
    """Lock a file, say so with a second one beside it, and never end."""
    with Path(file).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        Path(f"{file}.at-work").touch()
        while True:
            time.sleep(3600)


def hold_without_other_threads(file: str) -> None:
    """Do so as a solver does, which keeps the interpreter's lock all the while."""
    with Path(file).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        Path(f"{file}.at-work").touch()
        ctypes.PyDLL(None).sleep(3600)


def warm(argument: object) -> WarmUp:
    """Jobs are forks of one process."""
    return WarmUp(prepare, "well")


prepared: list[str] = []
"""What this process made ready, and what jobs that it did added."""


def prepare(how: str) -> bool:
    """Make ready, as the argument says; whether forks can use it."""
    prepared.append(how)
    if how == "break down":
        raise ZeroDivisionError("on purpose")
    if how == "with a thread":
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    return how != "for one"


def look_around(
    name: str, report_progress: ReportProgress, should_stop: ShouldStop
) -> tuple[int, int, list[str]]:
    """This process, the one that it comes from, and what was made ready."""
    prepared.append(name)
    return os.getpid(), os.getppid(), prepared


def end_the_origin(file: str, report_progress: ReportProgress, should_stop: ShouldStop) -> None:
    """End the process that this one comes from, and go on with a locked file."""
    os.kill(os.getppid(), signal.SIGKILL)
    hold(file, report_progress, should_stop)
