"""Two items of a prompt that do not fit together: when exactly their request stops for ever."""

from __future__ import annotations

from dataclasses import replace

from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, theorem, without
from proofs.smt.vocabulary import Vocabulary
from proofs.theorems.progress.scene import (
    ASKS_FOR_TOKENS,
    AT_THE_STOP,
    BEFORE_THE_STOP,
    BUDGET_FOR_BOTH,
    CACHE_FOR_BOTH,
    FITS_ALONE,
    GOES_ON,
    MARGIN_NOT_NEGATIVE,
    NAME,
    PAIR_WITNESS,
    REACHED,
    SORTED_DISJOINT,
    STOPS,
    WINDOW_REACHES,
    Pair,
    a_pair,
)
from spec.algebra import BoolTerm, IntTerm, and_, eq, iff, implies, not_, or_
from spec.rules.stop_conditions import (
    neighbours_near_the_end_stop,
    neighbours_stop,
    neighbours_stop_at_start,
)
from spec.rules.stop_settings import others_keep_out
from spec.rules.stopping_passes import (
    PairState,
    Room,
    pair_after,
    tokens_after_reservation,
    tokens_of_pair,
)

PART = Group(NAME)


def _stops(pair: Pair) -> BoolTerm:
    return neighbours_stop(pair.first, pair.second, pair.room.cache_size, pair.shifts)


def _after(pair: Pair) -> PairState:
    scene = (pair.first, pair.second, pair.state, pair.asked)
    tokens = tokens_of_pair(*scene, pair.room, pair.shifts)
    return pair_after(*scene, tokens, pair.room, pair.shifts)


