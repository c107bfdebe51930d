"""Transitions by which references go, and entries with them."""

from __future__ import annotations

from spec.algebra import BoolTerm, IntTerm, and_, implies, ite, not_, or_
from spec.relation.change import changed
from spec.relation.guards import Guards
from spec.relation.state import Move, Scope, State

AMONG_THE_OTHERS = "lets-go-what-is-held"


def let_go(scope: Scope, s: State, guards: Guards) -> Move:
    """An update lets the occurrence f of r go, for progress has passed it."""
    return Move(
        {
            "lets-go-in-an-update": guards.may_let_go(s.in_pass),
            "lets-go-while-it-runs": s.running,
            "lets-go-what-is-held": s.held,
            "lets-go-after-its-pass": guards.waits_for_update(scope.is_async, s.passes),
            "lets-go-what-progress-passed": guards.goes_by_progress(
                scope.offset, scope.length, s.computed, s.placeholders
            ),
        },
        changed(_let_go(scope, s, guards, False, s.others), passed=True),
    )


def keep(scope: Scope, s: State, guards: Guards) -> Move:
    """The update of r has let go all that progress has passed: f is not among what is held."""
    goes = guards.goes_by_progress(scope.offset, scope.length, s.computed, s.placeholders)
    return Move({"keeps-only-what-is-needed": implies(and_(s.running, s.held), not_(goes))}, s)


def others_let_go(scope: Scope, s: State, guards: Guards, count: IntTerm) -> Move:
    """Other occurrences let h go: by progress, or with a request that stops.

    An entry that the pass was to encode for a request that stops goes with it, unless somebody else
    holds it.
    """
    return Move(
        {AMONG_THE_OTHERS: and_(count >= 0, count <= s.others)},
        _let_go(scope, s, guards, s.held, s.others - count),
    )


def elsewhere_lets_go(
    scope: Scope, s: State, guards: Guards, staying_rows: IntTerm, leaving_rows: IntTerm
) -> Move:
    """Other entries lose their last reference; rows of them stay in the book, others leave it."""
    return Move(
        {
            AMONG_THE_OTHERS: and_(
                staying_rows >= 0,
                leaving_rows >= 0,
                staying_rows + leaving_rows <= s.referenced_rows,
            ),
        },
        changed(
            s,
            referenced_rows=s.referenced_rows - staying_rows - leaving_rows,
            idle_rows=s.idle_rows + staying_rows,
            freeable=s.freeable + staying_rows + leaving_rows,
            free=s.free + leaving_rows,
        ),
    )


def stop(scope: Scope, s: State, guards: Guards, own_others: IntTerm) -> Move:
    """The request stops: it is preempted, gives back, ends or pauses; it lets everything go.

    ``own_others`` are further occurrences of h that r holds.
    """
    return Move(
        {AMONG_THE_OTHERS: and_(own_others >= 0, own_others <= s.others)},
        changed(
            _let_go(scope, s, guards, False, s.others - own_others),
            running=False,
            trying=False,
            drafts=0,
            passes=0,
            sampling=0,
            settling=0,
            taken=False,
            passed=False,
            asked=False,
            start=0,
            scheduled=0,
        ),
    )


def rewind(scope: Scope, s: State, guards: Guards, left: IntTerm, own_others: IntTerm) -> Move:
    """KV that was loaded is not there: progress falls, and r lets everything go."""
    return Move(
        {
            "rewinds-in-an-update": not_(s.in_pass),
            "rewinds-while-it-runs": s.running,
            "rewinds-to-a-position": left >= 0,
            AMONG_THE_OTHERS: and_(own_others >= 0, own_others <= s.others),
        },
        changed(
            _let_go(scope, s, guards, False, s.others - own_others),
            computed=left,
            placeholders=0,
            drafts=0,
            passes=0,
            sampling=0,
            settling=0,
            taken=False,
        ),
    )


def reset(scope: Scope, s: State, guards: Guards) -> Move:
    """The encoder cache is reset, on the book and on the worker."""
    return Move(
        {"resets-between-passes": not_(s.in_pass)},
        changed(
            s,
            entry=False,
            held=False,
            others=0,
            free=scope.cache_size,
            freeable=scope.cache_size,
            referenced_rows=0,
            idle_rows=0,
            taken=False,
            resident=False,
            fresh=False,
        ),
    )


def _let_go(scope: Scope, s: State, guards: Guards, held: BoolTerm, others: IntTerm) -> State:
    """The state in which h is held by so many: it becomes freeable, stays referenced, or leaves."""
    referenced = or_(held, others >= 1)
    leaves = and_(s.entry, guards.leaves_with_victim(s.chosen, referenced))
    freed = and_(s.entry, s.referenced, not_(referenced))
    return changed(
        s,
        entry=and_(s.entry, not_(leaves)),
        chosen=and_(s.chosen, not_(leaves)),
        held=held,
        others=others,
        freeable=s.freeable + ite(freed, scope.rows, 0),
        free=s.free + ite(leaves, scope.rows, 0),
    )
