"""The groups of obligations, each a module of this package and a script of its own."""

from __future__ import annotations

from collections.abc import Sequence

from proofs import (
    accounting,
    bisection,
    boundary,
    chunks,
    clamping,
    items,
    lifetime,
    progress,
    reading,
    references,
    residency,
    rows,
    slices,
    slots,
    window,
)
from proofs.obligation import Obligation
from spec.errors import InputError
from spec.loop.claims import any_claim

GROUPS: dict[str, tuple[Obligation, ...]] = {
    module.GROUP: module.OBLIGATIONS
    for module in (
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
    )
}


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