def same(before: PairState, after: PairState) -> BoolTerm:
    """Whether a pass changed nothing."""
    return and_(
        eq(before.progress, after.progress),
        iff(before.holds_first, after.holds_first),
        iff(before.holds_second, after.holds_second),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="two items that do not fit together, with a gap below margin and shift of the "
    "cut: at the cut before the second, a pass changes nothing",
    witness=PAIR_WITNESS,
    ablations=(
        without("condition-fails", STOPS),
        without("earlier", AT_THE_STOP),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _neighbours_stay(v: Vocabulary) -> Formula:
    pair = a_pair(v)
    stop = pair.second.offset - pair.shifts.cut
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: _stops(pair),
            REACHED: pair.only_first_is_taken,
            AT_THE_STOP: or_(
                eq(pair.state.progress, stop),
                and_(stop <= pair.state.progress, pair.state.progress < pair.first.end),
            ),
            MARGIN_NOT_NEGATIVE: pair.shifts.margin >= 0,
            WINDOW_REACHES: pair.window_reaches,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        same(pair.state, _after(pair)),
        pair.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="with the same condition, each pass before that raises progress, to the cut "
    "before the second item at most, and neither takes the second nor lets the first go",
    witness={**PAIR_WITNESS, "num_computed_tokens": 0, "holds_first": False},
    ablations=(
        without("condition-fails", STOPS),
        without("window-ends-short", WINDOW_REACHES),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _neighbours_get_there(v: Vocabulary) -> Formula:
    pair = a_pair(v)
    stop = pair.second.offset - pair.shifts.cut
    after = _after(pair)
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: _stops(pair),
            REACHED: pair.only_first_is_taken,
            BEFORE_THE_STOP: pair.state.progress < stop,
            WINDOW_REACHES: pair.window_reaches,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        and_(
            after.progress > pair.state.progress,
            after.progress <= stop,
            not_(after.holds_second),
            or_(after.holds_first, after.progress < pair.first.end),
        ),
        pair.realistic,
    )


_GAP = {**PAIR_WITNESS, "second_offset": 5, "num_computed_tokens": 4, "holds_first": False}


@theorem(
    PART,
    claim="no-stall",
    sentence="an item is held only as long as free leaves it, and not before one that comes first",
    witness=_GAP,
    ablations=(without("overlapping-items", SORTED_DISJOINT),),
)
def _neighbours_keep_order(v: Vocabulary) -> Formula:
    """What is held in the states that are reached; at the start nothing is."""
    pair = a_pair(v)
    after = replace(pair, state=_after(pair))
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            REACHED: pair.held_by_rules,
            MARGIN_NOT_NEGATIVE: pair.shifts.margin >= 0,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        after.held_by_rules,
        pair.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="without that condition every pass of a request with two items raises progress",
    witness=_GAP,
    ablations=(
        without("condition-holds", GOES_ON),
        without("larger-than-the-room", FITS_ALONE),
        without("budget-for-one", BUDGET_FOR_BOTH),
    ),
)
def _neighbours_go_on(v: Vocabulary) -> Formula:
    pair = a_pair(v)
    return Formula(
        {
            GOES_ON: not_(_stops(pair)),
            REACHED: pair.held_by_rules,
            FITS_ALONE: pair.each_fits,
            MARGIN_NOT_NEGATIVE: pair.shifts.margin >= 0,
            BUDGET_FOR_BOTH: pair.both_fit_budget,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        _after(pair).progress > pair.state.progress,
        and_(pair.order, pair.realistic),
    )


def _stops_at_start(pair: Pair, start: IntTerm) -> BoolTerm:
    budget = pair.room.encoder_budget
    return neighbours_stop_at_start(pair.first, pair.second, start, budget, pair.shifts)


_SMALL_BUDGET = {
    **PAIR_WITNESS,
    "first_length": 1,
    "first_rows": 1,
    "second_offset": 1,
    "cache_size": 8,
    "encoder_budget": 4,
    "num_computed_tokens": 0,
    "holds_first": False,
}

"""A[0,1) B[1,5), which the encoder cannot take in one pass."""


@theorem(
    PART,
    claim="no-stall",
    sentence="two items that exceed the encoder budget, the second no further from the start "
    "than the shift of the cut: the first pass changes nothing",
    witness=_SMALL_BUDGET,
    ablations=(
        without("condition-fails", STOPS),
        without("already-taken", REACHED),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _budget_stays(v: Vocabulary) -> Formula:
    pair = a_pair(v)
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: _stops_at_start(pair, pair.state.progress),
            REACHED: and_(not_(pair.state.holds_first), not_(pair.state.holds_second)),
            WINDOW_REACHES: pair.window_reaches,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        same(pair.state, _after(pair)),
        pair.realistic,
    )


def not_asked_before(pair: Pair, start: IntTerm) -> BoolTerm:
    """An item that is not taken lies behind all windows so far, or none was looked at."""
    state = pair.state
    return and_(
        start <= state.progress,
        or_(
            state.holds_first,
            state.progress >= pair.first.end,
            eq(state.progress, start),
            pair.first.offset >= state.progress + pair.shifts.window,
        ),
        implies(state.holds_second, state.progress < pair.second.end + pair.shifts.margin),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="without that condition, and with room for both, every pass raises progress",
    witness={**_SMALL_BUDGET, "second_offset": 2, "start": 0},
    ablations=(
        without("condition-holds", GOES_ON),
        without("larger-than-the-room", FITS_ALONE),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _budget_goes_on(v: Vocabulary) -> Formula:
    pair, start = a_pair(v), v.integer("start")
    after = replace(pair, state=_after(pair))
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            GOES_ON: not_(_stops_at_start(pair, start)),
            REACHED: not_asked_before(pair, start),
            CACHE_FOR_BOTH: pair.first.rows + pair.second.rows <= pair.room.cache_size,
            FITS_ALONE: pair.each_fits,
            MARGIN_NOT_NEGATIVE: pair.shifts.margin >= 0,
            WINDOW_REACHES: pair.window_reaches,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        and_(not_asked_before(after, start), after.state.progress > pair.state.progress),
        pair.realistic,
    )


# Two items near the prompt's end under a reservation that insists: when they stop.


class _Reserved:
    """A pair under the reservation, with no margin and no shift of the cut."""

    def __init__(self, v: Vocabulary) -> None:
        self.pair = pair = a_pair(v, is_shifted=False)
        self.prompt = v.integer("num_prompt_tokens")
        self.shift = pair.shifts.window
        self.last = self.prompt - self.shift
        self.left = self.prompt - pair.state.progress
        scene = (pair.first, pair.second, pair.state, pair.asked)
        cut = tokens_of_pair(*scene, pair.room, pair.shifts)
        tokens = tokens_after_reservation(pair.state.progress, cut, self.prompt, self.shift)
        self.after = pair_after(*scene, tokens, pair.room, pair.shifts)
        self.stops = neighbours_near_the_end_stop(
            pair.first, pair.second, pair.room.cache_size, self.prompt, self.shift
        )
        self.inside = pair.second.end <= self.prompt
        self.realistic = and_(pair.realistic, pair.asked >= 1, pair.asked <= self.left)

    @property
    def asks_enough(self) -> BoolTerm:
        """A chunk is not below the shift, unless it ends the prompt."""
        return and_(self.pair.asked <= self.left, or_(self.pair.asked >= self.shift, self.asks_all))

    @property
    def asks_all(self) -> BoolTerm:
        """The chunk would end the prompt."""
        return self.pair.asked >= self.left


_IN_PROMPT = "item-in-prompt"
_ENOUGH = "chunks-not-below-the-shift"


_WITHOUT_SHIFTS = {
    name: value for name, value in PAIR_WITNESS.items() if name not in ("margin", "cut_shift")
}


_NEAR_THE_END = {
    **_WITHOUT_SHIFTS,
    "second_length": 1,
    "second_rows": 1,
    "window_shift": 2,
    "num_prompt_tokens": 5,
    "num_asked_tokens": 2,
}

"""A[0,4) B[4,5) of 5 with room for four rows and a drafter of two modules."""


@theorem(
    PART,
    claim="no-stall",
    sentence="with the reservation near the prefill's end, two items that do not fit together, "
    "the first ending and the second starting in the prompt's last shift: there a pass changes "
    "nothing",
    witness=_NEAR_THE_END,
    ablations=(
        without("condition-fails", STOPS),
        without("earlier", AT_THE_STOP),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _reservation_stays(v: Vocabulary) -> Formula:
    near = _Reserved(v)
    pair = near.pair
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: near.stops,
            REACHED: pair.only_first_is_taken,
            AT_THE_STOP: and_(
                near.last <= pair.state.progress, pair.state.progress < pair.first.end
            ),
            _IN_PROMPT: near.inside,
        },
        same(pair.state, near.after),
        near.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="with the same condition, each pass before that raises progress, to the prompt's "
    "last shift at most",
    witness={
        **_NEAR_THE_END,
        "num_computed_tokens": 0,
        "holds_first": False,
        "num_asked_tokens": 5,
    },
    ablations=(without("condition-fails", STOPS), without("overlapping-items", SORTED_DISJOINT)),
)
def _reservation_gets_there(v: Vocabulary) -> Formula:
    near = _Reserved(v)
    pair, after = near.pair, near.after
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: near.stops,
            REACHED: pair.only_first_is_taken,
            BEFORE_THE_STOP: pair.state.progress < near.last,
            ASKS_FOR_TOKENS: pair.asked >= 1,
            _IN_PROMPT: near.inside,
        },
        and_(
            after.progress > pair.state.progress,
            after.progress <= near.last,
            not_(after.holds_second),
            or_(after.holds_first, after.progress < pair.first.end),
        ),
        near.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="without that condition every pass of a request with two items raises progress, "
    "if chunks are not below the shift",
    witness={**_NEAR_THE_END, "second_offset": 4, "cache_size": 5, "num_asked_tokens": 2},
    ablations=(
        without("condition-holds", GOES_ON),
        without("larger-than-the-room", FITS_ALONE),
        without("short-chunks", _ENOUGH),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _reservation_goes_on(v: Vocabulary) -> Formula:
    near = _Reserved(v)
    pair = near.pair
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            GOES_ON: not_(near.stops),
            REACHED: pair.held_by_rules,
            FITS_ALONE: pair.each_fits,
            BUDGET_FOR_BOTH: pair.both_fit_budget,
            ASKS_FOR_TOKENS: pair.asked >= 1,
            _ENOUGH: near.asks_enough,
        },
        near.after.progress > pair.state.progress,
        and_(near.realistic, near.inside),
    )


# Requests that wait for each other's room: each stands still while the others hold theirs.


_HOLDS_FIRST = "holds-the-first-only"
_NOT_EMPTY = "item-not-empty"


def _holds_first_only(state: PairState) -> BoolTerm:
    return and_(state.holds_first, not_(state.holds_second))


_OTHERS = {**PAIR_WITNESS, "cache_size": 10, "held_by_others": 4}

"""A[0,4) B[4,8) with room for both, of which others hold four rows."""


@theorem(
    PART,
    claim="no-stall",
    sentence="a request that holds an item and stands at the cut before the next, which does "
    "not fit beside that and what others hold: while they hold it, a pass changes nothing",
    witness=_OTHERS,
    ablations=(
        without("condition-fails", STOPS),
        without("elsewhere", AT_THE_STOP),
        without("window-ends-short", WINDOW_REACHES),
    ),
)
def _each_other_stay(v: Vocabulary) -> Formula:
    """One of the requests; what all others hold is one number."""
    pair, rows_of_others = a_pair(v), v.integer("held_by_others")
    room = Room(pair.room.cache_size - rows_of_others, pair.room.encoder_budget)
    scene = (pair.first, pair.second, pair.state, pair.asked)
    tokens = tokens_of_pair(*scene, room, pair.shifts)
    after = pair_after(*scene, tokens, room, pair.shifts)
    progress = pair.state.progress
    return Formula(
        {
            _NOT_EMPTY: pair.second.length >= 1,
            STOPS: others_keep_out(
                pair.first.rows, pair.second.rows, rows_of_others, pair.room.cache_size
            ),
            _HOLDS_FIRST: _holds_first_only(pair.state),
            AT_THE_STOP: and_(
                eq(progress, pair.second.offset - pair.shifts.cut),
                progress < pair.first.end + pair.shifts.margin,
            ),
            WINDOW_REACHES: pair.window_reaches,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        same(pair.state, after),
        and_(pair.realistic, rows_of_others >= 0, pair.each_fits),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="the same at a prompt's last shift, under the reservation and without a shift of "
    "the cut",
    witness={
        **{name: v for name, v in _OTHERS.items() if name not in ("margin", "cut_shift")},
        "second_length": 1,
        "second_rows": 1,
        "cache_size": 8,
        "window_shift": 2,
        "num_prompt_tokens": 5,
        "num_asked_tokens": 2,
    },
    ablations=(
        without("condition-fails", STOPS),
        without("elsewhere", AT_THE_STOP),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _each_other_near_the_end_stay(v: Vocabulary) -> Formula:
    """The same where the reservation, and no shift of the cut, keeps the first item held."""
    pair, rows_of_others = a_pair(v, is_shifted=False), v.integer("held_by_others")
    prompt = v.integer("num_prompt_tokens")
    shift, progress = pair.shifts.window, pair.state.progress
    room = replace(pair.room, cache_size=pair.room.cache_size - rows_of_others)
    scene = (pair.first, pair.second, pair.state, pair.asked)
    cut = tokens_of_pair(*scene, room, pair.shifts)
    tokens = tokens_after_reservation(progress, cut, prompt, shift)
    after = pair_after(*scene, tokens, room, pair.shifts)
    left = prompt - progress
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: others_keep_out(
                pair.first.rows, pair.second.rows, rows_of_others, pair.room.cache_size
            ),
            _HOLDS_FIRST: _holds_first_only(pair.state),
            AT_THE_STOP: and_(eq(progress, prompt - shift), progress < pair.first.end),
            "item-in-prompt": pair.second.end <= prompt,
        },
        same(pair.state, after),
        and_(
            pair.realistic,
            rows_of_others >= 0,
            pair.each_fits,
            pair.asked >= 1,
            or_(pair.asked >= shift, pair.asked >= left),
        ),
    )
