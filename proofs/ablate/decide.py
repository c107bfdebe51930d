"""What a cell of the matrix is: what the theorems say of it, and what the model showed."""

from __future__ import annotations

from dataclasses import dataclass

from proofs.ablate.cells import Cell, Scheduling
from proofs.ablate.evidence import Evidence
from spec.errors import NoVerdictError
from spec.record.scenario import Scenario


@dataclass(frozen=True)
class Proof:
    """Why no run of a cell shows a fault.

    Attributes:
        theorems: obligations of ``python -m proofs`` that say so, for all integers.
    """

    theorems: tuple[str, ...]


@dataclass(frozen=True)
class Shown:
    """A fault of a cell.

    Attributes:
        claim: what its smallest run breaks.
    """

    claim: str
    scenario: Scenario


@dataclass(frozen=True)
class Decided:
    """A cell with its two answers, each a proof or the smallest counterexample.

    Attributes:
        cell: the choice of guards.
        safety: whether every read finds what it needs.
        progress: whether every request gets to its end, where a miss ends nothing.
        dense_only: theorems that make it safe for features without masks; empty where it is safe
            for all, or for neither.
    """

    cell: Cell
    safety: Proof | Shown
    progress: Proof | Shown
    dense_only: tuple[str, ...] = ()


_GETS_ON = (
    "progress.refused-at-progress-holds-nothing",
    "progress.first-of-the-refused-has-room",
    "progress.cut-chunk-not-empty",
    "progress.update-raises-progress",
    "progress.neighbours-go-on",
    "progress.budget-goes-on",
)
"""Theorems that together say that a lone request with margin and cut's shift of 0 gets on."""


class DisagreementError(NoVerdictError):
    """The theorems and the model say different things of a cell."""


def safety_theorems(cell: Cell) -> tuple[str, ...]:
    """The theorems that make a cell safe; none where it is not."""
    scheduling, look_ahead = cell.scheduling, cell.gather_lookahead
    if look_ahead == 0:
        return ("reading.target-needs-no-guard",)
    if look_ahead > scheduling.scheduler_lookahead:
        return ()
    if cell.tolerates_boundary:
        return ("reading.shift-covers-the-drafter", "reading.target-needs-no-guard")
    if look_ahead <= scheduling.cut_shift:
        return ("reading.shifted-cut-needs-no-tolerance", "reading.target-needs-no-guard")
    return ()


def dense_theorems(cell: Cell) -> tuple[str, ...]:
    """The theorems that make a cell safe for features without masks, where it is not for all."""
    if safety_theorems(cell) or not cell.tolerates_boundary:
        return ()
    return ("reading.dense-needs-no-shift", "reading.target-needs-no-guard")


def progress_theorems(scheduling: Scheduling) -> tuple[str, ...]:
    """The theorems that let a lone request get on; none where two items can stop it."""
    if scheduling.rules.margin or scheduling.cut_shift:
        return ()
    if scheduling.rules.reservation == "insisting":
        # A shift of 0 or 1 leaves nothing to reserve: nothing lies strictly between 0 and 1.
        if scheduling.scheduler_lookahead > 1:
            return ()
        return (*_GETS_ON, "progress.reservation-goes-on")
    if scheduling.rules.reservation == "yielding":
        return (*_GETS_ON, "progress.reserved-chunk-not-empty")
    return _GETS_ON


def decide(cell: Cell, evidence: Evidence) -> Decided:
    """Put the theorems and the model's runs together.

    Raises:
        DisagreementError: one of them says that a fault can be, and the other that it cannot.
    """
    safety: Shown | None = None
    if evidence.interior is not None:
        safety = Shown("drafter-resident-or-boundary", evidence.interior)
    if not cell.tolerates_boundary and evidence.boundary is not None:
        safety = Shown("boundary-miss-tolerated", evidence.boundary)
    progress = None if evidence.stops is None else Shown("no-stall", evidence.stops)
    return Decided(
        cell,
        _agreed(cell, "is safe", safety_theorems(cell), safety),
        _agreed(cell, "gets on", progress_theorems(cell.scheduling), progress),
        dense_theorems(cell),
    )


def _agreed(
    cell: Cell, question: str, theorems: tuple[str, ...], shown: Shown | None
) -> Proof | Shown:
    if theorems and shown is not None:
        raise DisagreementError(f"{cell} {question} by {theorems}, but not in {shown.scenario}")
    if shown is not None:
        return shown
    if not theorems:
        raise DisagreementError(f"no theorem says that {cell} {question}, and no run shows it fail")
    return Proof(theorems)
