"""Transitions of :mod:`spec.relation.cross_attention`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spec.algebra import BoolTerm, IntTerm, and_, eq, implies, ite, not_, or_
from spec.relation.cross_attention import ItemMove, ItemScope, ItemState
from spec.rules import encoder_inputs, free


@dataclass(frozen=True)
class ItemGuards:
    """The guard of *free*; a fault replaces it."""

    goes: Callable[[IntTerm], BoolTerm] = free.may_drop_encoder_decoder_reference


CORRECT_ITEMS = ItemGuards()
"""The guards of a correct engine."""

DURING = "asks-in-a-pass"
HELD = "lets-go-what-is-held"


def begin_pass(scope: ItemScope, s: ItemState, guards: ItemGuards) -> ItemMove:
    """A pass begins."""
    return ItemMove({"passes-follow-each-other": not_(s.in_pass)}, s._replace(in_pass=True))


def promise(
    scope: ItemScope, s: ItemState, guards: ItemGuards, here: BoolTerm, their_rows: IntTerm
) -> ItemMove:
    """There is room for the item, or for another one of ``their_rows``."""
    rows = ite(here, scope.rows, their_rows)
    return ItemMove(
        {
            DURING: s.in_pass,
            "promises-what-is-not-held": implies(here, not_(s.held)),
            "rows-not-negative": rows >= 0,
            "promised-room-is-free": rows <= s.free,
        },
        s._replace(promised=rows, promised_here=here),
    )


def refuse(
    scope: ItemScope, s: ItemState, guards: ItemGuards, asked_rows: IntTerm, budget: IntTerm
) -> ItemMove:
    """There is no room for so many rows, or no encoder budget."""
    fits = encoder_inputs.has_room(asked_rows, budget, 0, s.free)
    return ItemMove({DURING: s.in_pass, "refuses-what-does-not-fit": not_(fits)}, s)


def take(scope: ItemScope, s: ItemState, guards: ItemGuards) -> ItemMove:
    """The item's slots are counted, and this pass encodes it."""
    return ItemMove(
        {DURING: s.in_pass, "takes-what-was-promised": s.promised_here},
        s._replace(
            held=True,
            chosen=True,
            free=s.free - scope.rows,
            promised=0,
            promised_here=False,
        ),
    )


def take_other(scope: ItemScope, s: ItemState, guards: ItemGuards, their_rows: IntTerm) -> ItemMove:
    """Another item's slots are counted."""
    return ItemMove(
        {
            DURING: s.in_pass,
            "takes-what-was-promised": and_(
                not_(s.promised_here), their_rows >= 0, their_rows <= s.promised
            ),
        },
        s._replace(
            others=s.others + their_rows,
            chosen_others=s.chosen_others + their_rows,
            free=s.free - their_rows,
            promised=0,
        ),
    )


def begin(scope: ItemScope, s: ItemState, guards: ItemGuards) -> ItemMove:
    """The request starts to run."""
    return ItemMove(
        {"starts-who-waits": and_(s.in_pass, not_(s.running))},
        s._replace(running=True, computed=0),
    )


def advance(scope: ItemScope, s: ItemState, guards: ItemGuards, num_tokens: IntTerm) -> ItemMove:
    """The pass schedules the request; its first step reads the item."""
    return ItemMove(
        {
            "schedules-who-runs": and_(s.in_pass, not_(s.applied), s.running, eq(s.scheduled, 0)),
            "step-not-empty": num_tokens >= 1,
            "first-step-takes-the-item": implies(s.computed <= 0, s.chosen),
        },
        s._replace(start=s.computed, scheduled=num_tokens, computed=s.computed + num_tokens),
    )


def apply(
    scope: ItemScope,
    s: ItemState,
    guards: ItemGuards,
    is_announced: BoolTerm,
    announced_others: IntTerm,
    is_encoded: BoolTerm,
) -> ItemMove:
    """The worker drops what the pass before had encoded, and encodes what this one chose."""
    return ItemMove(
        {
            "applies-once": and_(s.in_pass, not_(s.applied)),
            "announces-the-pass-before": and_(
                implies(s.resident, is_announced), eq(announced_others, s.resident_others)
            ),
            "encodes-what-was-chosen": and_(
                implies(is_encoded, s.chosen), implies(s.chosen, is_encoded)
            ),
        },
        s._replace(
            applied=True,
            promised=0,
            promised_here=False,
            chosen=False,
            chosen_others=0,
            resident=or_(and_(s.resident, not_(is_announced)), is_encoded),
            resident_others=s.resident_others - announced_others + s.chosen_others,
        ),
    )


def end_pass(scope: ItemScope, s: ItemState, guards: ItemGuards) -> ItemMove:
    """The step has run."""
    nothing_left = and_(not_(s.chosen), eq(s.chosen_others, 0))
    return ItemMove(
        {"ends-what-was-applied": and_(s.applied, nothing_left)},
        s._replace(in_pass=False, applied=False, start=0, scheduled=0),
    )


def let_go(scope: ItemScope, s: ItemState, guards: ItemGuards) -> ItemMove:
    """An update credits the item's slots: its first step has run."""
    return ItemMove(
        {
            "lets-go-in-an-update": and_(not_(s.in_pass), s.running),
            HELD: s.held,
            "lets-go-after-the-first-step": guards.goes(s.computed),
        },
        s._replace(held=False, free=s.free + scope.rows),
    )


def others_let_go(
    scope: ItemScope, s: ItemState, guards: ItemGuards, their_rows: IntTerm, their_chosen: IntTerm
) -> ItemMove:
    """Slots of other items are credited; what this pass chose for who stops is not encoded."""
    return ItemMove(
        {
            HELD: and_(
                their_chosen >= 0,
                their_chosen <= s.chosen_others,
                their_chosen <= their_rows,
                their_rows <= s.others,
                s.chosen_others - their_chosen <= s.others - their_rows,
            )
        },
        s._replace(
            others=s.others - their_rows,
            chosen_others=s.chosen_others - their_chosen,
            free=s.free + their_rows,
        ),
    )


def stop(scope: ItemScope, s: ItemState, guards: ItemGuards) -> ItemMove:
    """The request is preempted or ends: what is still counted is credited."""
    return ItemMove(
        {},
        s._replace(
            running=False,
            held=False,
            chosen=False,
            free=s.free + ite(s.held, scope.rows, 0),
            start=0,
            scheduled=0,
        ),
    )


def reset(scope: ItemScope, s: ItemState, guards: ItemGuards) -> ItemMove:
    """The encoder cache is reset, on the book and on the worker."""
    return ItemMove(
        {"resets-between-passes": not_(s.in_pass)},
        s._replace(held=False, others=0, free=scope.cache_size, resident=False, resident_others=0),
    )
