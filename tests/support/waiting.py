"""Wait for what is seen, and not for a time: a busy machine takes as long as it takes."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable
from pathlib import Path

_GIVEN_UP_AFTER_SECONDS = 300
"""Long after anything should have happened; no test passes because of it."""


def wait_until(happened: Callable[[], bool], what: str, pause: float = 0.02) -> None:
    """Wait for something.

    Args:
        happened: whether it did.
        what: for the error, where it never does.
        pause: seconds between two looks; more where looking takes long.

    Raises:
        TimeoutError: it did not.
    """
    deadline = time.monotonic() + _GIVEN_UP_AFTER_SECONDS
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"never happened: {what}")
        time.sleep(pause)


def is_free(file: Path) -> bool:
    """Whether no process holds the file's lock."""
    with file.open("a") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def workers_of(process: int) -> list[int]:
    """The processes that a process started to work for it, by number."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            line = (folder / "cmdline").read_bytes()
            is_worker = any(word in line for word in (b"spawn_main", b"proofs.source.host"))
        except OSError:
            continue  # It has just ended.
        if parent == process and is_worker:
            found.append(int(folder.name))
    return found
