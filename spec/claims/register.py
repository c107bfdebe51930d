"""Which function states which claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from spec.algebra import BoolTerm

Predicate = TypeVar("Predicate", bound=Callable[..., BoolTerm])

PREDICATES: dict[str, tuple[Callable[..., BoolTerm], ...]] = {}
"""The functions of :mod:`spec.claims.predicates`, by the id of the claim that they state."""


def states(claim_id: str) -> Callable[[Predicate], Predicate]:
    """Make a function the statement, or a further part of the statement, of a claim."""

    def register(predicate: Predicate) -> Predicate:
        PREDICATES[claim_id] = (*PREDICATES.get(claim_id, ()), predicate)
        return predicate

    return register


def sentence_of(statement: Callable[..., BoolTerm]) -> str:
    """What a claim says, as a person reads it: the first paragraph of its statement."""
    paragraph = " ".join((statement.__doc__ or "").split("\n\n")[0].split())
    return paragraph[0].lower() + paragraph[1:].rstrip(".")
