"""References: who holds what for how long, in every run, synchronous or not.

The invariants on a request's progress and on what it took, kept by each transition of the relation.
That drafts in flight are placeholders, an assumption where *free* is looked at alone (group
``lifetime``), is proved here of the whole loop: ``drafts-are-counted``. So margin 0 is safe in the
loop; what progress let go is never read again unless progress falls by more than drafts, and even
then nothing is missed, since every pass asks again (group ``residency``).
:mod:`spec.relation` says why one projection stands for all.
"""

from __future__ import annotations

from collections.abc import Callable

from proofs.smt.main import main_of_group
from proofs.smt.theorem import Group
from proofs.theorems.runs import faults
from proofs.theorems.runs.kept import Arguments, Extra, Fault, Shown, kept, shown
from proofs.theorems.runs.variables import values
from spec.algebra import BoolTerm, and_, implies, not_
from spec.claims import predicates as claims
from spec.relation.invariants import (
    drafts_are_counted,
    only_active_hold,
    passed_stays_passed,
    taken_is_held,
)
from spec.relation.state import Move, Scope, State
from spec.rules.geometry import drafter_window

GROUP = Group("references")


kept(
    GROUP,
    drafts_are_counted,
    claim="counts-agree",
    by={
        "begin": (),
        "advance": (
            "drafts-are-counted",
            "drafts-are-among-the-tokens",
            "drafts-are-sampled",
            "waits-for-its-update",
        ),
        "confirm": (
            "drafts-are-counted",
            "updates-who-runs",
            "updates-a-pass-in-flight",
            "rejects-drafts-of-the-pass",
            "drafts-are-sampled",
        ),
        "emit": ("drafts-are-counted",),
        "stop": (),
        "rewind": (),
    },
    faults={"advance": (faults.DRAFTS_NOT_COUNTED,), "confirm": (faults.REJECTED_KEPT,)},
)

kept(
    GROUP,
    taken_is_held,
    claim="held-until-last-use",
    by={
        "hit": (),
        "enter": (),
        "enter-other": (
            "reference-has-entry",
            "promises-fit",
            "taken-is-held",
            "enters-what-was-promised",
        ),
        "begin": (),
        "advance": ("asked-is-held", "taken-is-held", "drafts-are-among-the-tokens"),
        "confirm": ("taken-is-held", "rejects-drafts-of-the-pass"),
        "let-go": ("drafts-are-counted", "lets-go-after-its-pass", "lets-go-what-progress-passed"),
        "stop": (),
        "rewind": (),
        "reset": (),
    },
    faults={"let-go": (faults.FREED_EARLY,)},
)

kept(
    GROUP,
    passed_stays_passed,
    claim="freed-not-needed",
    by={
        "begin": (),
        "advance": ("passed-stays-passed", "drafts-are-among-the-tokens"),
        "confirm": ("passed-stays-passed", "rejects-drafts-of-the-pass"),
        "let-go": ("drafts-are-counted", "lets-go-after-its-pass", "lets-go-what-progress-passed"),
        "stop": (),
    },
    faults={"let-go": (faults.FREED_EARLY, faults.IGNORES_PLACEHOLDERS)},
)

kept(
    GROUP,
    only_active_hold,
    claim="no-idle-references",
    by={
        "begin-pass": ("only-active-hold",),
        "attempt": ("tries-in-a-pass", "tries-who-waits"),
        "hit": ("only-active-hold", "asks-while-it-runs"),
        "enter": ("only-active-hold", "asks-while-it-runs"),
        "enter-other": ("only-active-hold",),
        "begin": (),
        "end-pass": ("only-active-hold", "ends-what-was-applied"),
        "let-go": ("only-active-hold",),
        "stop": (),
        "rewind": ("only-active-hold",),
        "reset": ("only-active-hold",),
    },
    faults={"stop": (faults.FINISH_KEEPS,), "end-pass": (faults.WAITING_KEEPS,)},
)


def _reads(scope: Scope, s: State) -> BoolTerm:
    """Whether target or drafter read p in the pass."""
    _, end = drafter_window(s.start, s.scheduled, scope.gather_lookahead)
    return and_(s.start <= scope.position, scope.position < end)


_FALLS_BY_DRAFTS: dict[str, Extra] = {
    "progress-falls-by-drafts-only": lambda scope, s, arguments: (
        s.lowest_progress <= arguments["left"]
    )
}


_IN_FEATURE: dict[str, Extra] = {
    "position-in-feature": lambda scope, s, arguments: scope.position < scope.end
}


