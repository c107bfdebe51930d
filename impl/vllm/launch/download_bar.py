"""A download's progress on a terminal, in the form that the index client reports to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TransferSpeedColumn,
)


class _Bar:
    """One download's progress, in the form that the index client reports to."""

    def __init__(self, progress: Progress, filename: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(filename, total=total)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return None

    def update(self, increment: int) -> None:
        """Count bytes received."""
        self._progress.advance(self._task, increment)


class _BarFactory:
    """Makes the bar once the size is known."""

    def __init__(self, progress: Progress, filename: str) -> None:
        self._progress = progress
        self._filename = filename

    def __call__(self, total: int | None) -> _Bar:
        return _Bar(self._progress, self._filename, total)


@contextmanager
def progress_bar(filename: str, wanted: bool) -> Iterator[_BarFactory]:
    """Show a download on standard error while the block runs.

    Args:
        wanted: whether to show it; nothing is shown either where this is no terminal.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    shown = wanted and sys.stderr.isatty()
    with Progress(*columns, TransferSpeedColumn(), console=console, disable=not shown) as progress:
        yield _BarFactory(progress, filename)
