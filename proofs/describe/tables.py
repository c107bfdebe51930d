"""Tables on a terminal: one look for all commands, and no text in a cell that anybody obeys."""

from __future__ import annotations

from rich import box
from rich.table import Column, Table

from proofs.describe.visible import table_text


def terminal_table(*columns: Column, title: str = "", caption: str = "") -> Table:
    """A table without a frame; narrow gaps leave long names room on a terminal of 80 columns."""
    return Table(
        *columns,
        title=table_text(title) or None,
        caption=table_text(caption) or None,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


def words(head: str) -> Column:
    """A column of words that may be folded."""
    return Column(head, overflow="fold")


def name(head: str) -> Column:
    """A column of names that stay on one line."""
    return Column(head, no_wrap=True)


def number(head: str) -> Column:
    """A column of numbers."""
    return Column(head, justify="right", no_wrap=True)


def add_row(table: Table, *cells: str) -> None:
    """Add a row of plain texts."""
    table.add_row(*map(table_text, cells))