@shown(
    GROUP,
    "rewind",
    using=("passed-stays-passed",),
    given=_FALLS_BY_DRAFTS,
    name="passed-stays-passed.rewind",
    claim="freed-not-needed",
    sentence="a rewind that takes back no more than drafts leaves behind what was let go",
    drops=("progress-falls-by-drafts-only",),
    witness=values(
        cache_size=1,
        rows=1,
        length=1,
        computed=3,
        running=True,
        passed=True,
        left=2,
        drafts=1,
        passes=1,
        sampling=1,
        payload=True,
        free=1,
        freeable=1,
        own_others=0,
    ),
)
def _passed_stays_passed_rewind(
    scope: Scope, s: State, move: Move, arguments: Arguments
) -> BoolTerm:
    return passed_stays_passed(scope, move.after)


@shown(
    GROUP,
    "let-go",
    using=(
        "drafts-are-counted",
        "lets-go-while-it-runs",
        "lets-go-after-its-pass",
        "lets-go-what-progress-passed",
    ),
    claim="freed-not-needed",
    sentence="what progress lets go ends where no rejection of drafts can take progress back",
    drops=("lets-go-after-its-pass", "lets-go-what-progress-passed"),
    faults=(faults.FREED_EARLY, faults.IGNORES_PLACEHOLDERS),
)
def _let_go_ends_by_lowest_progress(
    scope: Scope, s: State, move: Move, arguments: Arguments
) -> BoolTerm:
    return claims.freed_not_needed(True, scope.end, s.lowest_progress)


@shown(
    GROUP,
    "advance",
    using=("passed-stays-passed", "drafts-are-counted", "schedules-who-runs"),
    given=_IN_FEATURE,
    claim="freed-not-needed",
    sentence="no later step of the request reads what progress let go",
    drops=("passed-stays-passed",),
)
def _passed_is_not_read(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return implies(s.passed, not_(_reads(scope, move.after)))


@shown(
    GROUP,
    "keep",
    using=("taken-is-held",),
    given=_IN_FEATURE,
    claim="held-until-last-use",
    sentence="an entry that nobody holds has no taken row at or past lowest progress",
    drops=("taken-is-held",),
)
def _unreferenced_is_not_needed(
    scope: Scope, s: State, move: Move, arguments: Arguments
) -> BoolTerm:
    is_needed = scope.position >= s.lowest_progress
    return claims.held_until_last_use(and_(s.running, s.taken), is_needed, s.referenced)


@shown(
    GROUP,
    "others-let-go",
    using=(),
    claim="held-until-last-use",
    sentence="letting another occurrence go leaves this one held",
    faults=(faults.FIRST_OCCURRENCE,),
)
def _occurrences_are_held_apart(
    scope: Scope, s: State, move: Move, arguments: Arguments
) -> BoolTerm:
    return implies(s.held, move.after.held)


@shown(
    GROUP,
    "end-pass",
    using=("only-active-hold", "ends-what-was-applied"),
    claim="no-idle-references",
    sentence="after a pass a request that does not run holds nothing",
    faults=(faults.WAITING_KEEPS,),
)
def _who_waits_holds_nothing(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return claims.no_idle_references(not_(s.running), False, move.after.held)


@shown(
    GROUP,
    "stop",
    using=(),
    claim="released",
    sentence="a request that is finished, aborted, preempted or paused holds nothing",
    faults=(faults.ENDED_KEEPS, faults.FINISH_KEEPS),
)
def _who_stops_holds_nothing(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return and_(claims.released(True, move.after.held), not_(move.after.running))


def _goes_on_holding(
    transition: str, *using: str, faults: tuple[Fault, ...] = ()
) -> Callable[[Shown], Shown]:
    return shown(
        GROUP,
        transition,
        using=using,
        claim="dropped-in-update",
        sentence=f"`{transition}` takes no reference from a request that goes on in the pass",
        name=f"held-through-a-pass.{transition}",
        faults=faults,
    )


@_goes_on_holding("let-go", "lets-go-in-an-update", faults=(faults.BEFORE_EXECUTION,))
@_goes_on_holding("rewind", "rewinds-in-an-update")
@_goes_on_holding("reset", "resets-between-passes")
@_goes_on_holding("enter-other", "reference-has-entry", "promises-fit", "enters-what-was-promised")
@_goes_on_holding("stop", faults=(faults.RUNS_ON,))
def _held_through_a_pass(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    stops = not_(move.after.running)
    return claims.dropped_in_update(and_(s.in_pass, s.held), move.after.held, stops)


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
