"""Every claim on the running loop: what it says, its witness, and the faults that must break it.

A claim that single functions show too keeps its text from :mod:`spec.claims.on_functions`. The
``witness`` is a scenario in which the premise happens on a correct engine, so that no claim passes
for want of anything to check. ``faults`` are the switches of :mod:`impl.faults.switches` that must
break it in the loop.

``window-exact``, ``row-range-exact`` and ``book-exact`` are about the answer of one function and
are checked there: a trace does not show the call. What a wrong answer leads to shows here under
other claims; the switch ``window-search-late``, for one, breaks ``rows-exact`` and ``mask-exact``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from spec.claims import predicates as statements
from spec.claims import witnesses
from spec.claims.on_functions import BY_ID as ON_FUNCTIONS
from spec.claims.on_functions import ClaimText, Kind
from spec.claims.register import sentence_of
from spec.errors import InputError
from spec.record.scenario import Scenario


@dataclass(frozen=True)
class LoopClaim(ClaimText):
    """One claim, as a run of the loop can show it.

    Attributes:
        witness: a scenario in which the premise happens.
        faults: switches that must break it.
        witness_without: the assumption that the witness breaks, where no correct engine comes to
            the premise otherwise; claims that rest on it are not judged on the witness.
    """

    witness: Scenario
    faults: tuple[str, ...] = ()
    witness_without: str = ""


_ON_PROGRESS = ("budgets-fixed", "arrivals-finite", "sampling-yields", "everything-fits-alone")
"""Assumptions of every claim that something happens at last."""


def _known(
    claim_id: str,
    witness: Scenario,
    *faults: str,
    also: tuple[str, ...] = (),
    witness_without: str = "",
) -> LoopClaim:
    """A claim that single functions show too; in the loop it ``also`` rests on assumptions."""
    claim = ON_FUNCTIONS[claim_id]
    text = {field.name: getattr(claim, field.name) for field in fields(ClaimText)}
    text["assumptions"] = (*claim.assumptions, *also)
    return LoopClaim(**text, witness=witness, faults=faults, witness_without=witness_without)


def _new(
    claim_id: str,
    kind: Kind,
    sentence: str,
    why: str,
    not_expected: str,
    assumptions: tuple[str, ...],
    witness: Scenario,
    *faults: str,
) -> LoopClaim:
    """A claim that only whole passes show."""
    return LoopClaim(claim_id, kind, sentence, why, not_expected, assumptions, witness, faults)


LOOP_CLAIMS: tuple[LoopClaim, ...] = (
    _known(
        "target-resident",
        witnesses.TWO_ITEMS,
        "cut-ends-late",
        "resumed-without-payload",
        also=("outputs-in-order",),
    ),
    _known(
        "drafter-resident-or-boundary",
        witnesses.TWO_ITEMS,
        "no-scheduler-shift",
        "masked-leading-gap",
        also=("outputs-in-order", "scheduler-looks-as-far"),
    ),
    _known("boundary-miss-tolerated", witnesses.FULL_CACHE, "no-boundary-tolerance"),
    _known(
        "interior-miss-raises",
        witnesses.SHORT_SHIFT,
        "interior-miss-swallowed",
        witness_without="scheduler-looks-as-far",
    ),
    _new(
        "views-agree",
        "safety",
        sentence_of(statements.views_agree),
        "a hash in the book alone is a miss to come; one on the worker alone is memory that nobody "
        "counts",
        "for encoder-decoder models, whose book keeps no entries",
        ("outputs-in-order",),
        witnesses.TWO_ITEMS,
        "finished-drops-tensors",
        "notices-lost",
        "resumed-without-payload",
    ),
    _new(
        "worker-bounded",
        "safety",
        sentence_of(statements.worker_bounded),
        "51228, 55733: the size is what memory was reserved for",
        "never",
        ("outputs-in-order", "hash-is-content"),
        witnesses.TWO_ITEMS,
        "encoder-decoder-credit",
        "notices-lost",
        "encoder-decoder-notices-late",
    ),
    _known("evicted-not-live", witnesses.FULL_CACHE, "stale-eviction-notice"),
    _new(
        "dropped-in-update",
        "safety",
        sentence_of(statements.dropped_in_update),
        "38907: what a step still reads may be evicted before it has run",
        "never",
        (),
        witnesses.TWO_ITEMS,
        "free-before-execution",
    ),
    _known("freed-not-needed", witnesses.TWO_ITEMS, "freed-one-token-early"),
    _known(
        "held-until-last-use",
        witnesses.REPEATED_ITEM,
        "dropped-at-first-occurrence",
        "same-step-duplicate-unreferenced",
    ),
    _new(
        "fresh-tensor",
        "safety",
        "each row returned was encoded from the reader's own content since the last reset, and its "
        "tensor has as many rows as the reader's mask has true positions",
        "57696: the model would read another image, or one of before the weights changed",
        "for contents that share a hash",
        ("hash-is-content",),
        witnesses.TWO_ITEMS,
        "own-size-free",
        "v2-reset-keeps-tensors",
    ),
    _new(
        "payload-available",
        "safety",
        sentence_of(statements.payload_available),
        "the encoder has nothing to run on, and every reader of the item misses",
        "never",
        ("outputs-in-order",),
        witnesses.TWO_ITEMS,
        "resumed-without-payload",
    ),
    _new(
        "item-whole",
        "safety",
        sentence_of(statements.item_whole),
        "52306, 52412: models with bidirectional attention over an item need it in one step",
        "where a prefix hit ends inside the item",
        (),
        witnesses.WHOLE_ITEMS,
        "item-split-at-start",
        "warm-item-split",
    ),
    _new(
        "need-agrees",
        "safety",
        sentence_of(statements.need_agrees),
        "29750, 32469, 38551, 45658, 51603: the scheduler must look as far as the drafter",
        "where the scheduler's shift is below the gather's look-ahead",
        ("scheduler-looks-as-far",),
        witnesses.TWO_ITEMS,
        "no-scheduler-shift",
        "boundary-never-encoded",
        "masked-leading-gap",
    ),
    _known("rows-exact", witnesses.TWO_ITEMS, "rows-by-position", "window-search-late"),
    _known("mask-exact", witnesses.TWO_ITEMS, "mask-fills-span", "window-search-late"),
    _known("boundary-used-when-resident", witnesses.TWO_ITEMS, "clamped-drafter-window"),
    _known("runners-agree", witnesses.TWO_ITEMS, "v2-splits-rows", "window-search-late"),
    _known("slots-conserved", witnesses.TWO_ITEMS, "own-size-free", "encoder-decoder-credit"),
    _new(
        "no-idle-references",
        "accounting",
        sentence_of(statements.no_idle_references),
        "31857: what a request holds while it waits keeps others from running",
        "never",
        (),
        witnesses.PREEMPTION,
        "waiting-keeps-references",
    ),
    _new(
        "counts-agree",
        "accounting",
        "progress, tokens, placeholders, drafts, KV blocks, statuses, queues, batches and calls "
        "change by exactly what passes, updates and events say",
        "all other claims are judged from these numbers: where they contradict each other, a claim "
        "could hold of a run that never was",
        "for what an engine may choose: where skipped requests wait, blocks reclaimed from "
        "requests that wait, outputs of preempted requests",
        ("budgets-fixed", "sampling-yields"),
        witnesses.TWO_ITEMS,
        "rejected-drafts-kept",
    ),
    _known("no-error", witnesses.TWO_ITEMS, "finish-needs-references"),
    _new(
        "no-stall",
        "progress",
        "if nothing is in flight, no event is pending and some request is neither finished nor "
        "paused, a pass changes the state",
        "46315, 47738, 40707, vllm-ascend 17195: the engine would stand still for ever, silently",
        "for configurations that cannot hold one request alone",
        _ON_PROGRESS,
        witnesses.FULL_CACHE,
        "deferred-free-margin",
        "shifted-cut",
        "align-after-cut",
        "whole-item-cut-short",
        "threshold-below-whole-item",
        "reservation-after-cut",
    ),
    _new(
        "no-thrash",
        "progress",
        "no state that was left comes back at the end of a round unless an event came or some "
        "request made progress beyond what it ever had",
        "work that is thrown away and done again for ever looks like load",
        "for configurations that cannot hold one request alone",
        _ON_PROGRESS,
        witnesses.PREEMPTION,
        "admission-preempts",
    ),
    _new(
        "work-conserving",
        "progress",
        "a request that got no tokens because the feature at its progress was refused holds up "
        "nobody who could run",
        "one waiting request would stop all that came after it",
        "never",
        (),
        witnesses.REFUSED_HEAD,
        "stalled-head-ends-pass",
    ),
    _known("released", witnesses.TWO_ITEMS, "finish-keeps-references", "ended-keeps-references"),
)

BY_ID: dict[str, LoopClaim] = {claim.id: claim for claim in LOOP_CLAIMS}

ALL_TEXTS: dict[str, ClaimText] = {**ON_FUNCTIONS, **BY_ID}
"""What every claim says, those on functions first; the loop's wording where there are two."""


def any_claim(claim_id: str) -> ClaimText:
    """What the claim with the given id says, wherever it can be checked.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    known = ALL_TEXTS.get(claim_id)
    if known is None:
        raise InputError(
            f"unknown claim {claim_id!r}; known claims: {', '.join(sorted(ALL_TEXTS))}"
        )
    return known


def loop_claim(claim_id: str) -> LoopClaim:
    """The claim on the loop with the given id.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    known = BY_ID.get(claim_id)
    if known is None and claim_id in ALL_TEXTS:
        raise InputError(
            f"claim {claim_id!r} is about single functions, not whole runs; "
            "check it without --level loop"
        )
    if known is None:
        raise InputError(
            f"unknown claim on the loop {claim_id!r}; known: {', '.join(sorted(BY_ID))}"
        )
    return known
