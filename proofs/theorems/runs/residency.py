"""Residency: what target and drafter read is on the worker, in every pass of every run.

The invariants that lead there, kept by each transition of the relation: who holds a reference holds
an entry; what a pass asked for it holds, up to where its chunk ends; and the worker holds the book.
None of them rests on *when* references go: every pass asks again for all that it reads, so that the
margin of *free* has no part in residency. Any number of requests, features, tokens and passes in
flight; :mod:`spec.relation` says why one projection stands for all.
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.theorem import Group
from proofs.theorems.runs import faults
from proofs.theorems.runs.kept import Arguments, Extra, kept, shown
from proofs.theorems.runs.variables import values
from spec.algebra import BoolTerm, and_, implies
from spec.claims import predicates as claims
from spec.relation.invariants import (
    asked_is_held,
    chosen_is_referenced,
    raw_data_is_there,
    reads_were_asked,
    reference_has_entry,
    tensor_is_fresh,
    views_agree,
)
from spec.relation.state import Move, Scope, State

GROUP = Group("residency")


kept(
    GROUP,
    reference_has_entry,
    claim="target-resident",
    by={
        "hit": ("reference-has-entry", "hits-an-entry"),
        "hit-other": ("reference-has-entry", "hits-an-entry"),
        "evict": ("reference-has-entry", "evicts-the-unreferenced"),
        "enter": (),
        "enter-other": (),
        "let-go": ("reference-has-entry",),
        "others-let-go": ("reference-has-entry", "lets-go-what-is-held"),
        "stop": ("reference-has-entry", "lets-go-what-is-held"),
        "rewind": ("reference-has-entry", "lets-go-what-is-held"),
        "reset": (),
    },
    faults={"evict": (faults.EVICTS_HELD,)},
)

kept(
    GROUP,
    chosen_is_referenced,
    claim="views-agree",
    by={
        "begin-pass": ("chosen-is-referenced",),
        "hit": ("chosen-is-referenced",),
        "hit-other": ("chosen-is-referenced",),
        "evict": ("chosen-is-referenced", "asks-in-a-pass", "evicts-the-unreferenced"),
        "enter": ("asks-in-a-pass",),
        "enter-other": ("asks-in-a-pass",),
        "apply": (),
        "end-pass": ("ends-what-was-applied",),
        "let-go": ("chosen-is-referenced",),
        "others-let-go": ("chosen-is-referenced",),
        "stop": ("chosen-is-referenced",),
        "rewind": ("chosen-is-referenced",),
        "reset": ("chosen-is-referenced", "resets-between-passes"),
    },
)

kept(
    GROUP,
    views_agree,
    claim="views-agree",
    by={
        "evict": (),
        "enter": ("promises-fit", "views-agree", "enters-what-was-promised"),
        "enter-other": ("promises-fit", "views-agree", "enters-what-was-promised"),
        "apply": (
            "chosen-is-referenced",
            "views-agree",
            "outputs-in-order",
            "announces-what-left",
            "encodes-what-was-chosen",
        ),
        "let-go": ("views-agree",),
        "others-let-go": ("views-agree",),
        "stop": ("views-agree",),
        "rewind": ("views-agree",),
        "reset": (),
    },
    faults={
        "apply": (faults.NOTICES_LOST, faults.FINISHED_DROPS),
        "stop": (faults.VICTIM_STAYS,),
        "others-let-go": (faults.VICTIM_STAYS,),
        "reset": (faults.WORKER_KEEPS,),
    },
)

kept(
    GROUP,
    asked_is_held,
    claim="held-until-last-use",
    by={
        "begin-pass": ("asked-is-held",),
        "hit": ("asks-in-a-pass",),
        "enter": ("asks-in-a-pass",),
        "enter-other": (
            "reference-has-entry",
            "promises-fit",
            "asked-is-held",
            "enters-what-was-promised",
        ),
        "end-pass": (),
        "let-go": ("asked-is-held", "lets-go-in-an-update"),
        "stop": (),
        "rewind": ("asked-is-held", "rewinds-in-an-update"),
        "reset": ("asked-is-held", "resets-between-passes"),
    },
    faults={"hit": (faults.DUPLICATE_UNHELD,)},
)

kept(
    GROUP,
    reads_were_asked,
    claim="drafter-resident-or-boundary",
    by={
        "hit": ("reads-were-asked",),
        "enter": ("reads-were-asked",),
        "begin": ("reads-were-asked",),
        "advance": (
            "schedules-who-runs",
            "looks-through-the-window",
            "ends-before-what-was-refused",
        ),
        "end-pass": (),
        "stop": (),
    },
    faults={"advance": (faults.NO_SHIFT, faults.LEADING_GAP, faults.CUT_LATE)},
)

kept(
    GROUP,
    raw_data_is_there,
    claim="payload-available",
    by={
        "begin-pass": ("raw-data-is-there",),
        "begin": ("starts-who-was-tried",),
        "apply": ("raw-data-is-there", "starts-with-raw-data", "forgets-who-stopped"),
        "end-pass": ("raw-data-is-there", "ends-what-was-applied"),
        "stop": (),
    },
    faults={"apply": (faults.NO_PAYLOAD,)},
)

kept(
    GROUP,
    tensor_is_fresh,
    claim="fresh-tensor",
    by={"apply": ("tensor-is-fresh",), "reset": ()},
    faults={"reset": (faults.WORKER_KEEPS,)},
)


# Claims, at the moment of the reads


def _lies_behind(scope: Scope, arguments: Arguments) -> BoolTerm:
    """Whether the search for inputs stopped at the feature or before it."""
    return and_(arguments["is_stopped"], arguments["stopped_at"] <= scope.offset)


_RESIDENCY = (
    "reads-were-asked",
    "asked-is-held",
    "reference-has-entry",
    "views-agree",
    "announces-what-left",
    "encodes-what-was-chosen",
    "outputs-in-order",
)


_READ_AHEAD = values(
    cache_size=2,
    rows=2,
    length=2,
    position=1,
    scheduler_lookahead=1,
    gather_lookahead=1,
    running=True,
    computed=1,
    passes=1,
    taken=True,
    started=True,
    entry=True,
    held=True,
    in_pass=True,
    chosen=True,
    asked=True,
    scheduled=1,
    received=True,
    forgotten=False,
    is_announced=False,
    is_encoded=True,
    is_overtaken=False,
)
"""A[0,2) in chunks of 1: the drafter reads the second row, and the pass encodes it."""


_IN_FEATURE: dict[str, Extra] = {
    "position-in-feature": lambda scope, s, arguments: scope.offset <= scope.position,
    "shift-not-negative": lambda scope, s, arguments: scope.scheduler_lookahead >= 0,
}


_LOOKS_AHEAD = "look-ahead-not-negative"


_LOOKS_AS_FAR = "scheduler-looks-as-far"


_AHEAD: dict[str, Extra] = {
    _LOOKS_AHEAD: lambda scope, s, arguments: scope.gather_lookahead >= 0,
    _LOOKS_AS_FAR: lambda scope, s, arguments: scope.gather_lookahead <= scope.scheduler_lookahead,
}


@shown(
    GROUP,
    "apply",
    using=_RESIDENCY,
    given=_IN_FEATURE,
    claim="target-resident",
    sentence="once the worker has applied a pass, every row that the target reads is there",
    drops=("outputs-in-order",),
)
def _target_reads(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return claims.target_resident(scope, s.chunk(), move.after.resident)


@shown(
    GROUP,
    "apply",
    using=_RESIDENCY,
    given=_AHEAD,
    claim="drafter-resident-or-boundary",
    sentence="once the worker has applied a pass, every row that the drafter reads is there, "
    "or its feature lies at the boundary",
    drops=("outputs-in-order", _LOOKS_AS_FAR),
    witness=_READ_AHEAD,
)
def _drafter_reads(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    chunk = s.chunk(scope.gather_lookahead)
    return claims.drafter_resident_or_boundary(scope, chunk, move.after.resident)


@shown(
    GROUP,
    "advance",
    using=("looks-through-the-window", "ends-before-what-was-refused"),
    given=_IN_FEATURE,
    claim="target-resident",
    sentence="what the target reads in a chunk, the pass asked for and got",
    drops=("looks-through-the-window", "ends-before-what-was-refused"),
    faults=(faults.CUT_LATE,),
)
def _target_reads_were_asked(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return implies(claims.target_reads(scope, move.after.chunk()), s.asked)


@shown(
    GROUP,
    "advance",
    using=("looks-through-the-window", "ends-before-what-was-refused"),
    given=_AHEAD,
    claim="need-agrees",
    sentence="what target or drafter will read, the pass asked for, or it lies at or behind "
    "what was refused",
    drops=("looks-through-the-window", "ends-before-what-was-refused", _LOOKS_AS_FAR),
    faults=(faults.NO_SHIFT, faults.NEVER_ENCODED, faults.LEADING_GAP),
)
def _needs_are_asked(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    chunk = move.after.chunk(scope.gather_lookahead)
    return claims.need_agrees(scope, chunk, s.asked, _lies_behind(scope, arguments))


@shown(
    GROUP,
    "apply",
    using=(
        "chosen-is-referenced",
        "views-agree",
        "announces-what-left",
        "encodes-what-was-chosen",
        "outputs-in-order",
    ),
    claim="views-agree",
    sentence="once the worker has applied a pass, it holds exactly what is in the book",
    faults=(faults.NOTICES_LOST, faults.FINISHED_DROPS),
)
def _worker_holds_the_book(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return claims.views_agree(move.after.entry, move.after.resident)


@shown(
    GROUP,
    "begin-pass",
    using=("chosen-is-referenced", "views-agree", "passes-follow-each-other"),
    claim="views-agree",
    sentence="between passes the worker holds exactly what is in the book",
)
def _still_holds_the_book(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return claims.views_agree(s.entry, s.resident)


@shown(
    GROUP,
    "apply",
    using=("announces-what-left",),
    claim="evicted-not-live",
    sentence="what a pass announces as evicted is not in its book",
    faults=(faults.STALE_NOTICE,),
)
def _notices_name_what_left(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return claims.evicted_not_live(arguments["is_announced"], s.entry)


@shown(
    GROUP,
    "apply",
    using=("tensor-is-fresh",),
    claim="fresh-tensor",
    sentence="what is on the worker when a pass reads was encoded since the last reset",
)
def _reads_are_fresh(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return claims.fresh_tensor(move.after.resident, True, move.after.fresh, True)


@shown(
    GROUP,
    "apply",
    using=("raw-data-is-there", "starts-with-raw-data", "forgets-who-stopped"),
    claim="payload-available",
    sentence="once the worker has applied a pass, it has the raw data of every request that "
    "runs, so of every input that it encodes",
    faults=(faults.NO_PAYLOAD,),
)
def _raw_data_is_on_time(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return claims.payload_available(s.running, move.after.payload)


@shown(
    GROUP,
    "advance",
    using=("keeps-items-whole",),
    claim="item-whole",
    sentence="with chunking of items off, a range that starts at or before an item does not "
    "end inside it",
    faults=(faults.SPLIT_AT_START, faults.WARM_SPLIT),
)
def _items_stay_whole(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return implies(scope.is_whole, claims.item_whole(scope, move.after.chunk()))


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
