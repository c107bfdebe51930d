"""Temporary folders that do not outlive their process for long, however it ended.

A process that is killed removes nothing. The folder's name holds the process's number, and the next
process that makes one removes what is left of processes that are gone.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"residency-[a-z]+-(\d+)-")


def temporary_folder(purpose: str) -> tempfile.TemporaryDirectory[str]:
    """A new folder; what processes that are gone left behind is removed first.

    Args:
        purpose: a word for the folder's name, of small letters.
    """
    sweep(Path(tempfile.gettempdir()))
    return tempfile.TemporaryDirectory(prefix=f"residency-{purpose}-{os.getpid()}-")


def sweep(folder: Path) -> None:
    """Remove the folders of processes that are gone.

    Args:
        folder: where temporary folders are made. What others own is left alone.
    """
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            named = _NAME.match(entry.name)
            if named is None or _is_running(int(named[1])):
                continue
            with suppress(OSError):
                is_ours = entry.stat(follow_symlinks=False).st_uid == os.getuid()
                if is_ours and entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # It is somebody else's.
    return True
