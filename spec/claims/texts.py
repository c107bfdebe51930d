"""Every claim: what it says, why it matters, when it is not expected to hold, and what breaks it.

A claim is checked on single functions, on whole runs, or on both. On either level its ``witness``
is a concrete case or scenario in which its premise happens on a correct engine, so that no claim
passes for want of anything to check; ``faults`` are the switches of :mod:`impl.faults.switches`
that must break it there. Numbers in ``why`` are public pull requests and issues of vLLM.

``window-exact``, ``row-range-exact`` and ``book-exact`` are about the answer of one function: a
trace of a run does not show the call. What a wrong answer leads to shows there under other claims;
the switch ``window-search-late``, for example, breaks ``rows-exact`` and ``mask-exact``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spec.claims import predicates as statements
from spec.claims import witnesses
from spec.claims.register import sentence_of
from spec.errors import InputError
from spec.functions.cases import (
    BookCase,
    BookOperation,
    Case,
    EncoderOutput,
    FreeCase,
    GatherCase,
    GatherRequest,
    Progress,
    RowRangeCase,
    WindowCase,
)
from spec.record.feature import Feature
from spec.record.scenario import Scenario

Kind = Literal["safety", "exactness", "accounting", "progress"]


@dataclass(frozen=True)
class OnFunctions:
    """How single functions show a claim.

    Attributes:
        witness: a case in which the premise happens.
        faults: switches that must break the claim.
    """

    witness: Case
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class OnRuns:
    """How a run of the loop shows a claim.

    Attributes:
        witness: a scenario in which the premise happens.
        faults: switches that must break the claim.
        also_assumes: ids of assumptions that the claim rests on in runs only.
        witness_without: the assumption that the witness breaks, where no correct engine comes to
            the premise otherwise; claims that rest on it are not judged on the witness.
    """

    witness: Scenario
    faults: tuple[str, ...]
    also_assumes: tuple[str, ...] = ()
    witness_without: str = ""


@dataclass(frozen=True)
class ClaimText:
    """What a claim says.

    Attributes:
        id: stable name, used on the command line and in reports.
        kind: what sort of property it is.
        sentence: what it means.
        why: why it matters, with public numbers where there are any.
        not_expected: when it is not expected to hold, to be read after those words; or "never".
        assumptions: ids of :mod:`spec.claims.assumptions`.
    """

    id: str
    kind: Kind
    sentence: str
    why: str
    not_expected: str
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class Claim(ClaimText):
    """A claim as it is written down: its text, and how each level shows it."""

    on_functions: OnFunctions | None = None
    on_runs: OnRuns | None = None


@dataclass(frozen=True)
class FunctionClaim(ClaimText):
    """A claim as single functions show it; fields as in :class:`OnFunctions`."""

    witness: Case
    faults: tuple[str, ...]


@dataclass(frozen=True)
class LoopClaim(ClaimText):
    """A claim as a run of the loop shows it; fields as in :class:`OnRuns`."""

    witness: Scenario
    faults: tuple[str, ...]
    witness_without: str = ""


_A = Feature(0, 4, "A")
_B = Feature(4, 4, "B")
_AT_BOUNDARY = GatherRequest(0, 4, 9, (_A, _B))
_BOTH = (EncoderOutput("A", 4), EncoderOutput("B", 4))
_X = Feature(0, 4, "X")
_X_AGAIN = Feature(4, 4, "X")


def _boundary_case(resident: tuple[EncoderOutput, ...], look_ahead: int = 1) -> GatherCase:
    return GatherCase((_AT_BOUNDARY,), resident, look_ahead)


_LAYOUT = ("features-sorted-disjoint", "features-not-empty", "step-not-empty")
"""Assumptions of every claim on what a gather reads."""

_ON_PROGRESS = ("budgets-fixed", "arrivals-finite", "sampling-yields", "everything-fits-alone")
"""Assumptions of every claim that something happens at last."""

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="target-resident",
        kind="safety",
        sentence=sentence_of(statements.target_resident),
        why="a miss stops the engine; the target's output would be wrong without the row",
        not_expected="after the world broke an assumption on progress or on the order of notices",
        assumptions=("progress-falls-by-drafts-only", "notices-follow-the-drafter"),
        on_functions=OnFunctions(_boundary_case(_BOTH, look_ahead=0)),
        on_runs=OnRuns(
            witnesses.TWO_ITEMS,
            ("cut-ends-late", "resumed-without-payload"),
            also_assumes=("outputs-in-order",),
        ),
    ),
    Claim(
        id="drafter-resident-or-boundary",
        kind="safety",
        sentence=sentence_of(statements.drafter_resident_or_boundary),
        why="the invariant itself: 29750, 32469, 46315, 51603",
        not_expected="where target-resident is not, and with a scheduler that does not look as "
        "far ahead as the gather",
        assumptions=("progress-falls-by-drafts-only", "notices-follow-the-drafter"),
        on_functions=OnFunctions(_boundary_case(_BOTH)),
        on_runs=OnRuns(
            witnesses.TWO_ITEMS,
            ("no-scheduler-shift", "masked-leading-gap"),
            also_assumes=("outputs-in-order", "scheduler-looks-as-far"),
        ),
    ),
    Claim(
        id="boundary-miss-tolerated",
        kind="safety",
        sentence=sentence_of(statements.boundary_miss_tolerated),
        why="46315: its row costs draft quality only, but raising stops the engine",
        not_expected="never",
        assumptions=_LAYOUT,
        on_functions=OnFunctions(
            _boundary_case((EncoderOutput("A", 4),)), ("no-boundary-tolerance",)
        ),
        on_runs=OnRuns(witnesses.FULL_CACHE, ("no-boundary-tolerance",)),
    ),
    Claim(
        id="interior-miss-raises",
        kind="exactness",
        sentence=sentence_of(statements.interior_miss_raises),
        why="38622, 53451: swallowing it hides a broken invariant and changes the output",
        not_expected="where Python runs with assertions off and a release raises by assertion",
        assumptions=_LAYOUT,
        on_functions=OnFunctions(
            _boundary_case((EncoderOutput("B", 4),)),
            ("interior-miss-swallowed", "window-search-late"),
        ),
        on_runs=OnRuns(
            witnesses.SHORT_SHIFT,
            ("interior-miss-swallowed",),
            witness_without="scheduler-looks-as-far",
        ),
    ),
    Claim(
        id="rows-exact",
        kind="exactness",
        sentence="gather returns exactly the oracle's rows, at value level, also after the merge "
        "into the input embeddings and after the entries were evicted",
        why="a row too many or too few shifts every later one",
        not_expected="for features interleaved on one span: a merge by position cannot tell them "
        "apart",
        assumptions=(*_LAYOUT, "hash-is-content"),
        on_functions=OnFunctions(_boundary_case(_BOTH), ("rows-by-position", "window-search-late")),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("rows-by-position", "window-search-late")),
    ),
    Claim(
        id="mask-exact",
        kind="exactness",
        sentence="gather's mask is true exactly where the oracle has a row",
        why="the merge counts the mask's true positions; another count is an error or a shift",
        not_expected="for features interleaved on one span",
        assumptions=_LAYOUT,
        on_functions=OnFunctions(_boundary_case(_BOTH), ("mask-fills-span", "window-search-late")),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("mask-fills-span", "window-search-late")),
    ),
    Claim(
        id="boundary-used-when-resident",
        kind="exactness",
        sentence=sentence_of(statements.boundary_used_when_resident),
        why="46315: clamping the window instead would lose the row for the drafter",
        not_expected="never",
        assumptions=_LAYOUT,
        on_functions=OnFunctions(
            _boundary_case(_BOTH), ("clamped-drafter-window", "window-search-late")
        ),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("clamped-drafter-window",)),
    ),
    Claim(
        id="runners-agree",
        kind="exactness",
        sentence="V1 and V2 return the same tensors on the same batch",
        why="a model is served by either runner and must not care which",
        not_expected="for a request whose shifted start is at or past its prefill length: V2 "
        "skips it unread",
        assumptions=(*_LAYOUT, "features-in-prompt"),
        on_functions=OnFunctions(_boundary_case(_BOTH), ("v2-splits-rows",)),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("v2-splits-rows", "window-search-late")),
    ),
    Claim(
        id="window-exact",
        kind="exactness",
        sentence="the window search selects exactly the features that share a position with it",
        why="a feature that is not selected is silently read as text",
        not_expected="for features out of order or nested",
        assumptions=_LAYOUT,
        on_functions=OnFunctions(WindowCase((_A, _B), 3, 5), ("window-search-late",)),
    ),
    Claim(
        id="row-range-exact",
        kind="exactness",
        sentence="rows of a range of positions under a mask equal counting, empty ranges included",
        why="fixed by 0.20.2: rows of an empty range at the start were counted from the mask's end",
        not_expected="never",
        assumptions=(),
        on_functions=OnFunctions(
            RowRangeCase((True, False, True, True), 0, 0), ("negative-mask-index",)
        ),
    ),
    Claim(
        id="freed-not-needed",
        kind="safety",
        sentence=sentence_of(statements.freed_not_needed),
        why="45347, 46315: a later read would miss",
        not_expected="after an abort, a preemption or a reset, which let go at once",
        assumptions=("drafts-are-placeholders", "progress-falls-by-drafts-only"),
        on_functions=OnFunctions(
            FreeCase((_A,), 4, (Progress(8, 2, 1),)),
            ("free-ignores-placeholders", "freed-one-token-early"),
        ),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("freed-one-token-early",)),
    ),
    Claim(
        id="held-until-last-use",
        kind="safety",
        sentence=sentence_of(statements.held_until_last_use),
        why="54284: dropping at the first occurrence costs a second encoding",
        not_expected="for occurrences that the request has not yet taken",
        assumptions=("hash-is-content",),
        on_functions=OnFunctions(
            FreeCase((_X, _X_AGAIN), 4, (Progress(4), Progress(8))),
            ("dropped-at-first-occurrence",),
        ),
        on_runs=OnRuns(
            witnesses.REPEATED_ITEM,
            ("dropped-at-first-occurrence", "same-step-duplicate-unreferenced"),
        ),
    ),
    Claim(
        id="slots-conserved",
        kind="accounting",
        sentence=sentence_of(statements.slots_conserved),
        why="57696, 51228, 55733, 55734: slots that drift let the worker outgrow its memory",
        not_expected="never",
        assumptions=("hash-is-content",),
        on_functions=OnFunctions(
            BookCase(4, ((_X,),), (BookOperation("take"), BookOperation("drop"))),
            ("own-size-free", "encoder-decoder-credit"),
        ),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("own-size-free", "encoder-decoder-credit")),
    ),
    Claim(
        id="evicted-not-live",
        kind="safety",
        sentence=sentence_of(statements.evicted_not_live),
        why="52482: the worker would drop what the book believes to be there",
        not_expected="never",
        assumptions=(),
        on_functions=OnFunctions(
            BookCase(
                4,
                ((_X,), (Feature(0, 4, "Y"),)),
                (
                    BookOperation("take", 0),
                    BookOperation("drop", 0),
                    BookOperation("take", 1),
                    BookOperation("end_pass"),
                ),
            ),
            ("stale-eviction-notice",),
        ),
        on_runs=OnRuns(witnesses.FULL_CACHE, ("stale-eviction-notice",)),
    ),
    Claim(
        id="released",
        kind="progress",
        sentence=sentence_of(statements.released),
        why="31857: a reference that nobody needs keeps the cache full",
        not_expected="never",
        assumptions=(),
        on_functions=OnFunctions(
            BookCase(4, ((_X,),), (BookOperation("take"), BookOperation("finish"))),
            ("finish-keeps-references",),
        ),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("finish-keeps-references", "ended-keeps-references")),
    ),
    Claim(
        id="book-exact",
        kind="exactness",
        sentence="the book hits what is present, refuses only what cannot fit, and evicts the "
        "oldest unreferenced entries and no more than needed",
        why="every claim above relies on the book's answers",
        not_expected="where a narrower claim is violated at the same operation: it counts there",
        assumptions=("hash-is-content",),
        on_functions=OnFunctions(
            BookCase(4, ((_X,),), (BookOperation("take"), BookOperation("take"))),
            ("evicts-newest-first", "notices-lost"),
        ),
    ),
    Claim(
        id="no-error",
        kind="safety",
        sentence="free, gather and the book raise nothing on legal input, misses apart",
        why="an exception here stops the engine for everybody",
        not_expected="for misses, which have claims of their own",
        assumptions=_LAYOUT,
        on_functions=OnFunctions(_boundary_case(_BOTH), ("finish-needs-references",)),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("finish-needs-references",)),
    ),
    Claim(
        id="views-agree",
        kind="safety",
        sentence=sentence_of(statements.views_agree),
        why="a hash in the book alone is a miss to come; one on the worker alone is memory that "
        "nobody counts",
        not_expected="for encoder-decoder models, whose book keeps no entries",
        assumptions=("outputs-in-order",),
        on_runs=OnRuns(
            witnesses.TWO_ITEMS,
            ("finished-drops-tensors", "notices-lost", "resumed-without-payload"),
        ),
    ),
    Claim(
        id="worker-bounded",
        kind="safety",
        sentence=sentence_of(statements.worker_bounded),
        why="51228, 55733: the size is what memory was reserved for",
        not_expected="never",
        assumptions=("outputs-in-order", "hash-is-content"),
        on_runs=OnRuns(
            witnesses.TWO_ITEMS,
            ("encoder-decoder-credit", "notices-lost", "encoder-decoder-notices-late"),
        ),
    ),
    Claim(
        id="dropped-in-update",
        kind="safety",
        sentence=sentence_of(statements.dropped_in_update),
        why="38907: what a step still reads may be evicted before it has run",
        not_expected="never",
        assumptions=(),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("free-before-execution",)),
    ),
    Claim(
        id="fresh-tensor",
        kind="safety",
        sentence=sentence_of(statements.fresh_tensor),
        why="57696: the model would read another image, or one of before the weights changed",
        not_expected="for contents that share a hash",
        assumptions=("hash-is-content",),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("own-size-free", "v2-reset-keeps-tensors")),
    ),
    Claim(
        id="payload-available",
        kind="safety",
        sentence=sentence_of(statements.payload_available),
        why="the encoder has nothing to run on, and every reader of the item misses",
        not_expected="never",
        assumptions=("outputs-in-order",),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("resumed-without-payload",)),
    ),
    Claim(
        id="item-whole",
        kind="safety",
        sentence=sentence_of(statements.item_whole),
        why="52306, 52412: models with bidirectional attention over an item need it in one step",
        not_expected="where a prefix hit ends inside the item",
        assumptions=(),
        on_runs=OnRuns(witnesses.WHOLE_ITEMS, ("item-split-at-start", "warm-item-split")),
    ),
    Claim(
        id="need-agrees",
        kind="safety",
        sentence=sentence_of(statements.need_agrees),
        why="29750, 32469, 38551, 45658, 51603: the scheduler must look as far as the drafter",
        not_expected="where the scheduler's shift is below the gather's look-ahead",
        assumptions=("scheduler-looks-as-far",),
        on_runs=OnRuns(
            witnesses.TWO_ITEMS,
            ("no-scheduler-shift", "boundary-never-encoded", "masked-leading-gap"),
        ),
    ),
    Claim(
        id="no-idle-references",
        kind="accounting",
        sentence=sentence_of(statements.no_idle_references),
        why="31857: what a request holds while it waits keeps others from running",
        not_expected="never",
        assumptions=(),
        on_runs=OnRuns(witnesses.PREEMPTION, ("waiting-keeps-references",)),
    ),
    Claim(
        id="counts-agree",
        kind="accounting",
        sentence="progress, tokens, placeholders, drafts, KV blocks, statuses, queues, batches "
        "and calls change by exactly what passes, updates and events say",
        why="all other claims are judged from these numbers: where they contradict each other, a "
        "claim could hold of a run that never was",
        not_expected="for what an engine may choose: where skipped requests wait, blocks "
        "reclaimed from requests that wait, outputs of preempted requests",
        assumptions=("budgets-fixed", "sampling-yields"),
        on_runs=OnRuns(witnesses.TWO_ITEMS, ("rejected-drafts-kept",)),
    ),
    Claim(
        id="no-stall",
        kind="progress",
        sentence="if nothing is in flight, no event is pending and some request is neither "
        "finished nor paused, a pass changes the state",
        why="46315, 47738, 40707, vllm-ascend 17195: the engine would stand still for ever, "
        "silently",
        not_expected="for configurations that cannot hold one request alone",
        assumptions=_ON_PROGRESS,
        on_runs=OnRuns(
            witnesses.FULL_CACHE,
            (
                "deferred-free-margin",
                "shifted-cut",
                "align-after-cut",
                "whole-item-cut-short",
                "threshold-below-whole-item",
                "reservation-after-cut",
            ),
        ),
    ),
    Claim(
        id="no-thrash",
        kind="progress",
        sentence="no state that was left comes back at the end of a round unless an event came or "
        "some request made progress beyond what it ever had",
        why="work that is thrown away and done again for ever looks like load",
        not_expected="for configurations that cannot hold one request alone",
        assumptions=_ON_PROGRESS,
        on_runs=OnRuns(witnesses.PREEMPTION, ("admission-preempts",)),
    ),
    Claim(
        id="work-conserving",
        kind="progress",
        sentence="a request that got no tokens because the feature at its progress was refused "
        "holds up nobody who could run",
        why="one waiting request would stop all that came after it",
        not_expected="never",
        assumptions=(),
        on_runs=OnRuns(witnesses.REFUSED_HEAD, ("stalled-head-ends-pass",)),
    ),
    Claim(
        id="pass-uses-budget",
        kind="progress",
        sentence=sentence_of(statements.pass_uses_budget),
        why="capacity that is lost with a victim, or by a slip of an index, looks like load",
        not_expected="never",
        assumptions=("budgets-fixed",),
        on_runs=OnRuns(
            witnesses.SHORT_CHUNKS,
            (
                "victim-budget-kept",
                "victim-budget-charged-twice",
                "skips-behind-victim",
                "admits-one-a-pass",
            ),
        ),
    ),
    Claim(
        id="threshold-kept",
        kind="progress",
        sentence=sentence_of(statements.threshold_kept),
        why="the threshold is there so that a long prompt takes no tokens from short ones",
        not_expected="with an adaptive threshold, which grows with the share of each request",
        assumptions=("budgets-fixed",),
        on_runs=OnRuns(witnesses.SHORT_CHUNKS, ("threshold-exceeded-by-one",)),
    ),
    Claim(
        id="reservation-kept",
        kind="progress",
        sentence=sentence_of(statements.reservation_kept),
        why="a module that finds no known token drafts from a sampled one, and its KV stays wrong",
        not_expected="in releases before 0.28.0, which have no drafter of several modules",
        assumptions=("budgets-fixed",),
        on_runs=OnRuns(
            witnesses.LAST_CHUNK, ("resumed-not-reserved", "not-reserved-before-others")
        ),
    ),
)


def _on_functions(claim: Claim, shown: OnFunctions) -> FunctionClaim:
    return FunctionClaim(
        claim.id,
        claim.kind,
        claim.sentence,
        claim.why,
        claim.not_expected,
        claim.assumptions,
        shown.witness,
        shown.faults,
    )


def _on_runs(claim: Claim, shown: OnRuns) -> LoopClaim:
    return LoopClaim(
        claim.id,
        claim.kind,
        claim.sentence,
        claim.why,
        claim.not_expected,
        (*claim.assumptions, *shown.also_assumes),
        shown.witness,
        shown.faults,
        shown.witness_without,
    )


FUNCTION_CLAIMS: dict[str, FunctionClaim] = {
    claim.id: _on_functions(claim, claim.on_functions) for claim in CLAIMS if claim.on_functions
}
"""The claims that single functions show, by id."""

LOOP_CLAIMS: dict[str, LoopClaim] = {
    claim.id: _on_runs(claim, claim.on_runs) for claim in CLAIMS if claim.on_runs
}
"""The claims that runs of the loop show, by id."""

ALL_TEXTS: dict[str, ClaimText] = {**FUNCTION_CLAIMS, **LOOP_CLAIMS}
"""What every claim says, by id; with the assumptions on runs where runs show it."""


def function_claim(claim_id: str) -> FunctionClaim:
    """The claim on single functions with the given id.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    if claim_id not in FUNCTION_CLAIMS:
        raise InputError(
            f"unknown claim {claim_id!r}; known claims: {', '.join(sorted(FUNCTION_CLAIMS))}"
        )
    return FUNCTION_CLAIMS[claim_id]


def loop_claim(claim_id: str) -> LoopClaim:
    """The claim on the loop with the given id.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    if claim_id in LOOP_CLAIMS:
        return LOOP_CLAIMS[claim_id]
    if claim_id in ALL_TEXTS:
        raise InputError(
            f"claim {claim_id!r} is about single functions, not whole runs; "
            "check it without --level loop"
        )
    raise InputError(
        f"unknown claim on the loop {claim_id!r}; known: {', '.join(sorted(LOOP_CLAIMS))}"
    )


def any_claim(claim_id: str) -> ClaimText:
    """What the claim with the given id says, wherever it can be checked.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    if claim_id not in ALL_TEXTS:
        raise InputError(
            f"unknown claim {claim_id!r}; known claims: {', '.join(sorted(ALL_TEXTS))}"
        )
    return ALL_TEXTS[claim_id]
