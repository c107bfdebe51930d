"""Transitions of the book: what each call does to the entry h and to the sums of the others."""

from __future__ import annotations

from spec.algebra import BoolTerm, IntTerm, and_, eq, ite, not_, or_
from spec.relation.change import changed
from spec.relation.guards import Guards
from spec.relation.state import Move, Scope, State
from spec.rules import encoder_inputs

DURING = "asks-in-a-pass"
ACTIVE = "asks-while-it-runs"


def hit(scope: Scope, s: State, guards: Guards) -> Move:
    """The request asks for f and finds h, or meets f as a duplicate that takes a reference."""
    return Move(
        {
            DURING: s.in_pass,
            ACTIVE: or_(s.running, s.trying),
            "hits-an-entry": s.entry,
        },
        changed(
            s,
            held=True,
            asked=True,
            freeable=s.freeable - ite(s.referenced, 0, scope.rows),
        ),
    )


def hit_other(scope: Scope, s: State, guards: Guards, is_new: BoolTerm) -> Move:
    """Another occurrence finds h; it may have been held for it before."""
    return Move(
        {
            DURING: s.in_pass,
            "hits-an-entry": s.entry,
            "held-before-unless-new": or_(is_new, s.others >= 1),
        },
        changed(
            s,
            others=s.others + ite(is_new, 1, 0),
            freeable=s.freeable - ite(s.referenced, 0, scope.rows),
        ),
    )


def hit_elsewhere(scope: Scope, s: State, guards: Guards, their_rows: IntTerm) -> Move:
    """Somebody finds another entry, of so many rows, that was unreferenced."""
    return Move(
        {
            DURING: s.in_pass,
            "rows-are-among-the-idle": and_(their_rows >= 0, their_rows <= s.idle_rows),
        },
        changed(
            s,
            freeable=s.freeable - their_rows,
            idle_rows=s.idle_rows - their_rows,
            referenced_rows=s.referenced_rows + their_rows,
        ),
    )


def miss(scope: Scope, s: State, guards: Guards) -> Move:
    """Somebody asks for h and does not find it."""
    return Move({DURING: s.in_pass, "misses-what-is-absent": not_(s.entry)}, s)


def refuse(
    scope: Scope,
    s: State,
    guards: Guards,
    chosen_rows: IntTerm,
    asked_rows: IntTerm,
    budget: IntTerm,
) -> Move:
    """There is no room for ``asked_rows`` more than was promised, or no encoder budget."""
    fits = encoder_inputs.has_room(asked_rows, budget, s.promised, s.freeable)
    return Move(
        {
            DURING: s.in_pass,
            "counts-what-was-promised": eq(chosen_rows, s.promised),
            "refuses-what-does-not-fit": not_(fits),
        },
        s,
    )


def evict(scope: Scope, s: State, guards: Guards, wanted: IntTerm) -> Move:
    """The book takes the room of h, for somebody who needs ``wanted`` rows."""
    return Move(
        {
            DURING: s.in_pass,
            "evicts-an-entry": s.entry,
            "evicts-the-unreferenced": guards.may_evict(s.referenced),
            "evicts-for-want-of-room": s.free < wanted,
        },
        changed(
            s,
            entry=False,
            evicted=True,
            free=s.free + scope.rows,
        ),
    )


def evict_elsewhere(
    scope: Scope, s: State, guards: Guards, wanted: IntTerm, their_rows: IntTerm
) -> Move:
    """The book takes the room of another entry."""
    return Move(
        {
            DURING: s.in_pass,
            "rows-are-among-the-idle": and_(their_rows >= 0, their_rows <= s.idle_rows),
            "evicts-for-want-of-room": s.free < wanted,
        },
        changed(s, idle_rows=s.idle_rows - their_rows, free=s.free + their_rows),
    )


def promise(scope: Scope, s: State, guards: Guards, chosen_rows: IntTerm) -> Move:
    """The book made room for h, beside ``chosen_rows`` rows promised before."""
    return Move(
        {
            DURING: s.in_pass,
            "promises-what-is-absent": not_(s.entry),
            "promises-once": not_(s.promised_here),
            "counts-what-was-promised": eq(chosen_rows, s.promised),
            "promised-room-is-free": chosen_rows + scope.rows <= s.free,
        },
        changed(s, promised=chosen_rows + scope.rows, promised_here=True),
    )


def promise_elsewhere(
    scope: Scope, s: State, guards: Guards, chosen_rows: IntTerm, their_rows: IntTerm
) -> Move:
    """The book made room for another hash, beside ``chosen_rows`` promised before."""
    return Move(
        {
            DURING: s.in_pass,
            "rows-not-negative": their_rows >= 0,
            "counts-what-was-promised": eq(chosen_rows, s.promised),
            "promised-room-is-free": chosen_rows + their_rows <= s.free,
        },
        changed(s, promised=chosen_rows + their_rows),
    )


def forgo(scope: Scope, s: State, guards: Guards, forgone_rows: IntTerm, here: BoolTerm) -> Move:
    """Who was promised room does not use ``forgone_rows`` of it, those for h among them or not."""
    left = s.promised - forgone_rows
    stays = and_(s.promised_here, not_(here))
    return Move(
        {
            "rows-not-negative": forgone_rows >= 0,
            "keeps-what-it-uses": ite(stays, scope.rows, 0) <= left,
        },
        changed(s, promised=left, promised_here=stays),
    )


def enter(scope: Scope, s: State, guards: Guards) -> Move:
    """The request allocates h for f: the entry is new, and this pass encodes it."""
    return Move(
        {
            DURING: s.in_pass,
            ACTIVE: or_(s.running, s.trying),
            "enters-what-was-promised": s.promised_here,
        },
        changed(
            _entered(scope, s),
            held=True,
            asked=True,
            others=0,
        ),
    )


def enter_other(scope: Scope, s: State, guards: Guards) -> Move:
    """The entry is allocated for another occurrence."""
    return Move(
        {DURING: s.in_pass, "enters-what-was-promised": s.promised_here},
        changed(_entered(scope, s), held=False, others=1),
    )


def _entered(scope: Scope, s: State) -> State:
    """A new entry of one holder, whoever it is."""
    return changed(
        s,
        entry=True,
        chosen=True,
        free=s.free - scope.rows,
        freeable=s.freeable - scope.rows,
        promised=s.promised - scope.rows,
        promised_here=False,
    )


def enter_elsewhere(scope: Scope, s: State, guards: Guards, their_rows: IntTerm) -> Move:
    """Another hash is allocated."""
    here = ite(s.promised_here, scope.rows, 0)
    return Move(
        {
            DURING: s.in_pass,
            "rows-not-negative": their_rows >= 0,
            "enters-what-was-promised": their_rows <= s.promised - here,
        },
        changed(
            s,
            free=s.free - their_rows,
            freeable=s.freeable - their_rows,
            promised=s.promised - their_rows,
            referenced_rows=s.referenced_rows + their_rows,
        ),
    )
