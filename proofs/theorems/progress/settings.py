"""From a layout to settings: how many rows can be held where it matters, and that they can be."""

from __future__ import annotations

from proofs.smt.obligation import Formula
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import SORTED_DISJOINT
from proofs.theorems.progress.scene import FITS_ALONE, NAME
from proofs.theorems.theorem import Group, changed, theorem, without
from spec.algebra import and_, iff, implies, max_, min_
from spec.rules.scheduling import has_room
from spec.rules.stop_conditions import chunks_below_shift_stop, neighbours_stop, whole_item_stops
from spec.rules.stop_settings import (
    most_rows_in_reach,
    neighbours_can_stop,
    reservation_can_stop,
    whole_items_can_stop,
)
from spec.rules.stopping_passes import Item, Shifts

PART = Group(NAME)

_ROWS = "rows-at-most-tokens"
_LARGEST = "no-item-larger"
_STEP = "those-behind-it"


@theorem(
    PART,
    claim="no-stall",
    sentence="disjoint items that end in the last q tokens before a position have at most the "
    "largest item's rows and q - 1 more",
    witness={
        "position": 5,
        "reach": 2,
        "largest_rows": 4,
        "offset": 0,
        "length": 4,
        "rows": 4,
        "rows_behind": 1,
        "begin_of_those_behind": 4,
    },
    ablations=(
        without("more-rows-than-tokens", _ROWS),
        without("overlapping-items", SORTED_DISJOINT),
        without("out-of-reach", "ends-in-reach"),
    ),
)
def _rows_in_reach(v: Vocabulary) -> Formula:
    """Step of an induction over items, from the position backwards."""
    position, reach, largest = integers(v, "position reach largest_rows")
    item = Item(*integers(v, "offset length rows"))
    behind, begin = integers(v, "rows_behind begin_of_those_behind")
    return Formula(
        {
            _STEP: behind <= position - begin,
            SORTED_DISJOINT: item.end <= begin,
            "ends-in-reach": item.end > position - reach,
            _ROWS: item.rows <= item.length,
            _LARGEST: item.rows <= largest,
        },
        and_(
            behind + item.rows <= most_rows_in_reach(largest, reach),
            behind + item.rows <= position - item.offset,
        ),
        and_(item.offset >= 0, item.rows >= 1, behind >= 0, begin <= position, reach >= 1),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="where that many rows and the largest item do not fit the cache, one item, single "
    "tokens behind it and the largest item make such a prompt",
    witness={"cache_size": 8, "largest_rows": 4, "reach": 2},
    ablations=(
        without("larger-than-the-cache", FITS_ALONE),
        without("everything-fits", "settings-allow-it"),
    ),
)
def _reach_is_attained(v: Vocabulary) -> Formula:
    """One more row than the cache has: an item, tokens of one row each, and the largest item."""
    cache, largest, reach = integers(v, "cache_size largest_rows reach")
    before = cache + 1 - largest
    first = min_(before, largest)
    singles = before - first
    return Formula(
        {
            FITS_ALONE: and_(largest >= 1, largest <= cache),
            "settings-allow-it": neighbours_can_stop(cache, largest, reach),
        },
        and_(
            first >= 1,
            first <= largest,
            singles >= 0,
            # The item ends where the single tokens begin, which is in reach of the second.
            singles < reach,
            first + singles + largest > cache,
        ),
        largest >= 1,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="where two of the largest items do not fit the cache, two items side by side stop "
    "under any margin and any shift of the cut",
    witness={"cache_size": 7, "largest_rows": 4, "margin": 0, "cut_shift": 1},
    ablations=(without("two-fit", "two-do-not-fit"), without("neither", "held-or-shifted")),
)
def _pair_is_attained(v: Vocabulary) -> Formula:
    """Two items side by side, as large as need be."""
    cache, largest, margin, shift = integers(v, "cache_size largest_rows margin cut_shift")
    rows = max_(cache + 1 - largest, 1)
    first, second = Item(0, rows, rows), Item(rows, largest, largest)
    stops = neighbours_stop(first, second, cache, Shifts(shift, margin, shift))
    return Formula(
        {
            "two-do-not-fit": largest + largest > cache,
            "held-or-shifted": margin + shift >= 1,
            "item-not-empty": largest >= 1,
        },
        and_(stops, rows <= largest),
        and_(largest <= cache, margin >= 0, shift >= 0),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="where the largest item and one row less than the shift do not fit the cache, an "
    "item and single tokens at the prompt's end stop under the reservation: all of them end, "
    "and the last one starts, in the last shift",
    witness={"cache_size": 4, "largest_rows": 4, "window_shift": 2},
    ablations=(without("everything-fits", "settings-allow-it"), without("empty-items", FITS_ALONE)),
)
def _near_the_end_is_attained(v: Vocabulary) -> Formula:
    """A prompt of one more row than the cache has: an item, and tokens of one row each."""
    cache, largest, shift = integers(v, "cache_size largest_rows window_shift")
    first = min_(cache, largest)
    singles = cache + 1 - first
    last = cache + 1 - shift
    return Formula(
        {
            FITS_ALONE: and_(largest >= 1, largest <= cache),
            "settings-allow-it": reservation_can_stop(cache, largest, shift),
        },
        and_(first >= 1, singles >= 1, first > last, first + singles - 1 > last),
        shift >= 1,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="some whole item up to the largest stops exactly if the largest does, the cut's "
    "shift from the start",
    witness={
        "largest_item": 4,
        "length": 4,
        "lead": 1,
        "chunk_limit": 4,
        "cut_shift": 1,
        "spares_start": True,
    },
    ablations=(without("a-larger-item", _LARGEST),),
)
def _whole_items_are_exact(v: Vocabulary) -> Formula:
    """Over all items up to the largest and all places: the worst one decides."""
    largest, length, lead, limit, cut = integers(
        v, "largest_item length lead chunk_limit cut_shift"
    )
    spares = v.boolean("spares_start")
    worst = whole_item_stops(largest, cut, limit, cut, spares)
    can_stop = whole_items_can_stop(largest, limit, cut, spares)
    this = whole_item_stops(length, lead, limit, cut, spares)
    return Formula(
        {_LARGEST: length <= largest},
        and_(iff(worst, can_stop), implies(this, can_stop)),
        and_(length >= 1, lead >= 0, cut >= 0, limit >= 1),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="with chunks below the shift, the shortest prompt that stops has one token more "
    "than a chunk",
    witness={"chunk_limit": 1, "window_shift": 2, "num_tokens_left": 2},
    ablations=(without("chunks-as-long-as-the-shift", "too-short"),),
)
def _short_chunks_are_exact(v: Vocabulary) -> Formula:
    """A prompt of one token more than a chunk stops, and only chunks below the shift do."""
    limit, shift, left = integers(v, "chunk_limit window_shift num_tokens_left")
    return Formula(
        {"too-short": limit < shift},
        and_(
            chunks_below_shift_stop(limit + 1, limit, shift),
            implies(chunks_below_shift_stop(left, limit, shift), limit + 1 <= left),
        ),
        and_(limit >= 1, left >= 1),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="where the most that each of the stopped requests can hold fits the cache beside "
    "the next item, that item is not refused",
    witness={
        "held_by_those_before": 4,
        "held_by_the_next": 4,
        "bound": 4,
        "at_most": 4,
        "rows": 4,
        "refused_rows": 4,
        "cache_size": 12,
        "encoder_budget": 4,
    },
    ablations=(
        changed("larger-item", most_refused=False),
        without("too-small-a-cache", "bound-and-item-fit"),
    ),
)
def _others_leave_room(v: Vocabulary, most_refused: bool = True) -> Formula:
    """Step of an induction over stopped requests, with the bound so far."""
    held, own, bound, at_most = integers(v, "held_by_those_before held_by_the_next bound at_most")
    rows, refused, cache, budget = integers(v, "rows refused_rows cache_size encoder_budget")
    premises = {
        _STEP: held <= bound,
        "next-holds-at-most": own <= at_most,
        "bound-and-item-fit": bound + at_most + refused <= cache,
        "encoder-budget": rows <= budget,
    }
    if most_refused:
        premises[_LARGEST] = rows <= refused
    return Formula(
        premises,
        and_(held + own <= bound + at_most, has_room(rows, budget, 0, cache - (held + own))),
        and_(held >= 0, own >= 0, rows >= 1, refused >= 1, at_most >= 0),
    )
