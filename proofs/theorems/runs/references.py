"""References: who holds what for how long, in every run, synchronous or not.

The invariants on a request's progress and on what it took, kept by each transition of the relation.
That drafts in flight are placeholders, an assumption where *free* is looked at alone (group
``lifetime``), is proved here of the whole loop: ``drafts-are-counted``. So margin 0 is safe in the
loop; what progress let go is never read again unless progress falls by more than drafts, and even
then nothing is missed, since every pass asks again (group ``residency``).
:mod:`spec.relation` says why one projection stands for all.
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Obligation
from proofs.theorems.runs import faults
from proofs.theorems.runs.kept import Extra, Statement, kept_of, obligation
from spec.algebra import BoolTerm, and_, implies, not_, or_
from spec.relation.invariants import passed_stays_passed
from spec.relation.state import Scope, State
from spec.rules.geometry import drafter_window

GROUP = "references"

_KEPT = {
    "drafts-are-counted": {
        "begin": "",
        "advance": "drafts-are-counted drafts-are-among-the-tokens drafts-are-sampled "
        "waits-for-its-update",
        "confirm": "drafts-are-counted updates-who-runs updates-a-pass-in-flight "
        "rejects-drafts-of-the-pass drafts-are-sampled",
        "emit": "drafts-are-counted",
        "stop": "",
        "rewind": "",
    },
    "taken-is-held": {
        "hit": "",
        "enter": "",
        "enter-other": "reference-has-entry promises-fit taken-is-held enters-what-was-promised",
        "begin": "",
        "advance": "asked-is-held taken-is-held drafts-are-among-the-tokens",
        "confirm": "taken-is-held rejects-drafts-of-the-pass",
        "let-go": "drafts-are-counted lets-go-after-its-pass lets-go-what-progress-passed",
        "stop": "",
        "rewind": "",
        "reset": "",
    },
    "passed-stays-passed": {
        "begin": "",
        "advance": "passed-stays-passed drafts-are-among-the-tokens",
        "confirm": "passed-stays-passed rejects-drafts-of-the-pass",
        "let-go": "drafts-are-counted lets-go-after-its-pass lets-go-what-progress-passed",
        "stop": "",
    },
    "only-active-hold": {
        "begin-pass": "only-active-hold",
        "attempt": "tries-in-a-pass tries-who-waits",
        "hit": "only-active-hold asks-while-it-runs",
        "enter": "only-active-hold asks-while-it-runs",
        "enter-other": "only-active-hold",
        "begin": "",
        "end-pass": "only-active-hold ends-what-was-applied",
        "let-go": "only-active-hold",
        "stop": "",
        "rewind": "only-active-hold",
        "reset": "only-active-hold",
    },
}
"""For each invariant and transition, what the proof uses."""

_CLAIMS = {
    "drafts-are-counted": "counts-agree",
    "taken-is-held": "held-until-last-use",
    "passed-stays-passed": "freed-not-needed",
    "only-active-hold": "no-idle-references",
}


_FAULTS = {
    ("drafts-are-counted", "advance"): (faults.DRAFTS_NOT_COUNTED,),
    ("drafts-are-counted", "confirm"): (faults.REJECTED_KEPT,),
    ("only-active-hold", "stop"): (faults.FINISH_KEEPS,),
    ("only-active-hold", "end-pass"): (faults.WAITING_KEEPS,),
    ("taken-is-held", "let-go"): (faults.FREED_EARLY,),
    ("passed-stays-passed", "let-go"): (faults.FREED_EARLY, faults.IGNORES_PLACEHOLDERS),
}


def _reads(scope: Scope, s: State) -> BoolTerm:
    """Whether target or drafter read p in the pass."""
    _, end = drafter_window(s.start, s.scheduled, scope.gather_lookahead)
    return and_(s.start <= scope.position, scope.position < end)


_FALLS_BY_DRAFTS: dict[str, Extra] = {
    "progress-falls-by-drafts-only": lambda scope, s, told: s.lowest_progress <= told["left"],
}

_IN_FEATURE: dict[str, Extra] = {
    "position-in-feature": lambda scope, s, told: scope.position < scope.end,
}

OBLIGATIONS: tuple[Obligation, ...] = (
    *kept_of(
        GROUP,
        _KEPT,
        _CLAIMS,
        _FAULTS,
    ),
    obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="passed-stays-passed.rewind",
        sentence="a rewind that takes back no more than drafts leaves behind what was let go",
        statement=Statement(
            "rewind",
            ("passed-stays-passed",),
            lambda scope, s, move, told: passed_stays_passed(scope, move.after),
            _FALLS_BY_DRAFTS,
        ),
        drops=("progress-falls-by-drafts-only",),
        witness="cache_size=1 rows=1 length=1 computed=3 running passed left=2 drafts=1 passes=1 "
        "sampling=1 payload free=1 freeable=1 own_others=0",
    ),
    obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="let-go-ends-by-lowest-progress",
        sentence="what progress lets go ends where no rejection of drafts can take progress back",
        statement=Statement(
            "let-go",
            (
                "drafts-are-counted",
                "lets-go-while-it-runs",
                "lets-go-after-its-pass",
                "lets-go-what-progress-passed",
            ),
            lambda scope, s, move, told: scope.end <= s.lowest_progress,
        ),
        drops=("lets-go-after-its-pass", "lets-go-what-progress-passed"),
        faults=(faults.FREED_EARLY, faults.IGNORES_PLACEHOLDERS),
    ),
    obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="passed-is-not-read",
        sentence="no later step of the request reads what progress let go",
        statement=Statement(
            "advance",
            ("passed-stays-passed", "drafts-are-counted", "schedules-who-runs"),
            lambda scope, s, move, told: implies(s.passed, not_(_reads(scope, move.after))),
            _IN_FEATURE,
        ),
        drops=("passed-stays-passed",),
    ),
    obligation(
        claim="held-until-last-use",
        group=GROUP,
        short_name="unreferenced-is-not-needed",
        sentence="an entry that nobody holds has no taken row at or past lowest progress",
        statement=Statement(
            "keep",
            ("taken-is-held",),
            lambda scope, s, move, told: implies(
                and_(s.running, s.taken, scope.position >= s.lowest_progress), s.referenced
            ),
            _IN_FEATURE,
        ),
        drops=("taken-is-held",),
    ),
    obligation(
        claim="held-until-last-use",
        group=GROUP,
        short_name="occurrences-are-held-apart",
        sentence="letting another occurrence go leaves this one held",
        statement=Statement(
            "others-let-go",
            (),
            lambda scope, s, move, told: implies(s.held, move.after.held),
        ),
        faults=(faults.FIRST_OCCURRENCE,),
    ),
    obligation(
        claim="no-idle-references",
        group=GROUP,
        short_name="who-waits-holds-nothing",
        sentence="after a pass a request that does not run holds nothing",
        statement=Statement(
            "end-pass",
            ("only-active-hold", "ends-what-was-applied"),
            lambda scope, s, move, told: implies(not_(s.running), not_(move.after.held)),
        ),
        faults=(faults.WAITING_KEEPS,),
    ),
    obligation(
        claim="released",
        group=GROUP,
        short_name="who-stops-holds-nothing",
        sentence="a request that is finished, aborted, preempted or paused holds nothing",
        statement=Statement(
            "stop",
            (),
            lambda scope, s, move, told: and_(not_(move.after.held), not_(move.after.running)),
        ),
        faults=(
            faults.ENDED_KEEPS,
            faults.FINISH_KEEPS,
        ),
    ),
    *(
        obligation(
            claim="dropped-in-update",
            group=GROUP,
            short_name=f"held-through-a-pass.{transition}",
            sentence=f"`{transition}` takes no reference from a request that goes on in the pass",
            statement=Statement(
                transition,
                tuple(using.split()),
                lambda scope, s, move, told: implies(
                    and_(s.in_pass, s.held), or_(move.after.held, not_(move.after.running))
                ),
            ),
            faults=faults,
        )
        for transition, using, faults in (
            ("let-go", "lets-go-in-an-update", (faults.BEFORE_EXECUTION,)),
            ("rewind", "rewinds-in-an-update", ()),
            ("reset", "resets-between-passes", ()),
            ("enter-other", "reference-has-entry promises-fit enters-what-was-promised", ()),
            ("stop", "", (faults.RUNS_ON,)),
        )
    ),
)


if __name__ == "__main__":
    main_of_group(GROUP, OBLIGATIONS)
