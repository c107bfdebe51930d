"""What long commands share: a progress bar, and Ctrl-C that lets them report what they have."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from proofs.describe.visible import table_text
from proofs.jobs.progress import ReportProgress


@contextmanager
def progress_bar() -> Iterator[ReportProgress | None]:
    """A progress bar on a terminal, and nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def report_progress(activity: str, done: int, total: int) -> None:
            bar.update(task, description=table_text(activity), completed=done, total=total)

        yield report_progress


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed; a second one stops at once.

    A flag, since an exception may be raised, and lost, in any callback of a library.
    """
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)
