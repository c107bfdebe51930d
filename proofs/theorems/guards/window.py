"""The window search: two bisections select exactly the features that meet the window.

For any number of features: bisection finds its place among sorted keys (group ``bisection``), both
keys are sorted because features are sorted and disjoint (``window.neighbours-suffice``,
``window.ends-increase``), and the two places found cut out the overlapping features
(``window.places-select-overlapping``). For two features the whole search is written out as well
(``window.search-selects-overlapping``), which gives the smallest counterexample when one feature
nests in another.
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import (
    FEATURES_NOT_EMPTY,
    SORTED_DISJOINT,
    STEP_NOT_EMPTY,
    a_span,
    counts,
)
from spec.algebra import IntTerm, and_, iff, ite, or_
from spec.rules import geometry

GROUP = Group("window")

_EMPTY = (without("empty-feature", FEATURES_NOT_EMPTY), without("empty-step", STEP_NOT_EMPTY))

_SPAN = {"offset": 4, "length": 4, "start": 2, "end": 6}


@theorem(
    GROUP,
    claim="window-exact",
    sentence="the two-comparison overlap test means that feature and window share a position",
    witness={**_SPAN},
    ablations=_EMPTY,
)
def _overlap_is_meeting(v: Vocabulary) -> Formula:
    span = a_span(v)
    start, end = integers(v, "start end")
    return Formula(
        {FEATURES_NOT_EMPTY: span.length >= 1, STEP_NOT_EMPTY: end - start >= 1},
        iff(
            geometry.overlaps(span.offset, span.length, start, end),
            geometry.meets(span.offset, span.length, start, end),
        ),
        counts(span.offset, span.length, start, end - start),
    )


@theorem(
    GROUP,
    claim="window-exact",
    sentence="the two conditions of the search keep exactly the features that share a position "
    "with the window",
    witness={**_SPAN},
    ablations=_EMPTY,
)
def _selected_is_meeting(v: Vocabulary) -> Formula:
    span = a_span(v)
    start, end = integers(v, "start end")
    return Formula(
        {FEATURES_NOT_EMPTY: span.length >= 1, STEP_NOT_EMPTY: end - start >= 1},
        iff(
            geometry.selected_by_window_search(span.offset, span.length, start, end),
            geometry.meets(span.offset, span.length, start, end),
        ),
        counts(span.offset, span.length, start, end - start),
    )


@theorem(
    GROUP,
    claim="window-exact",
    sentence="features whose neighbours are disjoint are disjoint at any distance (induction step)",
    witness={"first_end": 4, "offset": 4, "length": 4, "next_offset": 9},
    ablations=(
        without("negative-length", "length-not-negative"),
        without("next-overlaps", "next-is-disjoint"),
    ),
)
def _neighbours_suffice(v: Vocabulary) -> Formula:
    first_end, offset, length, next_offset = integers(v, "first_end offset length next_offset")
    return Formula(
        {
            "disjoint-so-far": first_end <= offset,
            "next-is-disjoint": offset + length <= next_offset,
            "length-not-negative": length >= 0,
        },
        first_end <= next_offset,
    )


_NESTED = without("nested-features", SORTED_DISJOINT)


@theorem(
    GROUP,
    claim="window-exact",
    sentence="the ends of sorted, disjoint features are sorted as well",
    witness={"left_offset": 0, "left_length": 4, "right_offset": 4, "right_length": 4},
    ablations=(_NESTED,),
)
def _ends_increase(v: Vocabulary) -> Formula:
    left, left_length, right, right_length = integers(
        v, "left_offset left_length right_offset right_length"
    )
    return Formula(
        {
            "lengths-not-negative": counts(left_length, right_length),
            SORTED_DISJOINT: left + left_length <= right,
        },
        and_(left <= right, left + left_length <= right + right_length),
        and_(counts(left, left_length - 1, right_length - 1), left <= right),
    )


@theorem(
    GROUP,
    claim="window-exact",
    sentence="of any number of features, those between the two places found are exactly those "
    "that share a position with the window",
    witness={**_SPAN, "index": 1, "first": 1, "last": 2},
    ablations=(*_EMPTY, changed("ends-at-start", beyond_start=0)),
)
def _places_select_overlapping(v: Vocabulary, beyond_start: int = 1) -> Formula:
    index, first, last = integers(v, "index first last")
    span = a_span(v)
    start, end = integers(v, "start end")
    return Formula(
        {
            FEATURES_NOT_EMPTY: span.length >= 1,
            STEP_NOT_EMPTY: end - start >= 1,
            "first-place-found": iff(index < first, span.end < start + beyond_start),
            "last-place-found": iff(index < last, span.offset < end),
        },
        iff(
            and_(first <= index, index < last), geometry.meets(span.offset, span.length, start, end)
        ),
        counts(index, span.offset, span.length, start, end - start),
    )


@theorem(
    GROUP,
    claim="window-exact",
    sentence="the search among two sorted, disjoint features, written out, selects exactly "
    "those that share a position with the window",
    witness={"a_offset": 0, "a_length": 4, "b_offset": 4, "b_length": 4, "start": 3, "end": 5},
    ablations=(
        _NESTED,
        changed("unsorted-features", drops=(SORTED_DISJOINT,), offsets_sorted=False),
        *_EMPTY,
    ),
)
def _search_selects_overlapping(v: Vocabulary, offsets_sorted: bool = True) -> Formula:
    a_offset, a_length, b_offset, b_length = integers(v, "a_offset a_length b_offset b_length")
    start, end = integers(v, "start end")

    def bisect(a_key: IntTerm, b_key: IntTerm, wanted: IntTerm) -> IntTerm:
        """Bisection of two keys: the first midpoint is index 1, the second index 0."""
        return ite(b_key < wanted, 2, ite(a_key < wanted, 1, 0))

    first = bisect(a_offset + a_length, b_offset + b_length, start + 1)
    last = bisect(a_offset, b_offset, end)
    return Formula(
        {
            FEATURES_NOT_EMPTY: and_(a_length >= 1, b_length >= 1),
            STEP_NOT_EMPTY: start < end,
            SORTED_DISJOINT: a_offset + a_length <= b_offset,
        },
        and_(
            iff(and_(first <= 0, last > 0), geometry.meets(a_offset, a_length, start, end)),
            iff(and_(first <= 1, last > 1), geometry.meets(b_offset, b_length, start, end)),
        ),
        and_(
            counts(a_offset, a_length, b_offset, b_length, start, end - start),
            or_(not offsets_sorted, a_offset <= b_offset),
        ),
    )


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
