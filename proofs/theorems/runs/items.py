"""Items: slots and the worker of encoder-decoder models, in every run.

The invariants of :mod:`spec.relation.cross_attention`, kept by each transition: the book's free
slots are what the items leave that it counts, each credited once; the worker holds what one pass
encoded, which the book counted, so that it never outgrows the cache; and the first step of a
request finds its item there.
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem
from proofs.smt.vocabulary import Vocabulary
from proofs.theorems.runs.kept import Arguments, Fault, kept, shown
from proofs.theorems.runs.variables import CROSS_ATTENTION, SIZES, sizes_not_negative
from spec.algebra import BoolTerm, and_, implies, not_
from spec.relation.cross_attention import (
    ItemMove,
    ItemScope,
    ItemState,
    chosen_is_held,
    first_step_reads_it,
    nothing_yet,
    promises_fit,
    slots_are_sums,
    worker_fits,
)

GROUP = Group("items")


def _credits_again(v: Vocabulary, scope: ItemScope, before: ItemState, move: ItemMove) -> ItemMove:
    """An update credits the item's slots whether they are counted or not."""
    return move._replace(guards={**move.guards, "lets-go-what-is-held": True})


def _announces_late(v: Vocabulary, scope: ItemScope, before: ItemState, move: ItemMove) -> ItemMove:
    """What the pass before had encoded is announced a pass later."""
    return move._replace(guards={**move.guards, "announces-the-pass-before": True})


CREDITED_AGAIN = Fault("encoder-decoder-credit", twist=_credits_again)


LATE_NOTICES = Fault("encoder-decoder-notices-late", twist=_announces_late)


kept(
    GROUP,
    slots_are_sums,
    world=CROSS_ATTENTION,
    claim="slots-conserved",
    by={
        "take": ("slots-are-sums", "promises-fit", "takes-what-was-promised"),
        "take-other": ("slots-are-sums", "promises-fit", "takes-what-was-promised"),
        "let-go": ("sizes-not-negative", "slots-are-sums", "lets-go-what-is-held"),
        "others-let-go": ("slots-are-sums", "lets-go-what-is-held"),
        "stop": ("sizes-not-negative", "slots-are-sums"),
        "reset": ("sizes-not-negative",),
    },
    faults={"let-go": (CREDITED_AGAIN,)},
)

kept(
    GROUP,
    promises_fit,
    world=CROSS_ATTENTION,
    claim="slots-conserved",
    by={
        "promise": ("promises-what-is-not-held", "rows-not-negative", "promised-room-is-free"),
        "take": ("promises-fit", "takes-what-was-promised"),
        "take-other": ("promises-fit", "takes-what-was-promised"),
        "apply": ("promises-fit",),
        "let-go": ("sizes-not-negative", "promises-fit"),
        "others-let-go": ("promises-fit", "lets-go-what-is-held"),
        "stop": ("sizes-not-negative", "promises-fit"),
        "reset": ("sizes-not-negative", "slots-are-sums", "promises-fit"),
    },
)

kept(
    GROUP,
    chosen_is_held,
    world=CROSS_ATTENTION,
    claim="worker-bounded",
    by={
        "begin-pass": ("chosen-is-held",),
        "take": ("chosen-is-held", "asks-in-a-pass"),
        "take-other": ("chosen-is-held", "asks-in-a-pass", "takes-what-was-promised"),
        "apply": ("chosen-is-held",),
        "end-pass": ("chosen-is-held", "ends-what-was-applied"),
        "let-go": ("chosen-is-held", "lets-go-in-an-update"),
        "others-let-go": ("chosen-is-held", "lets-go-what-is-held"),
        "stop": ("chosen-is-held",),
        "reset": ("chosen-is-held", "resets-between-passes"),
    },
)

kept(
    GROUP,
    worker_fits,
    world=CROSS_ATTENTION,
    claim="worker-bounded",
    by={
        "apply": (
            "sizes-not-negative",
            "slots-are-sums",
            "chosen-is-held",
            "announces-the-pass-before",
            "encodes-what-was-chosen",
        ),
        "reset": ("sizes-not-negative",),
    },
    faults={"apply": (LATE_NOTICES,)},
)

kept(
    GROUP,
    first_step_reads_it,
    world=CROSS_ATTENTION,
    claim="target-resident",
    by={
        "begin-pass": ("first-step-reads-it",),
        "take": ("first-step-reads-it",),
        "advance": ("schedules-who-runs", "first-step-takes-the-item"),
        "apply": ("first-step-reads-it", "applies-once", "encodes-what-was-chosen"),
        "end-pass": (),
        "stop": (),
        "reset": ("first-step-reads-it", "resets-between-passes"),
    },
)


@theorem(
    GROUP,
    claim="slots-conserved",
    sentence="every invariant holds before anything happened",
    witness={"cache_size": 4, "rows": 1},
    ablations=(changed("cache-not-empty", num_others=1),),
)
def _nothing_is_held_at_first(v: Vocabulary, num_others: int = 0) -> Formula:
    scope = CROSS_ATTENTION.a_scope(v)
    return Formula(
        {SIZES: sizes_not_negative(scope)},
        CROSS_ATTENTION.all_invariants(scope, nothing_yet(scope)._replace(others=num_others)),
    )


@shown(
    GROUP,
    "end-pass",
    using=("first-step-reads-it", "ends-what-was-applied"),
    world=CROSS_ATTENTION,
    claim="target-resident",
    sentence="when the first step of a request runs, its item is on the worker",
)
def _first_step_finds_it(
    scope: ItemScope, s: ItemState, move: ItemMove, arguments: Arguments
) -> BoolTerm:
    return implies(and_(s.scheduled >= 1, s.start <= 0), s.resident)


@shown(
    GROUP,
    "let-go",
    using=("lets-go-after-the-first-step",),
    world=CROSS_ATTENTION,
    claim="freed-not-needed",
    sentence="slots are credited only when no later step of the request starts at 0",
)
def _credited_after_its_step(
    scope: ItemScope, s: ItemState, move: ItemMove, arguments: Arguments
) -> BoolTerm:
    return not_(move.after.computed <= 0)


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
