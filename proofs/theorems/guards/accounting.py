"""Accounting: the book's running totals keep equal to the sums, one obligation for each operation.

The sums are those of :mod:`spec.functions.book`: *free* is the cache without every entry,
*freeable* the cache without the referenced entries. One entry is singled out; all others count by
their sums, so that every number of entries is covered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import HASH_IS_CONTENT, counts
from spec.algebra import BoolTerm, IntTerm, and_, eq

GROUP = "accounting"

TOTALS_ARE_SUMS = "totals-are-sums"
ROOM_ASKED = "room-was-asked-for"


@dataclass(frozen=True)
class _Book:
    """Cache size, rows of all other entries by whether referenced, and the running totals."""

    size: IntTerm
    referenced: IntTerm
    idle: IntTerm
    free: IntTerm
    freeable: IntTerm

    def agrees(
        self, free: IntTerm, freeable: IntTerm, referenced: IntTerm, idle: IntTerm
    ) -> BoolTerm:
        """The totals equal the sums if that many rows more are referenced or idle, in bounds."""
        held = self.referenced + referenced
        return and_(
            eq(freeable, self.size - held),
            eq(free, self.size - held - self.idle - idle),
            free >= 0,
            free <= freeable,
            freeable <= self.size,
        )


def _a_book(v: Vocabulary) -> _Book:
    return _Book(
        *integers(v, "cache_size referenced_rows idle_rows num_free_slots num_freeable_slots")
    )


def _premises(book: _Book, rows: IntTerm, before: BoolTerm) -> dict[str, BoolTerm]:
    return {
        "rows-not-negative": counts(rows, book.referenced, book.idle),
        TOTALS_ARE_SUMS: before,
    }


def _same_content(v: Vocabulary, rows: IntTerm) -> tuple[IntTerm, dict[str, BoolTerm]]:
    own = v.integer("rows_by_own_mask")
    return own, {HASH_IS_CONTENT: eq(own, rows)}


def _hit(v: Vocabulary) -> Formula:
    book, rows = _a_book(v), v.integer("rows")
    own, content = _same_content(v, rows)
    before = book.agrees(book.free, book.freeable, referenced=0, idle=rows)
    return Formula(
        {**_premises(book, rows, before), **content},
        book.agrees(book.free, book.freeable - own, referenced=rows, idle=0),
        and_(rows >= 1, own >= 1),
    )


def _allocate(v: Vocabulary) -> Formula:
    book, rows = _a_book(v), v.integer("rows")
    before = book.agrees(book.free, book.freeable, referenced=0, idle=0)
    return Formula(
        {**_premises(book, rows, before), ROOM_ASKED: rows <= book.free},
        book.agrees(book.free - rows, book.freeable - rows, referenced=rows, idle=0),
    )


def _evict(v: Vocabulary, credit: bool = True) -> Formula:
    book, rows = _a_book(v), v.integer("rows")
    before = book.agrees(book.free, book.freeable, referenced=0, idle=rows)
    credited = rows if credit else 0
    return Formula(
        _premises(book, rows, before),
        book.agrees(book.free + credited, book.freeable, referenced=0, idle=0),
    )


def _drop(v: Vocabulary, times: int = 1) -> Formula:
    book, rows = _a_book(v), v.integer("rows")
    own, content = _same_content(v, rows)
    before = book.agrees(book.free, book.freeable, referenced=rows, idle=0)
    return Formula(
        {**_premises(book, rows, before), **content},
        book.agrees(book.free, book.freeable + times * own, referenced=0, idle=rows),
        and_(rows >= 1, own >= 1),
    )


def _promised_room_is_found(v: Vocabulary) -> Formula:
    book, rows = _a_book(v), v.integer("rows")
    before = book.agrees(book.free, book.freeable, referenced=0, idle=0)
    return Formula(
        {
            TOTALS_ARE_SUMS: before,
            "room-promised": rows <= book.freeable,
            "room-still-short": book.free < rows,
        },
        book.idle >= 1,
        counts(rows, book.referenced, book.idle),
    )


_OWN_SIZE = Ablation("own-size-credit", drops=(HASH_IS_CONTENT,))
_BOOK = {"cache_size": 12, "referenced_rows": 3, "idle_rows": 2, "rows": 4}

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="slots-conserved",
        group=GROUP,
        short_name="hit-keeps-totals",
        sentence="taking a reference to an unreferenced entry keeps both totals equal to the sums",
        build=_hit,
        witness={
            **_BOOK,
            "num_free_slots": 3,
            "num_freeable_slots": 9,
            "rows_by_own_mask": 4,
        },
        ablations=(_OWN_SIZE,),
    ),
    Obligation(
        claim="slots-conserved",
        group=GROUP,
        short_name="allocate-keeps-totals",
        sentence="allocating an entry for which there is room keeps both totals equal to the sums",
        build=_allocate,
        witness={**_BOOK, "num_free_slots": 7, "num_freeable_slots": 9},
        ablations=(Ablation("room-not-asked-for", drops=(ROOM_ASKED,)),),
    ),
    Obligation(
        claim="slots-conserved",
        group=GROUP,
        short_name="evict-keeps-totals",
        sentence="evicting an unreferenced entry keeps both totals equal to the sums",
        build=_evict,
        witness={**_BOOK, "num_free_slots": 3, "num_freeable_slots": 9},
        ablations=(Ablation("not-credited", build=partial(_evict, credit=False)),),
    ),
    Obligation(
        claim="slots-conserved",
        group=GROUP,
        short_name="drop-keeps-totals",
        sentence="dropping the last reference to an entry keeps both totals equal to the sums",
        build=_drop,
        witness={
            **_BOOK,
            "num_free_slots": 3,
            "num_freeable_slots": 5,
            "rows_by_own_mask": 4,
        },
        ablations=(_OWN_SIZE, Ablation("credited-again", build=partial(_drop, times=2))),
    ),
    Obligation(
        claim="book-exact",
        group=GROUP,
        short_name="promised-room-is-found",
        sentence="while an item that fits the freeable slots lacks room, there is an unreferenced "
        "entry to evict",
        build=_promised_room_is_found,
        witness={**_BOOK, "rows": 8, "num_free_slots": 7, "num_freeable_slots": 9},
        ablations=(Ablation("room-not-promised", drops=("room-promised",)),),
    ),
)


if __name__ == "__main__":
    main_of_group(GROUP, OBLIGATIONS)
