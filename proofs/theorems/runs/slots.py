"""Slots: the book's totals are the true sums over its whole life, and room is not given twice.

The invariants ``slots-are-sums`` and ``promises-fit`` of :mod:`spec.relation.invariants`, kept by
each transition of the relation. Where group ``accounting`` shows single operations of the book,
this one shows every sequence of calls by any number of requests: what was promised to a request and
not yet allocated stays free, whatever happens in between. :mod:`spec.relation` says why one
projection stands for all.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Value, Vocabulary
from proofs.theorems.runs import faults
from proofs.theorems.runs.kept import Statement, kept_of, obligation
from proofs.theorems.runs.variables import (
    DECODER_ONLY,
    SIZES,
    sizes_not_negative,
)
from spec.algebra import and_, ite
from spec.relation.state import initial

GROUP = "slots"

_KEPT = {
    "slots-are-sums": {
        "hit": "slots-are-sums hits-an-entry",
        "hit-other": "reference-has-entry slots-are-sums hits-an-entry held-before-unless-new",
        "hit-elsewhere": "slots-are-sums rows-are-among-the-idle",
        "evict": "sizes-not-negative slots-are-sums evicts-an-entry evicts-the-unreferenced",
        "evict-elsewhere": "slots-are-sums rows-are-among-the-idle",
        "enter": "slots-are-sums promises-fit enters-what-was-promised",
        "enter-other": "slots-are-sums promises-fit enters-what-was-promised",
        "enter-elsewhere": "sizes-not-negative slots-are-sums promises-fit rows-not-negative "
        "enters-what-was-promised",
        "let-go": "sizes-not-negative slots-are-sums",
        "others-let-go": "sizes-not-negative slots-are-sums lets-go-what-is-held",
        "elsewhere-lets-go": "slots-are-sums lets-go-what-is-held",
        "stop": "sizes-not-negative slots-are-sums lets-go-what-is-held",
        "rewind": "sizes-not-negative slots-are-sums lets-go-what-is-held",
        "reset": "sizes-not-negative",
    },
    "promises-fit": {
        "evict": "sizes-not-negative promises-fit",
        "evict-elsewhere": "promises-fit rows-are-among-the-idle",
        "promise": "sizes-not-negative promises-fit promises-what-is-absent "
        "counts-what-was-promised promised-room-is-free",
        "promise-elsewhere": "promises-fit rows-not-negative counts-what-was-promised "
        "promised-room-is-free",
        "forgo": "sizes-not-negative promises-fit rows-not-negative keeps-what-it-uses",
        "enter": "promises-fit enters-what-was-promised",
        "enter-other": "promises-fit enters-what-was-promised",
        "enter-elsewhere": "sizes-not-negative promises-fit enters-what-was-promised",
        "apply": "promises-fit",
        "let-go": "sizes-not-negative promises-fit",
        "others-let-go": "sizes-not-negative promises-fit",
        "elsewhere-lets-go": "promises-fit lets-go-what-is-held",
        "stop": "sizes-not-negative promises-fit",
        "rewind": "sizes-not-negative promises-fit",
        "reset": "sizes-not-negative slots-are-sums promises-fit",
    },
}
"""For each invariant and transition, what the proof uses."""


_FAULTS = {
    ("slots-are-sums", "let-go"): (faults.OWN_SIZE,),
}


_NO_SIZES: dict[str, Value] = dict(asdict(DECODER_ONLY.scope))


def _at_first(v: Vocabulary, idle_rows: int = 0) -> Formula:
    scope = DECODER_ONLY.a_scope(v)
    return Formula(
        {SIZES: sizes_not_negative(scope)},
        DECODER_ONLY.all_invariants(scope, replace(initial(scope), idle_rows=idle_rows)),
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    *kept_of(GROUP, _KEPT, dict.fromkeys(_KEPT, "slots-conserved"), _FAULTS),
    obligation(
        claim="slots-conserved",
        group=GROUP,
        short_name="totals-in-bounds",
        sentence="free slots are not negative, freeable ones not fewer, and none beyond the size",
        statement=Statement(
            "keep",
            ("slots-are-sums", SIZES),
            lambda scope, s, move, told: and_(
                s.free >= 0, s.free <= s.freeable, s.freeable <= scope.cache_size
            ),
        ),
    ),
    obligation(
        claim="worker-bounded",
        group=GROUP,
        short_name="worker-fits",
        sentence="the rows of all entries, which the worker holds exactly, fit the cache",
        statement=Statement(
            "keep",
            ("slots-are-sums",),
            lambda scope, s, move, told: (
                s.referenced_rows + s.idle_rows + ite(s.entry, scope.rows, 0) <= scope.cache_size
            ),
        ),
    ),
    Obligation(
        claim="slots-conserved",
        group=GROUP,
        short_name="nothing-is-held-at-first",
        sentence="every invariant of the relation holds before anything happened",
        build=_at_first,
        witness=_NO_SIZES,
        ablations=(Ablation("cache-not-empty", build=partial(_at_first, idle_rows=1)),),
    ),
)


if __name__ == "__main__":
    main_of_group(GROUP, OBLIGATIONS)
