"""Chunks: with chunking of items off, no chunk splits an item, whatever rules cut it.

A request's search for encoder inputs goes through its features in order and changes the end of the
chunk on the way; the reservation near the prefill's end comes last. The relation takes as a guard
that no item is split (``residency.items-stay-whole``); here it is shown of the rules themselves,
for any number of features. *f* is any item that the chunk starts at or before, *g* any other
feature at which the search changes the chunk. Features are sorted and disjoint, so that *g* lies
before or behind *f*:

* at *f* itself the chunk is extended to its end or cut before it (``examined-item-is-whole``);
* at *g* behind *f*, refused or not to be split, the chunk ends at *g*'s start
  (``cut-behind-keeps-whole``); where the search stopped before it came to *f*, the chunk ends
  before *f* (``cut-before-keeps-whole``); a chunk that was extended over *g* ends at *g*'s end
  (``extended-chunk-keeps-whole``);
* the reservation shortens the chunk up to the item that it would split
  (``reservation-keeps-whole``), and never past what was refused (``reservation-keeps-cut``).
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import SORTED_DISJOINT
from spec.algebra import BoolTerm, IntTerm, and_, implies, ite, not_, or_
from spec.rules import chunk_ends

GROUP = Group("chunks")


def _whole(offset: IntTerm, end: IntTerm, start: IntTerm, num_tokens: IntTerm) -> BoolTerm:
    return not_(chunk_ends.splits_item(offset, end, start, num_tokens))


def _plain(*spans: tuple[IntTerm, IntTerm], counts: tuple[IntTerm, ...]) -> BoolTerm:
    """Items of some length, and counts that are not negative."""
    return and_(
        *(and_(offset >= 0, offset < end) for offset, end in spans),
        *(count >= 0 for count in counts),
    )


_ITEM = {"offset": 1, "end": 3, "start": 1, "num_tokens": 1}


@theorem(
    GROUP,
    claim="item-whole",
    sentence="an item that the search comes to is run to its end, or not begun",
    witness={**_ITEM, "available_tokens": 2},
    ablations=(
        changed("item-split-at-start", at_start_only=True),
        changed("cut-one-late", cut_shift=1),
    ),
)
def _examined_item_is_whole(
    v: Vocabulary, cut_shift: int = 0, at_start_only: bool = False
) -> Formula:
    """The search comes to f and would split it."""
    offset, end, start, num_tokens, available = integers(
        v, "offset end start num_tokens available_tokens"
    )
    extended = chunk_ends.extends_over_item(offset, end, start, available)
    cut = chunk_ends.whole_item_cut(offset, start, -cut_shift)
    left = ite(extended, end - start, cut)
    splits = chunk_ends.splits_item(offset, end, start, num_tokens)
    if at_start_only:
        splits = and_(splits, start < offset)
    chunk = ite(splits, left, num_tokens)
    return Formula(
        {},
        _whole(offset, end, start, chunk),
        _plain((offset, end), counts=(start, num_tokens, available)),
    )


@theorem(
    GROUP,
    claim="item-whole",
    sentence="a cut at a feature behind an item does not split the item",
    witness={**_ITEM, "num_tokens": 5, "g_offset": 4},
    ablations=(changed("shifted-cut", cut_shift=1), without("features-overlap", SORTED_DISJOINT)),
)
def _cut_behind_keeps_whole(v: Vocabulary, cut_shift: int = 0) -> Formula:
    """The search went past f and cuts at g behind it."""
    offset, end, start, num_tokens, other_offset = integers(
        v, "offset end start num_tokens g_offset"
    )
    chunk = chunk_ends.refused_cut(other_offset, start, num_tokens, cut_shift)
    return Formula(
        {
            "whole-before": _whole(offset, end, start, num_tokens),
            SORTED_DISJOINT: end <= other_offset,
        },
        _whole(offset, end, start, chunk),
        _plain((offset, end), counts=(start, num_tokens, other_offset)),
    )


@theorem(
    GROUP,
    claim="item-whole",
    sentence="a cut before an item leaves the item out",
    witness={**_ITEM, "start": 0, "num_tokens": 2, "g_offset": 0},
    ablations=(changed("cut-two-late", late=2), without("features-overlap", SORTED_DISJOINT)),
)
def _cut_before_keeps_whole(v: Vocabulary, late: int = 0) -> Formula:
    """The search stopped at g before it came to f."""
    offset, end, start, num_tokens, other_offset = integers(
        v, "offset end start num_tokens g_offset"
    )
    chunk = chunk_ends.refused_cut(other_offset, start, num_tokens, -late)
    return Formula(
        {SORTED_DISJOINT: other_offset < offset},
        _whole(offset, end, start, chunk),
        _plain((offset, end), counts=(start, num_tokens, other_offset)),
    )


@theorem(
    GROUP,
    claim="item-whole",
    sentence="a chunk that was extended to the end of the item it starts on begins no other",
    witness={"offset": 2, "end": 4, "start": 0, "g_end": 2},
    ablations=(changed("extended-further", more=1), without("features-overlap", SORTED_DISJOINT)),
)
def _extended_chunk_keeps_whole(v: Vocabulary, more: int = 0) -> Formula:
    """The chunk starts on g and was extended to its end; f lies behind."""
    offset, end, start, other_end = integers(v, "offset end start g_end")
    return Formula(
        {SORTED_DISJOINT: other_end <= offset},
        _whole(offset, end, start, other_end + more - start),
        _plain((offset, end), counts=(start, other_end)),
    )


@theorem(
    GROUP,
    claim="item-whole",
    sentence="the reservation near the prefill's end splits no item",
    witness={
        "offset": 0,
        "end": 3,
        "start": 0,
        "num_tokens": 6,
        "num_known_tokens": 7,
        "scheduler_lookahead": 3,
        "g_offset": 3,
        "g_end": 5,
        "splits_g": True,
    },
    ablations=(
        changed("reservation-after-cut", looks_at_items=False),
        without("features-overlap", "g-is-f-or-apart"),
    ),
)
def _reservation_keeps_whole(v: Vocabulary, looks_at_items: bool = True) -> Formula:
    """The reservation shortens a chunk that splits nothing; g is the first item that it splits."""
    offset, end, start, num_tokens, num_known, shift = integers(
        v, "offset end start num_tokens num_known_tokens scheduler_lookahead"
    )
    other_offset, other_end = integers(v, "g_offset g_end")
    splits_other = v.boolean("splits_g")
    shorter = chunk_ends.reserving_chunk(start, num_tokens, num_known, shift)
    before_item = ite(splits_other, other_offset - start, shorter) if looks_at_items else shorter
    chunk = chunk_ends.reserved_chunk(num_tokens, before_item)
    return Formula(
        {
            "whole-before": _whole(offset, end, start, num_tokens),
            "g-is-what-it-splits": and_(
                implies(
                    splits_other, chunk_ends.splits_item(other_offset, other_end, start, shorter)
                ),
                implies(chunk_ends.splits_item(offset, end, start, shorter), splits_other),
            ),
            "g-is-f-or-apart": or_(
                end <= other_offset,
                other_end <= offset,
                and_(offset <= other_offset, other_offset <= offset),
            ),
        },
        _whole(offset, end, start, chunk),
        _plain(
            (offset, end), (other_offset, other_end), counts=(start, num_tokens, num_known, shift)
        ),
    )


@theorem(
    GROUP,
    claim="need-agrees",
    sentence="the reservation keeps a chunk before what was refused",
    witness={
        "start": 0,
        "num_tokens": 4,
        "num_known_tokens": 6,
        "scheduler_lookahead": 3,
        "g_offset": 4,
    },
    ablations=(changed("longer", added=1),),
)
def _reservation_keeps_cut(v: Vocabulary, added: int = 0) -> Formula:
    """A chunk that ends before what was refused still does when it is shortened."""
    start, num_tokens, num_known, shift, item_offset = integers(
        v, "start num_tokens num_known_tokens scheduler_lookahead g_offset"
    )
    shorter = chunk_ends.reserving_chunk(start, num_tokens, num_known, shift)
    chunk = chunk_ends.reserved_chunk(num_tokens, shorter) + added
    return Formula(
        {"ends-before-it": start + num_tokens <= item_offset},
        start + chunk <= item_offset,
        and_(start >= 0, num_tokens >= 1, num_known >= 0, shift >= 0, item_offset >= 0),
    )


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
