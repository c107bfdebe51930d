"""The groups of obligations, each a module of this package and a script of its own."""

from __future__ import annotations

from collections.abc import Sequence

from proofs.smt.obligation import Obligation
from proofs.theorems.guards import (
    accounting,
    bisection,
    boundary,
    chunks,
    clamping,
    lifetime,
    reading,
    rows,
    scheduling,
    slices,
    window,
)
from proofs.theorems.progress import group as progress
from proofs.theorems.runs import items, references, residency, slots
from spec.claims.texts import any_claim
from spec.errors import InputError

_MODULES = (
    boundary,
    clamping,
    window,
    bisection,
    slices,
    rows,
    lifetime,
    accounting,
    reading,
    progress,
    slots,
    residency,
    references,
    items,
    chunks,
    scheduling,
)

GROUPS: dict[str, tuple[Obligation, ...]] = {
    module.GROUP.name: module.GROUP.obligations for module in _MODULES
}
"""Obligations by group."""

SCRIPTS: dict[str, str] = {module.GROUP.name: module.__name__ for module in _MODULES}
"""The module of each group, which ``python -m`` runs."""

FOLDERS: dict[str, str] = {group: script.split(".")[-2] for group, script in SCRIPTS.items()}
"""The folder that each group stands in."""


def all_obligations() -> tuple[Obligation, ...]:
    """Every obligation, group by group."""
    return tuple(obligation for group in GROUPS.values() for obligation in group)


def select(groups: Sequence[str] = (), claims: Sequence[str] = ()) -> tuple[Obligation, ...]:
    """The obligations of the given groups that support the given claims; none given means all.

    Raises:
        InputError: an unknown group or claim.
    """
    for group in groups:
        if group not in GROUPS:
            raise InputError(f"unknown group {group!r}; known groups: {', '.join(GROUPS)}")
    known_claims = {any_claim(claim_id).id for claim_id in claims}
    return tuple(
        obligation
        for obligation in all_obligations()
        if (not groups or obligation.group in groups)
        and (not claims or obligation.claim in known_claims)
    )
