"""What a step of a run shows of a projection."""

from __future__ import annotations

from collections.abc import Mapping

from spec.record.steps import LoopBookState
from spec.relation.runs.book_ledger import Ledger
from spec.relation.state import State

SHOWN = (
    *("held", "others", "running"),
    *("resident", "fresh", "entry", "referenced_rows", "idle_rows", "free", "freeable"),
)
"""What a step shows of a request that does not run; the last field only where the book has it."""

SHOWN_RUNNING = (*SHOWN[:3], "computed", "placeholders", *SHOWN[3:])
"""What it shows of a running one."""

REMEMBERED = {"taken", "passed", "payload"}
"""Fields that no guard of a transition reads: what the invariants remember of the past."""

OF_RUNNING = {"computed", "placeholders"}
"""Fields that a start sets anew, and nothing reads before."""


def shown_of(
    name: str,
    ledger: Ledger,
    book: LoopBookState,
    contents: Mapping[str, int],
    encodings: frozenset[int],
) -> tuple[int | bool, ...]:
    """What the book and the worker show of a hash, whoever it is kept for.

    Args:
        name: the hash.
        ledger: the book's entries.
        book: the book as the run shows it.
        contents: the worker's tensors, and the number of the encoding of each.
        encodings: encodings since the cache was last reset.

    Returns:
        The values of :data:`SHOWN` after the first three.
    """
    referenced = idle = 0
    entries = ledger.entries
    for other, (rows, occurrences) in entries.items():
        if other == name:
            continue
        if occurrences:
            referenced += rows
        else:
            idle += rows
    resident = name in contents
    fresh = resident and contents[name] in encodings
    shown = (resident, fresh, name in entries, referenced, idle, book.num_free_slots)
    return shown if book.num_freeable_slots is None else (*shown, book.num_freeable_slots)


def apart(state: State, other_state: State) -> str | None:
    """The first field that a transition may ask for and that differs, with both values."""
    if state == other_state:
        return None
    runs = state.running or state.trying
    for name, value, other in zip(State._fields, state, other_state, strict=True):
        if value == other or name in REMEMBERED:
            continue
        if runs or name not in OF_RUNNING:
            return f"{name} {value} or {other}"
    return None
