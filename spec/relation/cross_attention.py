"""Encoder-decoder models as a relation: the item of one request, all others by their rows.

The book of such a model neither shares nor keeps outputs: it counts the slots of items whose first
step has not run. The projection is one request *r* with its item; the items of all other requests
count by the rows that are held, that this pass encodes, and that the worker has. What
:mod:`spec.relation` says of projections holds here too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spec.algebra import BoolTerm, IntTerm, and_, implies, ite, not_
from spec.claims.predicates import slots_conserved, worker_bounded


class ItemScope(NamedTuple):
    """The cache size and the rows of the item."""

    cache_size: IntTerm
    rows: IntTerm


class ItemState(NamedTuple):
    """The projected state (rows and tokens).

    Attributes:
        running: r is among the running requests.
        computed: ``num_computed_tokens`` of r.
        held: the book counts the item's slots.
        others: rows of all other items that it counts.
        free: its count of free slots.
        in_pass: a pass is being scheduled, or has just run.
        applied: the worker has applied its output.
        promised: rows for which there was room, not yet allocated.
        promised_here: the item is what was promised.
        chosen: this pass's output has the item encoded.
        chosen_others: rows of other items that it has encoded.
        start: progress of r at the start of this pass.
        scheduled: tokens of r in this pass; 0 where it does not run.
        resident: the worker holds the item's output.
        resident_others: rows of other outputs that it holds.
    """

    running: BoolTerm
    computed: IntTerm
    held: BoolTerm
    others: IntTerm
    free: IntTerm
    in_pass: BoolTerm
    applied: BoolTerm
    promised: IntTerm
    promised_here: BoolTerm
    chosen: BoolTerm
    chosen_others: IntTerm
    start: IntTerm
    scheduled: IntTerm
    resident: BoolTerm
    resident_others: IntTerm


def nothing_yet(scope: ItemScope) -> ItemState:
    """The state before anything happened."""
    return ItemState(
        running=False,
        computed=0,
        held=False,
        others=0,
        free=scope.cache_size,
        in_pass=False,
        applied=False,
        promised=0,
        promised_here=False,
        chosen=False,
        chosen_others=0,
        start=0,
        scheduled=0,
        resident=False,
        resident_others=0,
    )


class ItemMove(NamedTuple):
    """A transition from a state: named conditions, and the state after it."""

    guards: dict[str, BoolTerm]
    after: ItemState


def slots_are_sums(scope: ItemScope, s: ItemState) -> BoolTerm:
    """The book's free slots are what the items it counts leave, and not negative."""
    held = s.others + ite(s.held, scope.rows, 0)
    return and_(s.others >= 0, slots_conserved(s.free, s.free, held, held, scope.cache_size))


def promises_fit(scope: ItemScope, s: ItemState) -> BoolTerm:
    """Room that was promised is free, and the item that it was promised for is not held."""
    return and_(
        s.promised >= 0,
        s.promised <= s.free,
        implies(s.promised_here, and_(not_(s.held), scope.rows <= s.promised)),
    )


def chosen_is_held(scope: ItemScope, s: ItemState) -> BoolTerm:
    """What a pass is to encode, the book counts."""
    return and_(
        implies(s.chosen, and_(s.in_pass, s.held)),
        implies(not_(s.in_pass), s.chosen_others <= 0),
        s.chosen_others >= 0,
        s.chosen_others <= s.others,
    )


def worker_fits(scope: ItemScope, s: ItemState) -> BoolTerm:
    """The rows on the worker do not exceed the cache."""
    return and_(
        s.resident_others >= 0,
        worker_bounded(s.resident_others + ite(s.resident, scope.rows, 0), scope.cache_size),
    )


def first_step_reads_it(scope: ItemScope, s: ItemState) -> BoolTerm:
    """The item of a request whose first step is in this pass is there when the step runs."""
    is_first = and_(s.scheduled >= 1, s.start <= 0)
    return and_(
        implies(s.scheduled >= 1, s.in_pass),
        implies(and_(is_first, not_(s.applied)), s.chosen),
        implies(and_(is_first, s.applied), s.resident),
    )


ITEM_INVARIANTS: dict[str, Callable[[ItemScope, ItemState], BoolTerm]] = {
    "slots-are-sums": slots_are_sums,
    "promises-fit": promises_fit,
    "chosen-is-held": chosen_is_held,
    "worker-fits": worker_fits,
    "first-step-reads-it": first_step_reads_it,
}
"""Every invariant, by name."""
