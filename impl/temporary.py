"""Temporary folders that do not outlive their process for long, however it ended.

A process that is killed removes nothing. The folder's name holds the process's number, and the next
process that makes one removes what is left of processes that are gone. Numbers come round: so the
folder holds a file, too, that its process has locked, and that nobody has once it is gone.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_LOCK = ".residency-lock"
_NAME = re.compile(r"residency-[a-z]+-(\d+)-")


def temporary_folder(purpose: str) -> tempfile.TemporaryDirectory[str]:
    """A new folder; what processes that are gone left behind is removed first.

    Args:
        purpose: a word for the folder's name, of small letters.
    """
    sweep(Path(tempfile.gettempdir()))
    return _Locked(prefix=f"residency-{purpose}-{os.getpid()}-")


class _Locked(tempfile.TemporaryDirectory[str]):
    """A folder that is locked as long as this object, or a fork's, is there."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix=prefix)
        self._lock = (Path(self.name) / f"{_LOCK}.new").open("w")
        with suppress(OSError):  # Not every file system has locks; then numbers have to do.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            Path(self._lock.name).rename(Path(self.name) / _LOCK)

    def cleanup(self) -> None:
        """Remove it."""
        self._lock.close()
        super().cleanup()


def sweep(folder: Path) -> None:
    """Remove the folders of processes that are gone.

    Args:
        folder: where temporary folders are made. What others own is left alone.
    """
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            named = _NAME.match(entry.name)
            if named is None or (_is_running(int(named[1])) and not _is_free(Path(entry.path))):
                continue
            with suppress(OSError):
                is_ours = entry.stat(follow_symlinks=False).st_uid == os.getuid()
                if is_ours and entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)


def _is_free(folder: Path) -> bool:
    """Whether a folder was locked, and is no more: its number is another process's by now."""
    try:
        with (folder / _LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # It is somebody else's.
    return True
