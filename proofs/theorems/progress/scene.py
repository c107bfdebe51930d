"""The variables that formulas about stuck states share, and their names."""

from __future__ import annotations

from dataclasses import dataclass

from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import SORTED_DISJOINT
from spec.algebra import BoolTerm, IntTerm, and_, implies, not_, or_
from spec.rules.releases import Shifts
from spec.rules.stopping_passes import Item, PairState, Room, is_still_held

NAME = "progress"
FITS_ALONE = "everything-fits-alone"
ASKS_FOR_TOKENS = "asks-for-tokens"
WINDOW_REACHES = "window-reaches-past-the-cut"
BUDGET_FOR_BOTH = "encoder-budget-holds-both"
CACHE_FOR_BOTH = "cache-holds-both"
MARGIN_NOT_NEGATIVE = "margin-not-negative"
REACHED = "state-is-reached"
STOPS = "condition-holds"
GOES_ON = "condition-does-not-hold"
AT_THE_STOP = "progress-is-at-the-stop"
BEFORE_THE_STOP = "progress-is-before-the-stop"


@dataclass(frozen=True)
class Pair:
    """Two items of a prompt, the engine's room, the release's shifts, and a state."""

    first: Item
    second: Item
    room: Room
    shifts: Shifts
    state: PairState
    asked: IntTerm

    @property
    def order(self) -> BoolTerm:
        """The items are sorted and disjoint, and not empty."""
        return and_(
            self.first.length >= 1, self.second.length >= 1, self.first.end <= self.second.offset
        )

    @property
    def each_fits(self) -> BoolTerm:
        """Each of the items fits the cache and the encoder budget by itself."""
        rows = (self.first.rows, self.second.rows)
        sizes = (self.room.cache_size, self.room.encoder_budget)
        return and_(*(row <= size for row in rows for size in sizes))

    @property
    def both_fit_budget(self) -> BoolTerm:
        """The encoder can take both in one pass."""
        return self.first.rows + self.second.rows <= self.room.encoder_budget

    @property
    def window_reaches(self) -> BoolTerm:
        """Items are asked for at least as far ahead as a cut goes back."""
        return and_(self.shifts.cut >= 0, self.shifts.cut <= self.shifts.window)

    @property
    def only_first_is_taken(self) -> BoolTerm:
        """The second item was never granted, and the first is taken or will be asked for."""
        return and_(
            not_(self.state.holds_second),
            or_(self.state.holds_first, self.state.progress < self.first.end),
        )

    @property
    def held_by_rules(self) -> BoolTerm:
        """What is held is what *free* leaves, and the second is not held before the first."""
        state, margin = self.state, self.shifts.margin
        first_to_come = state.progress < self.first.end
        return and_(
            implies(state.holds_first, is_still_held(self.first, margin, state.progress)),
            implies(state.holds_second, is_still_held(self.second, margin, state.progress)),
            implies(and_(state.holds_second, first_to_come), state.holds_first),
        )

    @property
    def realistic(self) -> BoolTerm:
        """Counts as an engine has them."""
        numbers = (self.first.offset, self.state.progress, self.shifts.margin, self.shifts.window)
        return and_(
            self.first.rows >= 1,
            self.second.rows >= 1,
            self.first.rows <= self.first.length,
            self.second.rows <= self.second.length,
            *(number >= 0 for number in numbers),
        )


def a_pair(v: Vocabulary, *, is_shifted: bool = True) -> Pair:
    """Two items and a state, all variables; margin and shift of the cut may be 0 instead."""
    first = Item(*integers(v, "first_offset first_length first_rows"))
    second = Item(*integers(v, "second_offset second_length second_rows"))
    cache, budget = integers(v, "cache_size encoder_budget")
    window = v.integer("window_shift")
    margin, cut = integers(v, "margin cut_shift") if is_shifted else (0, 0)
    progress = v.integer("num_computed_tokens")
    state = PairState(progress, v.boolean("holds_first"), v.boolean("holds_second"))
    return Pair(
        first,
        second,
        Room(cache, budget),
        Shifts(window, margin, cut),
        state,
        v.integer("num_asked_tokens"),
    )


PAIR_WITNESS: dict[str, int | bool] = {
    "first_offset": 0,
    "first_length": 4,
    "first_rows": 4,
    "second_offset": 4,
    "second_length": 4,
    "second_rows": 4,
    "cache_size": 4,
    "encoder_budget": 8,
    "window_shift": 1,
    "margin": 0,
    "cut_shift": 1,
    "num_computed_tokens": 3,
    "holds_first": True,
    "holds_second": False,
    "num_asked_tokens": 5,
}
"""A[0,4) B[4,8) with room for one, a drafter and its shifted cut, where it stops."""

__all__ = ["PAIR_WITNESS", "SORTED_DISJOINT", "Pair", "a_pair"]
