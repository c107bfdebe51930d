"""Transitions of the worker: it applies the output of a pass, and the pass ends."""

from __future__ import annotations

from spec.algebra import BoolTerm, and_, iff, implies, not_, or_
from spec.relation.change import changed
from spec.relation.guards import Guards
from spec.relation.state import Move, Scope, State

OUTPUTS_IN_ORDER = "outputs-in-order"


def apply(
    scope: Scope,
    s: State,
    guards: Guards,
    received: BoolTerm,
    forgotten: BoolTerm,
    is_announced: BoolTerm,
    is_encoded: BoolTerm,
    is_overtaken: BoolTerm,
) -> Move:
    """The worker drops what the pass announces, encodes what it is told, and is ready to read.

    Args:
        scope: constants.
        s: the state before.
        guards: the engine's guards.
        received: the raw data of f came with the output.
        forgotten: the worker dropped that data before.
        is_announced: the output names h as evicted.
        is_encoded: the output has h encoded.
        is_overtaken: the notice of a later output came before this one's reads.
    """
    kept = and_(s.resident, not_(is_announced))
    return Move(
        {
            "tries-come-to-an-end": and_(s.in_pass, not_(s.trying)),
            OUTPUTS_IN_ORDER: not_(is_overtaken),
            "announces-what-left": iff(is_announced, guards.is_announced(s.evicted, s.entry)),
            "encodes-what-was-chosen": iff(is_encoded, s.chosen),
            "starts-with-raw-data": implies(s.started, received),
            "forgets-who-stopped": implies(forgotten, or_(s.started, not_(s.running))),
        },
        changed(
            s,
            payload=or_(and_(s.payload, not_(forgotten)), received),
            started=False,
            promised=0,
            promised_here=False,
            evicted=False,
            chosen=False,
            resident=and_(or_(kept, is_encoded), not_(is_overtaken)),
            fresh=or_(and_(kept, s.fresh), and_(not_(kept), is_encoded)),
        ),
    )


def end_pass(scope: Scope, s: State, guards: Guards) -> Move:
    """The step has run: all that the pass chose, evicted and tried has come to its end."""
    applied = not_(or_(s.chosen, s.evicted, s.started, s.trying))
    return Move(
        {"ends-what-was-applied": and_(s.in_pass, applied)},
        changed(s, in_pass=False, asked=False, start=0, scheduled=0),
    )
