"""What recorders of one file share: write it, or compare it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from spec.functions.case_files import write_atomically


def write_or_compare(record: Path, text: Callable[[], str], module: str, about: str | None) -> int:
    """Write a record, or compare it where the command line says ``--check``; the exit code.

    Args:
        text: makes what it should hold.
        module: name of the recorder, for whoever has to run it.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    found = text()
    if not check:
        write_atomically(record, found)
        return 0
    is_same = record.read_text(encoding="utf-8") == found
    if not is_same:
        print(f"{record}: not as recorded; run python -m {module}")
    return int(not is_same)
