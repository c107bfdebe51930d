"""Slots: the book's totals are the true sums over its whole life, and room is not given twice.

The invariants ``slots-are-sums`` and ``promises-fit`` of :mod:`spec.relation.invariants`, kept by
each transition of the relation. Where group ``accounting`` shows single operations of the book,
this one shows every sequence of calls by any number of requests: what was promised to a request and
not yet allocated stays free, whatever happens in between. :mod:`spec.relation` says why one
projection stands for all.
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem
from proofs.smt.vocabulary import Value, Vocabulary
from proofs.theorems.runs import faults
from proofs.theorems.runs.kept import Arguments, kept, shown
from proofs.theorems.runs.variables import DECODER_ONLY, SIZES, sizes_not_negative
from spec.algebra import BoolTerm, and_, ite
from spec.claims import predicates as claims
from spec.relation.invariants import promises_fit, slots_are_sums
from spec.relation.state import Move, Scope, State, initial

GROUP = Group("slots")


kept(
    GROUP,
    slots_are_sums,
    claim="slots-conserved",
    by={
        "hit": ("slots-are-sums", "hits-an-entry"),
        "hit-other": (
            "reference-has-entry",
            "slots-are-sums",
            "hits-an-entry",
            "held-before-unless-new",
        ),
        "hit-elsewhere": ("slots-are-sums", "rows-are-among-the-idle"),
        "evict": (
            "sizes-not-negative",
            "slots-are-sums",
            "evicts-an-entry",
            "evicts-the-unreferenced",
        ),
        "evict-elsewhere": ("slots-are-sums", "rows-are-among-the-idle"),
        "enter": ("slots-are-sums", "promises-fit", "enters-what-was-promised"),
        "enter-other": ("slots-are-sums", "promises-fit", "enters-what-was-promised"),
        "enter-elsewhere": (
            "sizes-not-negative",
            "slots-are-sums",
            "promises-fit",
            "rows-not-negative",
            "enters-what-was-promised",
        ),
        "let-go": ("sizes-not-negative", "slots-are-sums"),
        "others-let-go": ("sizes-not-negative", "slots-are-sums", "lets-go-what-is-held"),
        "elsewhere-lets-go": ("slots-are-sums", "lets-go-what-is-held"),
        "stop": ("sizes-not-negative", "slots-are-sums", "lets-go-what-is-held"),
        "rewind": ("sizes-not-negative", "slots-are-sums", "lets-go-what-is-held"),
        "reset": ("sizes-not-negative",),
    },
    faults={"let-go": (faults.OWN_SIZE,)},
)

kept(
    GROUP,
    promises_fit,
    claim="slots-conserved",
    by={
        "evict": ("sizes-not-negative", "promises-fit"),
        "evict-elsewhere": ("promises-fit", "rows-are-among-the-idle"),
        "promise": (
            "sizes-not-negative",
            "promises-fit",
            "promises-what-is-absent",
            "counts-what-was-promised",
            "promised-room-is-free",
        ),
        "promise-elsewhere": (
            "promises-fit",
            "rows-not-negative",
            "counts-what-was-promised",
            "promised-room-is-free",
        ),
        "forgo": ("sizes-not-negative", "promises-fit", "rows-not-negative", "keeps-what-it-uses"),
        "enter": ("promises-fit", "enters-what-was-promised"),
        "enter-other": ("promises-fit", "enters-what-was-promised"),
        "enter-elsewhere": ("sizes-not-negative", "promises-fit", "enters-what-was-promised"),
        "apply": ("promises-fit",),
        "let-go": ("sizes-not-negative", "promises-fit"),
        "others-let-go": ("sizes-not-negative", "promises-fit"),
        "elsewhere-lets-go": ("promises-fit", "lets-go-what-is-held"),
        "stop": ("sizes-not-negative", "promises-fit"),
        "rewind": ("sizes-not-negative", "promises-fit"),
        "reset": ("sizes-not-negative", "slots-are-sums", "promises-fit"),
    },
)


_NO_SIZES: dict[str, Value] = dict(DECODER_ONLY.scope._asdict())


@theorem(
    GROUP,
    claim="slots-conserved",
    sentence="every invariant of the relation holds before anything happened",
    witness=_NO_SIZES,
    ablations=(changed("cache-not-empty", idle_rows=1),),
)
def _nothing_is_held_at_first(v: Vocabulary, idle_rows: int = 0) -> Formula:
    scope = DECODER_ONLY.a_scope(v)
    return Formula(
        {SIZES: sizes_not_negative(scope)},
        DECODER_ONLY.all_invariants(scope, initial(scope)._replace(idle_rows=idle_rows)),
    )


@shown(
    GROUP,
    "keep",
    using=("slots-are-sums", SIZES),
    claim="slots-conserved",
    sentence="free slots are not negative, freeable ones not fewer, and none beyond the size",
)
def _totals_in_bounds(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    return and_(s.free >= 0, s.free <= s.freeable, s.freeable <= scope.cache_size)


@shown(
    GROUP,
    "keep",
    using=("slots-are-sums",),
    claim="worker-bounded",
    sentence="the rows of all entries, which the worker holds exactly, fit the cache",
)
def _worker_fits(scope: Scope, s: State, move: Move, arguments: Arguments) -> BoolTerm:
    rows = s.referenced_rows + s.idle_rows + ite(s.entry, scope.rows, 0)
    return claims.worker_bounded(rows, scope.cache_size)


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
