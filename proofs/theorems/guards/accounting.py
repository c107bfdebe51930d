"""Accounting: the book's running totals keep equal to the sums, one obligation for each operation.

The sums are those of :mod:`spec.functions.book`: *free* is the cache without every entry,
*freeable* the cache without the referenced entries. One entry is singled out; all others count by
their sums, so that every number of entries is covered.
"""

from __future__ import annotations

from dataclasses import dataclass

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import HASH_IS_CONTENT, counts
from spec.algebra import BoolTerm, IntTerm, and_, eq

GROUP = Group("accounting")

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
    return {"rows-not-negative": counts(rows, book.referenced, book.idle), TOTALS_ARE_SUMS: before}


def _same_content(v: Vocabulary, rows: IntTerm) -> tuple[IntTerm, dict[str, BoolTerm]]:
    own = v.integer("rows_by_own_mask")
    return own, {HASH_IS_CONTENT: eq(own, rows)}


_OWN_SIZE = without("own-size-credit", HASH_IS_CONTENT)

_BOOK = {"cache_size": 12, "referenced_rows": 3, "idle_rows": 2, "rows": 4}


@theorem(
    GROUP,
    claim="slots-conserved",
    sentence="taking a reference to an unreferenced entry keeps both totals equal to the sums",
    witness={**_BOOK, "num_free_slots": 3, "num_freeable_slots": 9, "rows_by_own_mask": 4},
    ablations=(_OWN_SIZE,),
)
def _hit_keeps_totals(v: Vocabulary) -> Formula:
    book, rows = _a_book(v), v.integer("rows")
    own, content = _same_content(v, rows)
    before = book.agrees(book.free, book.freeable, referenced=0, idle=rows)
    return Formula(
        {**_premises(book, rows, before), **content},
        book.agrees(book.free, book.freeable - own, referenced=rows, idle=0),
        and_(rows >= 1, own >= 1),
    )


@theorem(
    GROUP,
    claim="slots-conserved",
    sentence="allocating an entry for which there is room keeps both totals equal to the sums",
    witness={**_BOOK, "num_free_slots": 7, "num_freeable_slots": 9},
    ablations=(without("room-not-asked-for", ROOM_ASKED),),
)
def _allocate_keeps_totals(v: Vocabulary) -> Formula:
    book, rows = _a_book(v), v.integer("rows")
    before = book.agrees(book.free, book.freeable, referenced=0, idle=0)
    return Formula(
        {**_premises(book, rows, before), ROOM_ASKED: rows <= book.free},
        book.agrees(book.free - rows, book.freeable - rows, referenced=rows, idle=0),
    )


@theorem(
    GROUP,
    claim="slots-conserved",
    sentence="evicting an unreferenced entry keeps both totals equal to the sums",
    witness={**_BOOK, "num_free_slots": 3, "num_freeable_slots": 9},
    ablations=(changed("not-credited", credit=False),),
)
def _evict_keeps_totals(v: Vocabulary, credit: bool = True) -> Formula:
    book, rows = _a_book(v), v.integer("rows")
    before = book.agrees(book.free, book.freeable, referenced=0, idle=rows)
    credited = rows if credit else 0
    return Formula(
        _premises(book, rows, before),
        book.agrees(book.free + credited, book.freeable, referenced=0, idle=0),
    )


@theorem(
    GROUP,
    claim="slots-conserved",
    sentence="dropping the last reference to an entry keeps both totals equal to the sums",
    witness={**_BOOK, "num_free_slots": 3, "num_freeable_slots": 5, "rows_by_own_mask": 4},
    ablations=(_OWN_SIZE, changed("credited-again", times=2)),
)
def _drop_keeps_totals(v: Vocabulary, times: int = 1) -> Formula:
    book, rows = _a_book(v), v.integer("rows")
    own, content = _same_content(v, rows)
    before = book.agrees(book.free, book.freeable, referenced=rows, idle=0)
    return Formula(
        {**_premises(book, rows, before), **content},
        book.agrees(book.free, book.freeable + times * own, referenced=0, idle=rows),
        and_(rows >= 1, own >= 1),
    )


@theorem(
    GROUP,
    claim="book-exact",
    sentence="while an item that fits the freeable slots lacks room, there is an unreferenced "
    "entry to evict",
    witness={**_BOOK, "rows": 8, "num_free_slots": 7, "num_freeable_slots": 9},
    ablations=(without("room-not-promised", "room-promised"),),
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


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
