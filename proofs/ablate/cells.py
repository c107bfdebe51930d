"""The cells of the ablation matrix: every choice of the guards that the review argued about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Literal, TypeAlias

from spec.model.variant import Variant

Cut: TypeAlias = Literal["plain", "shifted"]
Reservation: TypeAlias = Literal["off", "yielding", "insisting"]

MARGINS = (0, 1)
SHIFTS = (0, 1, 2, 3)
LOOK_AHEADS = (0, 1, 2, 3)
CUTS: tuple[Cut, ...] = ("plain", "shifted")
RESERVATIONS: tuple[Reservation, ...] = ("off", "yielding", "insisting")


@dataclass(frozen=True)
class Scheduling:
    """The guards that scheduling reads; a gather has no say in them.

    Attributes:
        margin: tokens past a feature's end that progress must be before its reference goes (46315).
        scheduler_lookahead: the scheduler's shift (tokens).
        cut: where a chunk ends before a refused feature: at it, or the shift before it (47738).
        reservation: what a chunk near the prefill's end does about the shift: nothing; end early
            unless that runs nothing (the reference); or end early even then (0.28.0 on).
    """

    margin: int
    scheduler_lookahead: int
    cut: Cut
    reservation: Reservation

    @property
    def cut_shift(self) -> int:
        """How far before a refused feature a chunk ends (tokens)."""
        return self.scheduler_lookahead if self.cut == "shifted" else 0

    def variant(self) -> Variant:
        """The model's rules."""
        return Variant(margin=self.margin, refused_cut=self.cut, reservation=self.reservation)


@dataclass(frozen=True)
class Cell:
    """One choice of all guards.

    Attributes:
        scheduling: what scheduling reads.
        gather_lookahead: how far the drafter reads ahead (tokens).
        tolerates_boundary: whether a boundary feature that is missing is skipped (46315).
    """

    scheduling: Scheduling
    gather_lookahead: int
    tolerates_boundary: bool

    def to_json(self) -> dict[str, Any]:
        """The choice as JSON data."""
        return {
            **asdict(self.scheduling),
            "gather_lookahead": self.gather_lookahead,
            "tolerates_boundary": self.tolerates_boundary,
        }


def schedulings() -> Iterator[Scheduling]:
    """Every choice of what scheduling reads."""
    for margin, shift, cut, reservation in product(MARGINS, SHIFTS, CUTS, RESERVATIONS):
        yield Scheduling(margin, shift, cut, reservation)


def cells() -> Iterator[Cell]:
    """Every cell of the matrix."""
    for scheduling, look_ahead, tolerates in product(schedulings(), LOOK_AHEADS, (True, False)):
        yield Cell(scheduling, look_ahead, tolerates)
