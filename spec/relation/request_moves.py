"""Transitions of the request r: it starts, a pass schedules it, an update confirms what ran."""

from __future__ import annotations

from spec.algebra import BoolTerm, IntTerm, and_, eq, implies, ite, not_, or_
from spec.relation.change import changed
from spec.relation.guards import Guards
from spec.relation.state import Move, Scope, State


def begin_pass(scope: Scope, s: State, guards: Guards) -> Move:
    """A pass begins."""
    return Move({"passes-follow-each-other": not_(s.in_pass)}, changed(s, in_pass=True))


def attempt(scope: Scope, s: State, guards: Guards) -> Move:
    """The pass looks whether r, which waits, can run."""
    return Move(
        {"tries-in-a-pass": s.in_pass, "tries-who-waits": not_(or_(s.running, s.trying))},
        changed(s, trying=True),
    )


def begin(scope: Scope, s: State, guards: Guards, progress: IntTerm) -> Move:
    """The request starts to run, with so many tokens found computed."""
    return Move(
        {
            "starts-who-was-tried": and_(s.in_pass, s.trying),
            "starts-at-a-position": progress >= 0,
        },
        changed(
            s,
            running=True,
            trying=False,
            started=True,
            computed=progress,
            placeholders=0,
            drafts=0,
            passes=0,
            sampling=0,
            settling=0,
            taken=False,
            passed=False,
        ),
    )


def advance(
    scope: Scope,
    s: State,
    guards: Guards,
    num_tokens: IntTerm,
    num_drafts: IntTerm,
    samples: BoolTerm,
    is_stopped: BoolTerm,
    stopped_at: IntTerm,
) -> Move:
    """The pass schedules r.

    Args:
        scope: constants.
        s: the state before.
        guards: the engine's guards.
        num_tokens: tokens that run, n.
        num_drafts: drafts among them.
        samples: whether the step reaches the end of what is known.
        is_stopped: whether the search for encoder inputs stopped at a feature that was refused, or
            that may not be split.
        stopped_at: offset of that feature.
    """
    window_end = guards.window_end(s.computed, num_tokens, scope.scheduler_lookahead)
    in_window = and_(s.computed <= scope.position, scope.position < window_end)
    return Move(
        {
            "schedules-who-runs": and_(s.in_pass, s.running, eq(s.scheduled, 0)),
            "step-not-empty": num_tokens >= 1,
            "drafts-are-among-the-tokens": and_(num_drafts >= 0, num_drafts <= num_tokens),
            "drafts-are-sampled": implies(num_drafts >= 1, samples),
            "waits-for-its-update": guards.waits_for_update(scope.is_async, s.passes),
            "looks-through-the-window": implies(
                and_(in_window, not_(s.asked)), and_(is_stopped, stopped_at <= scope.offset)
            ),
            "ends-before-what-was-refused": implies(
                is_stopped, guards.ends_before_refused(s.computed, num_tokens, stopped_at)
            ),
            "keeps-items-whole": guards.keeps_item_whole(
                scope.offset, scope.length, s.computed, num_tokens, scope.is_whole
            ),
        },
        changed(
            s,
            computed=s.computed + num_tokens,
            placeholders=s.placeholders + ite(and_(scope.is_async, samples), 1 + num_drafts, 0),
            drafts=s.drafts + num_drafts,
            passes=s.passes + 1,
            sampling=s.sampling + ite(samples, 1, 0),
            taken=or_(s.taken, s.asked),
            start=s.computed,
            scheduled=num_tokens,
        ),
    )


def confirm(
    scope: Scope,
    s: State,
    guards: Guards,
    num_drafts: IntTerm,
    num_rejected: IntTerm,
    samples: BoolTerm,
) -> Move:
    """The update of a pass takes rejected drafts back from the progress of r.

    ``num_drafts`` and ``samples`` are those of the pass, as it was scheduled.
    """
    one_left = eq(s.passes, 1)
    rejected = ite(scope.is_async, num_rejected, 0)
    return Move(
        {
            "updates-who-runs": and_(not_(s.in_pass), s.running, eq(s.settling, 0)),
            "updates-a-pass-in-flight": and_(
                s.passes >= 1,
                ite(samples, 1, 0) <= s.sampling,
                num_drafts <= s.drafts,
                implies(one_left, and_(eq(num_drafts, s.drafts), s.sampling <= ite(samples, 1, 0))),
            ),
            "rejects-drafts-of-the-pass": and_(num_rejected >= 0, num_rejected <= num_drafts),
            "drafts-are-sampled": implies(num_drafts >= 1, samples),
        },
        changed(
            s,
            computed=s.computed - num_rejected,
            placeholders=s.placeholders - rejected,
            drafts=s.drafts - num_drafts,
            passes=s.passes - 1,
            sampling=s.sampling - ite(samples, 1, 0),
            settling=ite(samples, 1 + num_drafts - num_rejected, 0),
        ),
    )


def emit(scope: Scope, s: State, guards: Guards) -> Move:
    """The update appends what was sampled, and r goes on; it is no longer counted in advance."""
    return Move(
        {"emits-in-an-update": and_(not_(s.in_pass), s.running)},
        changed(
            s,
            placeholders=s.placeholders - ite(scope.is_async, s.settling, 0),
            settling=0,
        ),
    )
