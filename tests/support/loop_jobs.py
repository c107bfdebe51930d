"""Jobs that end in each way a job can, for processes of their own, which import this module."""

from __future__ import annotations

import ctypes
import fcntl
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from proofs.jobs.processes import ShouldStop
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
