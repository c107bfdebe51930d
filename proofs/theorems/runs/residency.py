"""Residency: what target and drafter read is on the worker, in every pass of every run.

The invariants that lead there, kept by each transition of the relation: who holds a reference holds
an entry; what a pass asked for it holds, up to where its chunk ends; and the worker holds the book.
None of them rests on *when* references go: every pass asks again for all that it reads, so that the
margin of *free* has no part in residency. Any number of requests, features, tokens and passes in
flight; :mod:`spec.relation` says why one projection stands for all.
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Obligation
from proofs.theorems.runs import faults
from proofs.theorems.runs.kept import Extra, Statement, Told, kept_of, obligation
from spec.algebra import BoolTerm, IntTerm, and_, iff, implies, not_, or_
from spec.relation.state import Scope, State
from spec.rules import free as rules
from spec.rules.geometry import drafter_window

GROUP = "residency"

_KEPT = {
    "reference-has-entry": {
        "hit": "reference-has-entry hits-an-entry",
        "hit-other": "reference-has-entry hits-an-entry",
        "evict": "reference-has-entry evicts-the-unreferenced",
        "enter": "",
        "enter-other": "",
        "let-go": "reference-has-entry",
        "others-let-go": "reference-has-entry lets-go-what-is-held",
        "stop": "reference-has-entry lets-go-what-is-held",
        "rewind": "reference-has-entry lets-go-what-is-held",
        "reset": "",
    },
    "chosen-is-referenced": {
        "begin-pass": "chosen-is-referenced",
        "hit": "chosen-is-referenced",
        "hit-other": "chosen-is-referenced",
        "evict": "chosen-is-referenced asks-in-a-pass evicts-the-unreferenced",
        "enter": "asks-in-a-pass",
        "enter-other": "asks-in-a-pass",
        "apply": "",
        "end-pass": "ends-what-was-applied",
        "let-go": "chosen-is-referenced",
        "others-let-go": "chosen-is-referenced",
        "stop": "chosen-is-referenced",
        "rewind": "chosen-is-referenced",
        "reset": "chosen-is-referenced resets-between-passes",
    },
    "views-agree": {
        "evict": "",
        "enter": "promises-fit views-agree enters-what-was-promised",
        "enter-other": "promises-fit views-agree enters-what-was-promised",
        "apply": "chosen-is-referenced views-agree outputs-in-order "
        "announces-what-left encodes-what-was-chosen",
        "let-go": "views-agree",
        "others-let-go": "views-agree",
        "stop": "views-agree",
        "rewind": "views-agree",
        "reset": "",
    },
    "asked-is-held": {
        "begin-pass": "asked-is-held",
        "hit": "asks-in-a-pass",
        "enter": "asks-in-a-pass",
        "enter-other": "reference-has-entry promises-fit asked-is-held enters-what-was-promised",
        "end-pass": "",
        "let-go": "asked-is-held lets-go-in-an-update",
        "stop": "",
        "rewind": "asked-is-held rewinds-in-an-update",
        "reset": "asked-is-held resets-between-passes",
    },
    "reads-were-asked": {
        "hit": "reads-were-asked",
        "enter": "reads-were-asked",
        "begin": "reads-were-asked",
        "advance": "schedules-who-runs looks-through-the-window ends-before-what-was-refused",
        "end-pass": "",
        "stop": "",
    },
    "raw-data-is-there": {
        "begin-pass": "raw-data-is-there",
        "begin": "starts-who-was-tried",
        "apply": "raw-data-is-there starts-with-raw-data forgets-who-stopped",
        "end-pass": "raw-data-is-there ends-what-was-applied",
        "stop": "",
    },
    "tensor-is-fresh": {
        "apply": "tensor-is-fresh",
        "reset": "",
    },
}
"""For each invariant and transition, what the proof uses."""

_CLAIMS = {
    "reference-has-entry": "target-resident",
    "chosen-is-referenced": "views-agree",
    "views-agree": "views-agree",
    "asked-is-held": "held-until-last-use",
    "reads-were-asked": "drafter-resident-or-boundary",
    "raw-data-is-there": "payload-available",
    "tensor-is-fresh": "fresh-tensor",
}


_FAULTS = {
    ("reads-were-asked", "advance"): (faults.NO_SHIFT, faults.LEADING_GAP, faults.CUT_LATE),
    ("asked-is-held", "hit"): (faults.DUPLICATE_UNHELD,),
    ("views-agree", "apply"): (faults.NOTICES_LOST, faults.FINISHED_DROPS),
    ("views-agree", "stop"): (faults.VICTIM_STAYS,),
    ("views-agree", "others-let-go"): (faults.VICTIM_STAYS,),
    ("views-agree", "reset"): (faults.WORKER_KEEPS,),
    ("raw-data-is-there", "apply"): (faults.NO_PAYLOAD,),
    ("tensor-is-fresh", "reset"): (faults.WORKER_KEEPS,),
    ("reference-has-entry", "evict"): (faults.EVICTS_HELD,),
}


# Claims, at the moment of the reads


def _reads(scope: Scope, s: State, look_ahead: IntTerm) -> BoolTerm:
    """Whether a scheduled request reads p, so far ahead: the target 0, the drafter further."""
    start, end = drafter_window(s.start, s.scheduled, look_ahead)
    return and_(s.scheduled >= 1, start <= scope.position, scope.position < end)


def _lies_behind(scope: Scope, told: Told) -> BoolTerm:
    """Whether the search for inputs stopped at the feature or before it."""
    return and_(told["is_stopped"], told["stopped_at"] <= scope.offset)


_RESIDENCY = (
    "reads-were-asked",
    "asked-is-held",
    "reference-has-entry",
    "views-agree",
    "announces-what-left",
    "encodes-what-was-chosen",
    "outputs-in-order",
)
_READ_AHEAD = (
    "cache_size=2 rows=2 length=2 position=1 scheduler_lookahead=1 gather_lookahead=1 running "
    "computed=1 passes=1 taken started entry held in_pass chosen asked scheduled=1 received "
    "no-forgotten no-is_announced is_encoded no-is_overtaken"
)
"""A[0,2) in chunks of 1: the drafter reads the second row, and the pass encodes it."""

_IN_FEATURE: dict[str, Extra] = {
    "position-in-feature": lambda scope, s, told: scope.offset <= scope.position,
    "shift-not-negative": lambda scope, s, told: scope.scheduler_lookahead >= 0,
}
_LOOKS_AHEAD = "look-ahead-not-negative"
_LOOKS_AS_FAR = "scheduler-looks-as-far"
_AHEAD: dict[str, Extra] = {
    _LOOKS_AHEAD: lambda scope, s, told: scope.gather_lookahead >= 0,
    _LOOKS_AS_FAR: lambda scope, s, told: scope.gather_lookahead <= scope.scheduler_lookahead,
}

OBLIGATIONS: tuple[Obligation, ...] = (
    *kept_of(GROUP, _KEPT, _CLAIMS, _FAULTS),
    obligation(
        claim="target-resident",
        group=GROUP,
        short_name="target-reads",
        sentence="once the worker has applied a pass, every row that the target reads is there",
        statement=Statement(
            "apply",
            _RESIDENCY,
            lambda scope, s, move, told: move.after.resident,
            {
                **_IN_FEATURE,
                "target-reads-it": lambda scope, s, told: _reads(scope, s, 0),
            },
        ),
        drops=("outputs-in-order", "target-reads-it"),
    ),
    obligation(
        claim="drafter-resident-or-boundary",
        group=GROUP,
        short_name="drafter-reads",
        sentence="once the worker has applied a pass, every row that the drafter reads is there, "
        "or its feature lies at the boundary",
        statement=Statement(
            "apply",
            _RESIDENCY,
            lambda scope, s, move, told: rules.read_is_safe(
                move.after.resident, scope.offset, s.start, s.scheduled
            ),
            {
                **_AHEAD,
                "drafter-reads-it": lambda scope, s, told: _reads(scope, s, scope.gather_lookahead),
            },
        ),
        drops=("outputs-in-order", _LOOKS_AS_FAR, "drafter-reads-it"),
        witness=_READ_AHEAD,
    ),
    obligation(
        claim="target-resident",
        group=GROUP,
        short_name="target-reads-were-asked",
        sentence="what the target reads in a chunk, the pass asked for and got",
        statement=Statement(
            "advance",
            ("looks-through-the-window", "ends-before-what-was-refused"),
            lambda scope, s, move, told: implies(_reads(scope, move.after, 0), s.asked),
            _IN_FEATURE,
        ),
        drops=("looks-through-the-window", "ends-before-what-was-refused"),
        faults=(faults.CUT_LATE,),
    ),
    obligation(
        claim="need-agrees",
        group=GROUP,
        short_name="needs-are-asked",
        sentence="what target or drafter will read, the pass asked for, or it lies at or behind "
        "what was refused",
        statement=Statement(
            "advance",
            ("looks-through-the-window",),
            lambda scope, s, move, told: implies(
                or_(
                    _reads(scope, move.after, 0),
                    _reads(scope, move.after, scope.gather_lookahead),
                ),
                or_(s.asked, _lies_behind(scope, told)),
            ),
            _AHEAD,
        ),
        drops=("looks-through-the-window", _LOOKS_AS_FAR),
        faults=(faults.NO_SHIFT, faults.NEVER_ENCODED, faults.LEADING_GAP),
    ),
    obligation(
        claim="views-agree",
        group=GROUP,
        short_name="worker-holds-the-book",
        sentence="once the worker has applied a pass, it holds exactly what is in the book",
        statement=Statement(
            "apply",
            (
                "chosen-is-referenced",
                "views-agree",
                "announces-what-left",
                "encodes-what-was-chosen",
                "outputs-in-order",
            ),
            lambda scope, s, move, told: iff(move.after.resident, move.after.entry),
        ),
        faults=(faults.NOTICES_LOST, faults.FINISHED_DROPS),
    ),
    obligation(
        claim="views-agree",
        group=GROUP,
        short_name="still-holds-the-book",
        sentence="between passes the worker holds exactly what is in the book",
        statement=Statement(
            "begin-pass",
            ("chosen-is-referenced", "views-agree", "passes-follow-each-other"),
            lambda scope, s, move, told: iff(s.resident, s.entry),
        ),
    ),
    obligation(
        claim="evicted-not-live",
        group=GROUP,
        short_name="notices-name-what-left",
        sentence="what a pass announces as evicted is not in its book",
        statement=Statement(
            "apply",
            ("announces-what-left",),
            lambda scope, s, move, told: implies(told["is_announced"], not_(s.entry)),
        ),
        faults=(faults.STALE_NOTICE,),
    ),
    obligation(
        claim="fresh-tensor",
        group=GROUP,
        short_name="reads-are-fresh",
        sentence="what is on the worker when a pass reads was encoded since the last reset",
        statement=Statement(
            "apply",
            ("tensor-is-fresh",),
            lambda scope, s, move, told: implies(move.after.resident, move.after.fresh),
        ),
    ),
    obligation(
        claim="payload-available",
        group=GROUP,
        short_name="raw-data-is-on-time",
        sentence="once the worker has applied a pass, it has the raw data of every request that "
        "runs, so of every input that it encodes",
        statement=Statement(
            "apply",
            ("raw-data-is-there", "starts-with-raw-data", "forgets-who-stopped"),
            lambda scope, s, move, told: implies(s.running, move.after.payload),
        ),
        faults=(faults.NO_PAYLOAD,),
    ),
    obligation(
        claim="item-whole",
        group=GROUP,
        short_name="items-stay-whole",
        sentence="with chunking of items off, a range that starts at or before an item does not "
        "end inside it",
        statement=Statement(
            "advance",
            ("keeps-items-whole",),
            lambda scope, s, move, told: implies(
                and_(scope.is_whole, s.computed <= scope.offset),
                or_(move.after.computed <= scope.offset, scope.end <= move.after.computed),
            ),
        ),
        faults=(faults.SPLIT_AT_START, faults.WARM_SPLIT),
    ),
)


if __name__ == "__main__":
    main_of_group(GROUP, OBLIGATIONS)
