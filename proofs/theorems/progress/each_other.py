"""Requests that wait for each other's room: each stands still while the others hold theirs."""

from __future__ import annotations

from dataclasses import replace

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary
from proofs.theorems.progress.neighbours import same
from proofs.theorems.progress.scene import (
    ASKS_FOR_TOKENS,
    AT_THE_STOP,
    GROUP,
    PAIR_WITNESS,
    SORTED_DISJOINT,
    STOPS,
    WINDOW_REACHES,
    a_pair,
)
from spec.algebra import BoolTerm, and_, eq, not_, or_
from spec.rules.stop_settings import others_keep_out
from spec.rules.stopping_passes import (
    PairState,
    Room,
    pair_after,
    tokens_after_reservation,
    tokens_of_pair,
)

_HOLDS_FIRST = "holds-the-first-only"
_NOT_EMPTY = "item-not-empty"


def _holds_first_only(state: PairState) -> BoolTerm:
    return and_(state.holds_first, not_(state.holds_second))


def _stay(v: Vocabulary) -> Formula:
    """One of the requests; what all others hold is one number."""
    pair, others = a_pair(v), v.integer("held_by_others")
    room = Room(pair.room.cache_size - others, pair.room.encoder_budget)
    scene = (pair.first, pair.second, pair.state, pair.asked)
    tokens = tokens_of_pair(*scene, room, pair.shifts)
    after = pair_after(*scene, tokens, room, pair.shifts)
    progress = pair.state.progress
    return Formula(
        {
            _NOT_EMPTY: pair.second.length >= 1,
            STOPS: others_keep_out(pair.first.rows, pair.second.rows, others, pair.room.cache_size),
            _HOLDS_FIRST: _holds_first_only(pair.state),
            AT_THE_STOP: and_(
                eq(progress, pair.second.offset - pair.shifts.cut),
                progress < pair.first.end + pair.shifts.margin,
            ),
            WINDOW_REACHES: pair.window_reaches,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        same(pair.state, after),
        and_(pair.realistic, others >= 0, pair.each_fits),
    )


def _near_the_end_stay(v: Vocabulary) -> Formula:
    """The same where the reservation, and no shift of the cut, keeps the first item held."""
    pair, others = a_pair(v, is_shifted=False), v.integer("held_by_others")
    prompt = v.integer("num_prompt_tokens")
    shift, progress = pair.shifts.window, pair.state.progress
    room = replace(pair.room, cache_size=pair.room.cache_size - others)
    scene = (pair.first, pair.second, pair.state, pair.asked)
    cut = tokens_of_pair(*scene, room, pair.shifts)
    tokens = tokens_after_reservation(progress, cut, prompt, shift)
    after = pair_after(*scene, tokens, room, pair.shifts)
    left = prompt - progress
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: others_keep_out(pair.first.rows, pair.second.rows, others, pair.room.cache_size),
            _HOLDS_FIRST: _holds_first_only(pair.state),
            AT_THE_STOP: and_(eq(progress, prompt - shift), progress < pair.first.end),
            "item-in-prompt": pair.second.end <= prompt,
        },
        same(pair.state, after),
        and_(
            pair.realistic,
            others >= 0,
            pair.each_fits,
            pair.asked >= 1,
            or_(pair.asked >= shift, pair.asked >= left),
        ),
    )


_OTHERS = {**PAIR_WITNESS, "cache_size": 10, "held_by_others": 4}
"""A[0,4) B[4,8) with room for both, of which others hold four rows."""

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="each-other-stay",
        sentence="a request that holds an item and stands at the cut before the next, which does "
        "not fit beside that and what others hold: while they hold it, a pass changes nothing",
        build=_stay,
        witness=_OTHERS,
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("elsewhere", drops=(AT_THE_STOP,)),
            Ablation("window-ends-short", drops=(WINDOW_REACHES,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="each-other-near-the-end-stay",
        sentence="the same at a prompt's last shift, under the reservation and without a shift of "
        "the cut",
        build=_near_the_end_stay,
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
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("elsewhere", drops=(AT_THE_STOP,)),
            Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),
        ),
    ),
)
