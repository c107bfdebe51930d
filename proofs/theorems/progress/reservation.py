"""Two items near the prompt's end under a reservation that insists: when they stop."""

from __future__ import annotations

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary
from proofs.theorems.progress.neighbours import same
from proofs.theorems.progress.scene import (
    ASKS_FOR_TOKENS,
    AT_THE_STOP,
    BEFORE_THE_STOP,
    BUDGET_FOR_BOTH,
    FITS_ALONE,
    GOES_ON,
    GROUP,
    PAIR_WITNESS,
    REACHED,
    SORTED_DISJOINT,
    STOPS,
    a_pair,
)
from spec.algebra import BoolTerm, and_, not_, or_
from spec.rules.stop_conditions import neighbours_near_the_end_stop
from spec.rules.stopping_passes import pair_after, tokens_after_reservation, tokens_of_pair


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

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="reservation-stays",
        sentence="with the reservation near the prefill's end, two items that do not fit together, "
        "the first ending and the second starting in the prompt's last shift: there a pass changes "
        "nothing",
        build=_reservation_stays,
        witness=_NEAR_THE_END,
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("earlier", drops=(AT_THE_STOP,)),
            Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="reservation-gets-there",
        sentence="with the same condition, each pass before that raises progress, to the prompt's "
        "last shift at most",
        build=_reservation_gets_there,
        witness={
            **_NEAR_THE_END,
            "num_computed_tokens": 0,
            "holds_first": False,
            "num_asked_tokens": 5,
        },
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="reservation-goes-on",
        sentence="without that condition every pass of a request with two items raises progress, "
        "if chunks are not below the shift",
        build=_reservation_goes_on,
        witness={**_NEAR_THE_END, "second_offset": 4, "cache_size": 5, "num_asked_tokens": 2},
        ablations=(
            Ablation("condition-holds", drops=(GOES_ON,)),
            Ablation("larger-than-the-room", drops=(FITS_ALONE,)),
            Ablation("short-chunks", drops=(_ENOUGH,)),
            Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),
        ),
    ),
)
