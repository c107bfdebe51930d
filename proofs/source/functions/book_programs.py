"""Sequences of calls on a book: one of each kind on every initial book of up to three entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Literal

from spec.functions.cases import BookOperation

Status = Literal["unreferenced", "held by the first", "held by the second", "held by both"]
STATUSES: tuple[Status, ...] = (
    "unreferenced",
    "held by the first",
    "held by the second",
    "held by both",
)


@dataclass(frozen=True)
class Program:
    """A sequence of operations by two requests that both have the given hashes as features.

    Without ``content_is_hashed`` the second request's rows differ from the first's, whatever its
    hashes say. ``limited`` is the index of a take with a symbolic encoder budget and symbolic rows
    chosen before; the other takes have neither.
    """

    words: str
    identifiers: str
    operations: tuple[BookOperation, ...]
    content_is_hashed: bool = True
    limited: int | None = None


def _build(statuses: Sequence[Status]) -> list[BookOperation]:
    """Reach a book with one entry per status, unreferenced ones oldest first."""
    operations: list[BookOperation] = []
    for index, status in enumerate(statuses):
        holder = 1 if status == "held by the second" else 0
        operations.append(BookOperation("take", holder, index))
        if status == "held by both":
            operations.append(BookOperation("take", 1, index))
    for index, status in enumerate(statuses):
        if status == "unreferenced":
            operations.append(BookOperation("drop", 0, index))
    return operations


def programs() -> Iterator[Program]:
    """Operations of each kind on every initial book of up to three entries.

    A new item is taken on books of up to two, so that there are never more than three features.
    """
    for count in (0, 1, 2):
        for statuses in product(STATUSES, repeat=count):
            yield Program(
                f"[{', '.join(statuses)}] take a new item, then the first again",
                "ABC"[: count + 1],
                (
                    *_build(statuses),
                    BookOperation("take", 0, count),
                    BookOperation("take", 1, 0),
                    BookOperation("end_pass"),
                ),
            )
    for statuses in _LIMITED_ON:
        count, built = len(statuses), _build(statuses)
        yield Program(
            f"[{', '.join(statuses)}] take a new item under limits, then without",
            "ABC"[: count + 1],
            (
                *built,
                BookOperation("take", 1, count),
                BookOperation("take", 0, count),
                BookOperation("end_pass"),
            ),
            limited=len(built),
        )
    for status in STATUSES:
        built = _build([status])
        yield Program(
            f"[{status}] take the entry under limits",
            "A",
            (*built, BookOperation("take", 1, 0)),
            limited=len(built),
        )
    for count in (1, 2, 3):
        for statuses in product(STATUSES, repeat=count):
            yield Program(
                f"[{', '.join(statuses)}] hit, let go, take the last again, finish",
                "ABC"[:count],
                (
                    *_build(statuses),
                    BookOperation("take", 1, 0),
                    BookOperation("drop", 0, 0),
                    BookOperation("drop", 1, 0),
                    BookOperation("take", 1, count - 1),
                    BookOperation("end_pass"),
                    BookOperation("finish", 0),
                    BookOperation("finish", 1),
                ),
            )
    for identifiers in ("AA", "AAA", "AAB", "ABA"):
        takes = [BookOperation("take", 0, i) for i in range(len(identifiers))]
        drops = [BookOperation("drop", 0, i) for i in range(len(identifiers))]
        yield Program(
            f"one request takes {identifiers}, lets go in order", identifiers, (*takes, *drops)
        )
    yield from _orders()
    yield from _resets()
    yield Program("three entries, then reset", "ABC", (*_build(STATUSES[:3]), _RESET, _TAKE))
    yield Program(
        "two requests with one hash and different row counts",
        "A",
        (
            _TAKE,
            BookOperation("take", 1, 0),
            BookOperation("drop", 0, 0),
            BookOperation("drop", 1, 0),
        ),
        content_is_hashed=False,
    )


_LIMITED_ON: tuple[tuple[Status, ...], ...] = (
    (),
    ("unreferenced",),
    ("held by the first",),
    ("unreferenced", "unreferenced"),
    ("unreferenced", "held by the second"),
    ("held by both", "unreferenced"),
)
"""Initial books of a take with an encoder budget and rows chosen before: nothing, some or all of
what is there can be evicted."""


def _orders() -> Iterator[Program]:
    """Entries let go in another order than they were taken in: the first let go is the oldest."""
    for order in permutations(range(2)):
        yield Program(
            f"two entries let go in the order {order}, then a new one",
            "ABC",
            (
                *(BookOperation("take", 0, index) for index in range(2)),
                *(BookOperation("drop", 0, index) for index in order),
                BookOperation("take", 1, 2),
                BookOperation("end_pass"),
            ),
        )
    yield Program(
        "an entry is hit and let go again, and is the youngest then",
        "ABC",
        (
            *_build(("unreferenced", "unreferenced")),
            BookOperation("take", 0, 0),
            BookOperation("drop", 0, 0),
            BookOperation("take", 1, 2),
            BookOperation("end_pass"),
        ),
    )


def _resets() -> Iterator[Program]:
    """Nothing of before a reset comes back after it: no notice, no entry, no reference."""
    yield Program(
        "an entry is evicted, then reset",
        "AB",
        (
            _TAKE,
            BookOperation("drop", 0, 0),
            BookOperation("take", 0, 1),
            _RESET,
            BookOperation("end_pass"),
        ),
    )
    for identifiers in ("A", "AA"):
        takes = tuple(BookOperation("take", 0, i) for i in range(len(identifiers)))
        yield Program(
            f"one request takes {identifiers}, reset, takes the first again and lets it go",
            identifiers,
            (*takes, _RESET, _TAKE, BookOperation("drop", 0, 0), BookOperation("end_pass")),
        )
    yield Program(
        "an unreferenced entry, then reset, then taken again and let go",
        "AB",
        (
            *_build(("unreferenced",)),
            _RESET,
            _TAKE,
            BookOperation("drop", 0, 0),
            BookOperation("take", 1, 1),
            BookOperation("end_pass"),
        ),
    )


_RESET = BookOperation("reset")
_TAKE = BookOperation("take", 0, 0)


def encoder_decoder_programs() -> Iterator[Program]:
    """Items taken, and let go once, as often as every decode step does, and by the finish."""
    takes = (BookOperation("take", 0, 0), BookOperation("take", 0, 1))
    drop = BookOperation("drop", 0, 0)
    yield Program("take two items, let go of one", "AB", (*takes, drop))
    yield Program("let go of an item at two decode steps", "AB", (*takes, drop, drop))
    yield Program("let go of an item, then finish", "AB", (*takes, drop, BookOperation("finish")))
    yield Program("take, then reset", "AB", (*takes, _RESET, _TAKE))
    yield Program("take two items, the second under limits", "AB", takes, limited=1)
