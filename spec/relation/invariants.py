"""What holds in every state of the relation, and what the claims say of one.

The invariants are mutually inductive: each transition keeps each of them, using some of the others.
The groups of :mod:`proofs.theorems.runs` prove that, pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable

from spec.algebra import BoolTerm, and_, eq, implies, ite, not_, or_
from spec.claims.predicates import freed_not_needed, fresh_tensor, is_at_boundary, slots_conserved
from spec.relation.state import Scope, State


def reference_has_entry(scope: Scope, s: State) -> BoolTerm:
    """Whoever holds a reference holds it to an entry that is in the book."""
    return and_(s.others >= 0, implies(s.referenced, s.entry))


def slots_are_sums(scope: Scope, s: State) -> BoolTerm:
    """The book's totals equal the sums over all entries, in bounds."""
    here = ite(s.entry, scope.rows, 0)
    referenced = s.referenced_rows + ite(and_(s.entry, s.referenced), scope.rows, 0)
    return and_(
        s.referenced_rows >= 0,
        s.idle_rows >= 0,
        slots_conserved(
            s.free,
            s.freeable,
            s.referenced_rows + s.idle_rows + here,
            referenced,
            scope.cache_size,
        ),
    )


def promises_fit(scope: Scope, s: State) -> BoolTerm:
    """Room that was promised is free, and what was promised is not in the book."""
    return and_(
        s.promised >= 0,
        s.promised <= s.free,
        implies(s.promised_here, and_(not_(s.entry), scope.rows <= s.promised)),
    )


def chosen_is_referenced(scope: Scope, s: State) -> BoolTerm:
    """What a pass is to encode is in the book, and somebody holds it.

    What it evicted is back in the book only to be encoded.
    """
    return and_(
        implies(s.chosen, and_(s.in_pass, s.entry, s.referenced)),
        implies(s.evicted, and_(s.in_pass, or_(s.chosen, not_(s.entry)))),
    )


def views_agree(scope: Scope, s: State) -> BoolTerm:
    """The worker holds what is in the book, once what the pass chose and evicted reaches it."""
    return and_(
        implies(s.entry, or_(s.resident, s.chosen)),
        implies(or_(not_(s.entry), s.chosen), or_(not_(s.resident), s.evicted)),
    )


def asked_is_held(scope: Scope, s: State) -> BoolTerm:
    """What r asked for and got in this pass, it holds."""
    return implies(s.asked, and_(s.in_pass, s.held))


def reads_were_asked(scope: Scope, s: State) -> BoolTerm:
    """A position that a scheduled r can read was asked for, or is at or past the boundary."""
    end = s.start + s.scheduled
    in_window = and_(s.start <= scope.position, scope.position < end + scope.scheduler_lookahead)
    return implies(
        s.scheduled >= 1,
        and_(
            s.running,
            implies(
                in_window,
                or_(s.asked, is_at_boundary(scope, s.chunk())),
            ),
        ),
    )


def drafts_are_counted(scope: Scope, s: State) -> BoolTerm:
    """Asynchronously, placeholders are the drafts and samples in flight; otherwise none is."""
    return implies(
        s.running,
        and_(
            s.drafts >= 0,
            s.passes >= 0,
            s.sampling >= 0,
            s.settling >= 0,
            implies(scope.is_async, eq(s.placeholders, s.drafts + s.sampling + s.settling)),
            implies(
                not_(scope.is_async),
                and_(eq(s.placeholders, 0), s.passes <= 1),
            ),
            implies(s.passes <= 0, and_(s.drafts <= 0, s.sampling <= 0)),
        ),
    )


def taken_is_held(scope: Scope, s: State) -> BoolTerm:
    """What a running r took, it holds until no progress can fall back to it."""
    return implies(and_(s.running, s.taken), or_(s.held, scope.end <= s.lowest_progress))


def passed_stays_passed(scope: Scope, s: State) -> BoolTerm:
    """What progress let go, no progress can fall back to.

    A rewind keeps it only under the assumption ``progress-falls-by-drafts-only``. Nothing else
    rests on this invariant, since every pass asks again for what it reads.
    """
    return freed_not_needed(and_(s.running, s.passed), scope.end, s.lowest_progress)


def only_active_hold(scope: Scope, s: State) -> BoolTerm:
    """Who neither runs nor is being tried holds nothing."""
    return and_(
        implies(s.held, or_(s.running, s.trying)),
        implies(s.trying, and_(s.in_pass, not_(s.running))),
    )


def raw_data_is_there(scope: Scope, s: State) -> BoolTerm:
    """The worker has the raw data of who runs, or gets it with this pass."""
    return implies(s.running, or_(s.payload, and_(s.started, s.in_pass)))


def tensor_is_fresh(scope: Scope, s: State) -> BoolTerm:
    """What the worker holds was encoded since the cache was last reset."""
    # That it is of the reader's own content, and so has its rows, is assumption hash-is-content.
    return fresh_tensor(s.resident, True, s.fresh, True)


INVARIANTS: dict[str, Callable[[Scope, State], BoolTerm]] = {
    "reference-has-entry": reference_has_entry,
    "slots-are-sums": slots_are_sums,
    "promises-fit": promises_fit,
    "chosen-is-referenced": chosen_is_referenced,
    "views-agree": views_agree,
    "asked-is-held": asked_is_held,
    "reads-were-asked": reads_were_asked,
    "drafts-are-counted": drafts_are_counted,
    "taken-is-held": taken_is_held,
    "passed-stays-passed": passed_stays_passed,
    "only-active-hold": only_active_hold,
    "raw-data-is-there": raw_data_is_there,
    "tensor-is-fresh": tensor_is_fresh,
}
"""Every invariant, by name."""
