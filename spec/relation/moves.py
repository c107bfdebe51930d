"""Every transition of the relation, by name, with what it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from spec.relation import (
    book_moves,
    cross_attention_moves,
    release_moves,
    request_moves,
    worker_moves,
)
from spec.relation.cross_attention import ItemMove
from spec.relation.state import Move

AnyMove = TypeVar("AnyMove", Move, ItemMove)
"""A move of the relation of decoder-only, or of encoder-decoder models."""


@dataclass(frozen=True)
class Transition(Generic[AnyMove]):
    """A transition.

    Attributes:
        name: what it is called in reports.
        move: the function of scope, state, guards and what it is given.
        integers: names of the integers among that.
        booleans: names of the truth values among that.
    """

    name: str
    move: Callable[..., AnyMove]
    integers: tuple[str, ...] = ()
    booleans: tuple[str, ...] = ()


_B, _L, _R, _W, _C = (
    book_moves,
    release_moves,
    request_moves,
    worker_moves,
    cross_attention_moves,
)

TRANSITIONS: dict[str, Transition[Move]] = {
    transition.name: transition
    for transition in (
        Transition("begin-pass", _R.begin_pass),
        Transition("attempt", _R.attempt),
        Transition("hit", _B.hit),
        Transition("hit-other", _B.hit_other, (), ("is_new",)),
        Transition("hit-elsewhere", _B.hit_elsewhere, ("their_rows",)),
        Transition("miss", _B.miss),
        Transition("refuse", _B.refuse, ("chosen_rows", "asked_rows", "budget")),
        Transition("evict", _B.evict, ("wanted",)),
        Transition("evict-elsewhere", _B.evict_elsewhere, ("wanted", "their_rows")),
        Transition("promise", _B.promise, ("chosen_rows",)),
        Transition("promise-elsewhere", _B.promise_elsewhere, ("chosen_rows", "their_rows")),
        Transition("forgo", _B.forgo, ("forgone_rows",), ("here",)),
        Transition("enter", _B.enter),
        Transition("enter-other", _B.enter_other),
        Transition("enter-elsewhere", _B.enter_elsewhere, ("their_rows",)),
        Transition("begin", _R.begin, ("progress",)),
        Transition(
            "advance",
            _R.advance,
            ("num_tokens", "num_drafts", "stopped_at"),
            ("samples", "is_stopped"),
        ),
        Transition(
            "apply",
            _W.apply,
            (),
            ("received", "forgotten", "is_announced", "is_encoded", "is_overtaken"),
        ),
        Transition("end-pass", _W.end_pass),
        Transition("confirm", _R.confirm, ("num_drafts", "num_rejected"), ("samples",)),
        Transition("let-go", _L.let_go),
        Transition("keep", _L.keep),
        Transition("others-let-go", _L.others_let_go, ("count",)),
        Transition("elsewhere-lets-go", _L.elsewhere_lets_go, ("staying_rows", "leaving_rows")),
        Transition("emit", _R.emit),
        Transition("stop", _L.stop, ("own_others",)),
        Transition("rewind", _L.rewind, ("left", "own_others")),
        Transition("reset", _L.reset),
    )
}
"""Every transition, by name, in the order in which a run meets them."""

ITEM_TRANSITIONS: dict[str, Transition[ItemMove]] = {
    transition.name: transition
    for transition in (
        Transition("begin-pass", _C.begin_pass),
        Transition("promise", _C.promise, ("their_rows",), ("here",)),
        Transition("refuse", _C.refuse, ("asked_rows", "budget")),
        Transition("take", _C.take),
        Transition("take-other", _C.take_other, ("their_rows",)),
        Transition("begin", _C.begin),
        Transition("advance", _C.advance, ("num_tokens",)),
        Transition("apply", _C.apply, ("announced_others",), ("is_announced", "is_encoded")),
        Transition("end-pass", _C.end_pass),
        Transition("let-go", _C.let_go),
        Transition("others-let-go", _C.others_let_go, ("their_rows", "their_chosen")),
        Transition("stop", _C.stop),
        Transition("reset", _C.reset),
    )
}
"""Every transition of the relation of encoder-decoder models."""
