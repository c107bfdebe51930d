"""The cells of the ablation matrix: every choice of the guards that the review argued about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, TypeAlias

from spec.model.rules import ModelRules
from spec.rules.releases import Tokens

Reservation: TypeAlias = Literal["off", "yielding", "insisting"]

MARGINS = (0, 1)
SHIFTS = (0, 1, 2, 3)
LOOK_AHEADS = (0, 1, 2, 3)
CUTS: dict[str, Tokens] = {"plain": 0, "shifted": "shift"}
"""Where a chunk ends before a refused feature: at it, or the shift before it (47738)."""
RESERVATIONS: tuple[Reservation, ...] = ("off", "yielding", "insisting")


@dataclass(frozen=True)
class Scheduling:
    """What scheduling reads; a gather has no say in it.

    Attributes:
        rules: the rules, of which margin, cut and reservation are chosen.
        scheduler_lookahead: the scheduler's shift (tokens).
    """

    rules: ModelRules
    scheduler_lookahead: int

    @property
    def cut(self) -> str:
        """The word for where a chunk ends before a refused feature."""
        return next(word for word, tokens in CUTS.items() if tokens == self.rules.cut_shift)

    @property
    def cut_shift(self) -> int:
        """How far before a refused feature a chunk ends (tokens)."""
        return int(self.rules.shifts(self.scheduler_lookahead).cut)


@dataclass(frozen=True)
class Cell:
    """One choice of all guards.

    Attributes:
        gather_lookahead: how far the drafter reads ahead (tokens).
        tolerates_boundary: whether a boundary feature that is missing is skipped (46315).
    """

    scheduling: Scheduling
    gather_lookahead: int
    tolerates_boundary: bool

    def to_json(self) -> dict[str, Any]:
        """The choice as JSON data."""
        return {
            "margin": self.scheduling.rules.margin,
            "scheduler_lookahead": self.scheduling.scheduler_lookahead,
            "cut": self.scheduling.cut,
            "reservation": self.scheduling.rules.reservation,
            "gather_lookahead": self.gather_lookahead,
            "tolerates_boundary": self.tolerates_boundary,
        }


def schedulings() -> Iterator[Scheduling]:
    """Every choice of what scheduling reads."""
    for margin, shift, cut, reservation in product(MARGINS, SHIFTS, CUTS, RESERVATIONS):
        rules = ModelRules(margin=margin, cut_shift=CUTS[cut], reservation=reservation)
        yield Scheduling(rules, shift)


def cells() -> Iterator[Cell]:
    """Every cell of the matrix."""
    for scheduling, look_ahead, tolerates in product(schedulings(), LOOK_AHEADS, (True, False)):
        yield Cell(scheduling, look_ahead, tolerates)
