"""From a layout to settings: how many rows can be held where it matters, and that they can be."""

from __future__ import annotations

from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import SORTED_DISJOINT
from proofs.theorems.progress.pairs import same
from proofs.theorems.progress.scene import FITS_ALONE, NAME, REACHED, a_pair
from spec.algebra import and_, eq, iff, implies, ite, max_, min_, not_
from spec.rules.encoder_inputs import has_room
from spec.rules.releases import Shifts
from spec.rules.stop_conditions import (
    boundary_splits_the_end,
    chunks_below_shift_stop,
    neighbours_near_the_end_stop,
    neighbours_stop,
    neighbours_stop_at_start,
    whole_item_stops,
)
from spec.rules.stop_settings import (
    boundary_reach,
    budget_can_stop,
    most_rows_in_reach,
    neighbours_can_stop,
    others_keep_out,
    requests_may_stop_each_other,
    reservation_can_stop,
    reserving_budget_can_stop,
    whole_items_can_stop,
)
from spec.rules.stopping_passes import (
    Item,
    is_still_held,
    pair_after,
    tokens_after_reservation,
    tokens_of_pair,
)

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
    stops = whole_item_stops(length, lead, limit, cut, spares)
    return Formula(
        {_LARGEST: length <= largest},
        and_(iff(worst, can_stop), implies(stops, can_stop)),
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


_HELD = "rows-held-in-reach"
_STOPPED = "such-items-stop"


@theorem(
    PART,
    claim="no-stall",
    sentence="no items up to the largest stop their request where the settings rule it out: what "
    "is held in reach and one more item fit the cache",
    witness={
        "cache_size": 4,
        "largest_rows": 4,
        "margin": 0,
        "cut_shift": 1,
        "held_end": 4,
        "held_rows": 4,
        "second_offset": 4,
        "second_rows": 4,
    },
    ablations=(
        without("more-held-than-in-reach", _HELD),
        without("a-larger-item", _LARGEST),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _neighbours_need_the_settings(v: Vocabulary) -> Formula:
    """The items that are held, as one; ``rows-in-reach`` bounds their rows."""
    cache, largest, margin, cut = integers(v, "cache_size largest_rows margin cut_shift")
    end, rows = integers(v, "held_end held_rows")
    held, second = Item(0, end, rows), Item(*integers(v, "second_offset second_rows second_rows"))
    shifts = Shifts(cut, margin, cut)
    return Formula(
        {
            _STOPPED: neighbours_stop(held, second, cache, shifts),
            _HELD: rows <= most_rows_in_reach(largest, shifts.reach),
            _LARGEST: second.rows <= largest,
            SORTED_DISJOINT: held.end <= second.offset,
        },
        neighbours_can_stop(cache, largest, shifts.reach),
        and_(largest >= 1, largest <= cache, margin >= 0, cut >= 0, end >= 1, rows >= 1),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="no items up to the largest stop their request under the reservation where the "
    "settings rule it out: all that end in the prompt's last shift fit the cache",
    witness={
        "cache_size": 4,
        "largest_rows": 4,
        "window_shift": 2,
        "num_prompt_tokens": 5,
        "held_end": 4,
        "held_rows": 4,
        "second_offset": 4,
        "second_length": 1,
        "second_rows": 1,
    },
    ablations=(
        without("more-rows-than-in-reach", _HELD),
        without("larger-than-the-cache", FITS_ALONE),
    ),
)
def _near_the_end_needs_the_settings(v: Vocabulary) -> Formula:
    """The items that are held, as one; the refused one ends in the last shift as well."""
    cache, largest, shift, prompt = integers(
        v, "cache_size largest_rows window_shift num_prompt_tokens"
    )
    end, rows = integers(v, "held_end held_rows")
    held = Item(0, end, rows)
    second = Item(*integers(v, "second_offset second_length second_rows"))
    return Formula(
        {
            _STOPPED: neighbours_near_the_end_stop(held, second, cache, prompt, shift),
            _HELD: held.rows + second.rows <= most_rows_in_reach(largest, shift),
            FITS_ALONE: largest <= cache,
        },
        reservation_can_stop(cache, largest, shift),
        and_(
            held.end <= second.offset,
            *(count >= 1 for count in (largest, end, rows, second.length, second.rows)),
        ),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="items up to the largest exceed the encoder budget at a request's start only where "
    "the settings allow it: those before the refused one end in the cut's shift before it",
    witness={
        "encoder_budget": 4,
        "largest_rows": 4,
        "cut_shift": 1,
        "starts_inside": True,
        "start": 3,
        "first_offset": 0,
        "first_length": 4,
        "first_rows": 4,
        "second_offset": 4,
        "second_length": 4,
        "second_rows": 4,
    },
    ablations=(
        without("more-rows-than-in-reach", _HELD),
        without("a-larger-item", _LARGEST),
        without("overlapping-items", SORTED_DISJOINT),
        without("more-rows-than-tokens", _ROWS),
    ),
)
def _budget_needs_the_settings(v: Vocabulary) -> Formula:
    """The items before the refused one, as one item."""
    budget, largest, cut, start = integers(v, "encoder_budget largest_rows cut_shift start")
    inside = v.boolean("starts_inside")
    first = Item(*integers(v, "first_offset first_length first_rows"))
    second = Item(*integers(v, "second_offset second_length second_rows"))
    return Formula(
        {
            _STOPPED: neighbours_stop_at_start(first, second, start, budget, Shifts(cut, 0, cut)),
            _HELD: implies(inside, first.rows <= most_rows_in_reach(largest, cut)),
            _LARGEST: second.rows <= largest,
            SORTED_DISJOINT: first.end <= second.offset,
            _ROWS: implies(not_(inside), and_(first.offset >= start, first.rows <= first.length)),
        },
        budget_can_stop(budget, largest, cut, inside),
        and_(largest >= 1, largest <= budget, cut >= 0, first.rows >= 1, second.rows >= 1),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="where the settings allow it, an item that reaches one token past the start, or one "
    "token of a row at the start, single tokens behind it and the largest item stop such a request",
    witness={
        "encoder_budget": 4,
        "largest_rows": 4,
        "cut_shift": 1,
        "starts_inside": True,
        "start": 3,
    },
    ablations=(without("everything-fits", "settings-allow-it"),),
)
def _budget_is_attained(v: Vocabulary) -> Formula:
    """From the first token past the start, each token up to the largest item is an item."""
    budget, largest, cut, start = integers(v, "encoder_budget largest_rows cut_shift start")
    inside = v.boolean("starts_inside")
    rows = ite(inside, largest + cut - 1, cut)
    before, second = Item(start, cut, rows), Item(start + cut, largest, largest)
    return Formula(
        {"settings-allow-it": budget_can_stop(budget, largest, cut, inside)},
        and_(
            neighbours_stop_at_start(before, second, start, budget, Shifts(cut, 0, cut)),
            before.length >= 1,
        ),
        and_(
            largest >= 1,
            largest <= budget,
            start >= 0,
            cut >= 0,
            implies(not_(inside), eq(start, 0)),
        ),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="items that exceed the encoder budget in a prompt whose rest is no longer than the "
    "shift: under the reservation the first pass changes nothing, and the settings allow it",
    witness={
        "first_offset": 0,
        "first_length": 4,
        "first_rows": 4,
        "second_offset": 4,
        "second_length": 1,
        "second_rows": 1,
        "cache_size": 8,
        "encoder_budget": 4,
        "window_shift": 2,
        "num_computed_tokens": 3,
        "holds_first": False,
        "holds_second": False,
        "num_asked_tokens": 2,
        "num_prompt_tokens": 5,
        "largest_rows": 4,
        "starts_inside": True,
    },
    ablations=(
        without("more-rows-than-in-reach", _HELD),
        without("overlapping-items", SORTED_DISJOINT),
        without("longer-rest", "rest-within-the-shift"),
        without("second-is-held", REACHED),
    ),
)
def _reserving_budget_stays(v: Vocabulary) -> Formula:
    """A pair under the reservation that insists; no shift of the cut and no margin."""
    pair = a_pair(v, is_shifted=False)
    first, second, progress = pair.first, pair.second, pair.state.progress
    prompt, largest = integers(v, "num_prompt_tokens largest_rows")
    inside = v.boolean("starts_inside")
    shift, budget = pair.shifts.window, pair.room.encoder_budget
    scene = (first, second, pair.state, pair.asked)
    cut = tokens_of_pair(*scene, pair.room, pair.shifts)
    after = pair_after(
        *scene, tokens_after_reservation(progress, cut, prompt, shift), pair.room, pair.shifts
    )
    in_reach = ite(inside, most_rows_in_reach(largest, shift), prompt - progress)
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            "exceed-the-budget": first.rows + second.rows > budget,
            _HELD: first.rows + second.rows <= in_reach,
            REACHED: and_(not_(pair.state.holds_first), not_(pair.state.holds_second)),
            "not-passed": first.end > progress,
            "item-in-prompt": second.end <= prompt,
            "rest-within-the-shift": prompt <= progress + shift,
        },
        and_(same(pair.state, after), reserving_budget_can_stop(budget, largest, shift, inside)),
        and_(
            pair.realistic,
            pair.each_fits,
            pair.asked >= 1,
            progress + pair.asked <= prompt,
            largest >= 1,
            largest <= budget,
        ),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="where the settings allow it, a prompt of the shift's length is full of items that "
    "exceed the encoder budget, the last of them a single token",
    witness={"encoder_budget": 4, "largest_rows": 4, "window_shift": 2, "starts_inside": True},
    ablations=(
        without("everything-fits", "settings-allow-it"),
        without("larger-than-the-budget", FITS_ALONE),
    ),
)
def _reserving_budget_is_attained(v: Vocabulary) -> Formula:
    """The item that reaches one token past the start, if one may, and single tokens behind it."""
    budget, largest, shift = integers(v, "encoder_budget largest_rows window_shift")
    inside = v.boolean("starts_inside")
    singles = shift - 1
    first = ite(inside, largest, 1)
    return Formula(
        {
            FITS_ALONE: and_(largest >= 1, largest <= budget),
            "settings-allow-it": reserving_budget_can_stop(budget, largest, shift, inside),
        },
        and_(singles >= 1, first + singles > budget, first <= budget),
        shift >= 0,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="where each of up to four stopped requests holds the most that it can, the next "
    "one's item is refused exactly if the settings say that it may be",
    witness={"held_at_most": 2, "refused_rows": 4, "cache_size": 6, "encoder_budget": 4},
    ablations=(changed("one-row-less", less=1), without("larger-than-the-budget", FITS_ALONE)),
)
def _others_at_their_most(v: Vocabulary, less: int = 0) -> Formula:
    """A product of variables is no linear term; four requests tell each change of the rule."""
    each, rows, cache, budget = integers(v, "held_at_most refused_rows cache_size encoder_budget")
    return Formula(
        {FITS_ALONE: rows <= budget},
        and_(
            *(
                iff(
                    requests_may_stop_each_other(requests, each, rows, cache),
                    not_(has_room(rows, budget, 0, cache - requests * each + less)),
                )
                for requests in range(1, 5)
            )
        ),
        and_(each >= 0, rows >= 1, cache >= 0),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="what others hold keeps an item out exactly if it is refused beside that and what the "
    "request holds itself",
    witness={
        "held_rows": 4,
        "refused_rows": 4,
        "held_by_others": 4,
        "cache_size": 10,
        "encoder_budget": 4,
    },
    ablations=(without("larger-than-the-budget", FITS_ALONE),),
)
def _others_keep_out_is_refusing(v: Vocabulary) -> Formula:
    held, rows, rows_of_others, cache, budget = integers(
        v, "held_rows refused_rows held_by_others cache_size encoder_budget"
    )
    return Formula(
        {FITS_ALONE: rows <= budget},
        iff(
            others_keep_out(held, rows, rows_of_others, cache),
            not_(has_room(rows, budget, 0, cache - held - rows_of_others)),
        ),
        and_(held >= 0, rows >= 1, rows_of_others >= 0),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="an item that is still held where the last chunk starts, a block before the last "
    "boundary, ends in that reach of the prompt's end; where the prompt ends as far behind the "
    "boundary as it can and stop, every such item is held",
    witness={
        "block_size": 8,
        "window_shift": 2,
        "margin": 0,
        "num_prompt_tokens": 9,
        "boundary_before_prompt": 8,
        "offset": 0,
        "length": 4,
        "rows": 4,
    },
    ablations=(
        without("boundary-elsewhere", _STOPPED),
        changed("block-one-longer", longer=1),
    ),
)
def _boundary_reach_is_exact(v: Vocabulary, longer: int = 0) -> Formula:
    block, shift, margin, prompt, before = integers(
        v, "block_size window_shift margin num_prompt_tokens boundary_before_prompt"
    )
    item = Item(*integers(v, "offset length rows"))
    held = is_still_held(item, margin, before - block - longer)
    in_reach = item.end > prompt - boundary_reach(block, shift, margin)
    return Formula(
        {_STOPPED: boundary_splits_the_end(prompt, before, shift)},
        and_(
            implies(held, in_reach),
            implies(and_(eq(prompt, before + shift - 1), in_reach), held),
        ),
        and_(block >= 1, margin >= 0, item.offset >= 0, item.length >= 1, before >= block),
    )
