"""Two items of a prompt that do not fit together: when exactly their request stops for ever."""

from __future__ import annotations

from dataclasses import replace

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary
from proofs.theorems.progress.scene import (
    ASKS_FOR_TOKENS,
    AT_THE_STOP,
    BEFORE_THE_STOP,
    BUDGET_FOR_BOTH,
    CACHE_FOR_BOTH,
    FITS_ALONE,
    GOES_ON,
    GROUP,
    MARGIN_NOT_NEGATIVE,
    PAIR_WITNESS,
    REACHED,
    SORTED_DISJOINT,
    STOPS,
    WINDOW_REACHES,
    Pair,
    a_pair,
)
from spec.algebra import BoolTerm, IntTerm, and_, eq, iff, implies, not_, or_
from spec.rules.stop_conditions import neighbours_stop, neighbours_stop_at_start
from spec.rules.stopping_passes import PairState, pair_after, tokens_of_pair


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


def _stay(v: Vocabulary) -> Formula:
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


def _get_there(v: Vocabulary) -> Formula:
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


def _keeps(v: Vocabulary) -> Formula:
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


def _go_on(v: Vocabulary) -> Formula:
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


def _budget_keeps(v: Vocabulary) -> Formula:
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

_GAP = {**PAIR_WITNESS, "second_offset": 5, "num_computed_tokens": 4, "holds_first": False}

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="neighbours-stay",
        sentence="two items that do not fit together, with a gap below margin and shift of the "
        "cut: at the cut before the second, a pass changes nothing",
        build=_stay,
        witness=PAIR_WITNESS,
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("earlier", drops=(AT_THE_STOP,)),
            Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="neighbours-get-there",
        sentence="with the same condition, each pass before that raises progress, to the cut "
        "before the second item at most, and neither takes the second nor lets the first go",
        build=_get_there,
        witness={**PAIR_WITNESS, "num_computed_tokens": 0, "holds_first": False},
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("window-ends-short", drops=(WINDOW_REACHES,)),
            Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="neighbours-keep-order",
        sentence="an item is held only as long as free leaves it, and not before one that comes "
        "first",
        build=_keeps,
        witness=_GAP,
        ablations=(Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="neighbours-go-on",
        sentence="without that condition every pass of a request with two items raises progress",
        build=_go_on,
        witness=_GAP,
        ablations=(
            Ablation("condition-holds", drops=(GOES_ON,)),
            Ablation("larger-than-the-room", drops=(FITS_ALONE,)),
            Ablation("budget-for-one", drops=(BUDGET_FOR_BOTH,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="budget-stays",
        sentence="two items that exceed the encoder budget, the second no further from the start "
        "than the shift of the cut: the first pass changes nothing",
        build=_budget_stays,
        witness=_SMALL_BUDGET,
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("already-taken", drops=(REACHED,)),
            Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="budget-goes-on",
        sentence="without that condition, and with room for both, every pass raises progress",
        build=_budget_keeps,
        witness={**_SMALL_BUDGET, "second_offset": 2, "start": 0},
        ablations=(
            Ablation("condition-holds", drops=(GOES_ON,)),
            Ablation("larger-than-the-room", drops=(FITS_ALONE,)),
            Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),
        ),
    ),
)
