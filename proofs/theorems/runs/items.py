"""Items: slots and the worker of encoder-decoder models, in every run.

The invariants of :mod:`spec.relation.cross_attention`, kept by each transition: the book's free
slots are what the items leave that it counts, each credited once; the worker holds what one pass
encoded, which the book counted, so that it never outgrows the cache; and the first step of a
request finds its item there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary
from proofs.theorems.runs.kept import Fault, Statement, kept_of, obligation
from proofs.theorems.runs.variables import CROSS_ATTENTION, SIZES, sizes_not_negative
from spec.algebra import and_, implies, not_
from spec.relation.cross_attention import ItemMove, ItemScope, ItemState, nothing_yet

GROUP = "items"

_KEPT = {
    "slots-are-sums": {
        "take": "slots-are-sums promises-fit takes-what-was-promised",
        "take-other": "slots-are-sums promises-fit takes-what-was-promised",
        "let-go": "sizes-not-negative slots-are-sums lets-go-what-is-held",
        "others-let-go": "slots-are-sums lets-go-what-is-held",
        "stop": "sizes-not-negative slots-are-sums",
        "reset": "sizes-not-negative",
    },
    "promises-fit": {
        "promise": "promises-what-is-not-held rows-not-negative promised-room-is-free",
        "take": "promises-fit takes-what-was-promised",
        "take-other": "promises-fit takes-what-was-promised",
        "apply": "promises-fit",
        "let-go": "sizes-not-negative promises-fit",
        "others-let-go": "promises-fit lets-go-what-is-held",
        "stop": "sizes-not-negative promises-fit",
        "reset": "sizes-not-negative slots-are-sums promises-fit",
    },
    "chosen-is-held": {
        "begin-pass": "chosen-is-held",
        "take": "chosen-is-held asks-in-a-pass",
        "take-other": "chosen-is-held asks-in-a-pass takes-what-was-promised",
        "apply": "chosen-is-held",
        "end-pass": "chosen-is-held ends-what-was-applied",
        "let-go": "chosen-is-held lets-go-in-an-update",
        "others-let-go": "chosen-is-held lets-go-what-is-held",
        "stop": "chosen-is-held",
        "reset": "chosen-is-held resets-between-passes",
    },
    "worker-fits": {
        "apply": "sizes-not-negative slots-are-sums chosen-is-held "
        "announces-the-pass-before encodes-what-was-chosen",
        "reset": "sizes-not-negative",
    },
    "first-step-reads-it": {
        "begin-pass": "first-step-reads-it",
        "take": "first-step-reads-it",
        "advance": "schedules-who-runs first-step-takes-the-item",
        "apply": "first-step-reads-it applies-once encodes-what-was-chosen",
        "end-pass": "",
        "stop": "",
        "reset": "first-step-reads-it resets-between-passes",
    },
}
"""For each invariant and transition, what the proof uses."""

_CLAIMS = {
    "slots-are-sums": "slots-conserved",
    "promises-fit": "slots-conserved",
    "chosen-is-held": "worker-bounded",
    "worker-fits": "worker-bounded",
    "first-step-reads-it": "target-resident",
}


def _credits_again(v: Vocabulary, scope: ItemScope, before: ItemState, move: ItemMove) -> ItemMove:
    """An update credits the item's slots whether they are counted or not."""
    return replace(move, guards={**move.guards, "lets-go-what-is-held": True})


def _announces_late(v: Vocabulary, scope: ItemScope, before: ItemState, move: ItemMove) -> ItemMove:
    """What the pass before had encoded is announced a pass later."""
    return replace(move, guards={**move.guards, "announces-the-pass-before": True})


CREDITED_AGAIN = Fault("encoder-decoder-credit", twist=_credits_again)
LATE_NOTICES = Fault("encoder-decoder-notices-late", twist=_announces_late)

_FAULTS = {
    ("slots-are-sums", "let-go"): (CREDITED_AGAIN,),
    ("worker-fits", "apply"): (LATE_NOTICES,),
}


def _at_first(v: Vocabulary, others: int = 0) -> Formula:
    scope = CROSS_ATTENTION.a_scope(v)
    return Formula(
        {SIZES: sizes_not_negative(scope)},
        CROSS_ATTENTION.all_invariants(scope, replace(nothing_yet(scope), others=others)),
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    *kept_of(GROUP, _KEPT, _CLAIMS, _FAULTS, CROSS_ATTENTION),
    obligation(
        claim="target-resident",
        group=GROUP,
        short_name="first-step-finds-it",
        sentence="when the first step of a request runs, its item is on the worker",
        statement=Statement(
            "end-pass",
            ("first-step-reads-it", "ends-what-was-applied"),
            lambda scope, s, move, told: implies(and_(s.scheduled >= 1, s.start <= 0), s.resident),
            world=CROSS_ATTENTION,
        ),
    ),
    obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="credited-after-its-step",
        sentence="slots are credited only when no later step of the request starts at 0",
        statement=Statement(
            "let-go",
            ("lets-go-after-the-first-step",),
            lambda scope, s, move, told: not_(move.after.computed <= 0),
            world=CROSS_ATTENTION,
        ),
    ),
    Obligation(
        claim="slots-conserved",
        group=GROUP,
        short_name="nothing-is-held-at-first",
        sentence="every invariant holds before anything happened",
        build=_at_first,
        witness={"cache_size": 4, "rows": 1},
        ablations=(Ablation("cache-not-empty", build=partial(_at_first, others=1)),),
    ),
)


if __name__ == "__main__":
    main_of_group(GROUP, OBLIGATIONS)
