"""Every claim on single functions: what it says, why it matters, when it is not expected to hold.

Claims on the running loop are in :mod:`spec.claims.on_runs`.

A claim's ``witness`` is a concrete case in which its premise happens, so that no claim passes for
want of anything to check. ``faults`` are the switches of :mod:`impl.faults.switches` that must
break it. Numbers in ``why`` are public pull requests and issues of vLLM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spec.claims import predicates as statements
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

Kind = Literal["safety", "exactness", "accounting", "progress"]


@dataclass(frozen=True)
class ClaimText:
    """What a claim says.

    Attributes:
        id: stable name, used on the command line and in reports.
        kind: what sort of property it is.
        sentence: what it means.
        why: why it matters, with public numbers where there are any.
        not_expected: when it is not expected to hold, to be read after those words; or "never".
        assumptions: ids of :mod:`spec.claims.on_functions_assumptions`.
    """

    id: str
    kind: Kind
    sentence: str
    why: str
    not_expected: str
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class Claim(ClaimText):
    """One claim, as single functions can show it.

    Attributes:
        witness: a case in which the premise happens.
        faults: switches that must break it.
    """

    witness: Case
    faults: tuple[str, ...] = ()


_A = Feature(0, 4, "A")
_B = Feature(4, 4, "B")
_AT_BOUNDARY = GatherRequest(0, 4, 9, (_A, _B))
_BOTH = (EncoderOutput("A", 4), EncoderOutput("B", 4))
_X = Feature(0, 4, "X")
_X_AGAIN = Feature(4, 4, "X")


def _boundary_case(resident: tuple[EncoderOutput, ...], look_ahead: int = 1) -> GatherCase:
    return GatherCase((_AT_BOUNDARY,), resident, look_ahead)


_LAYOUT = ("features-sorted-disjoint", "features-not-empty", "step-not-empty")

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="target-resident",
        kind="safety",
        sentence=sentence_of(statements.target_resident),
        why="a miss stops the engine; the target's output would be wrong without the row",
        not_expected="after the world broke an assumption on progress or on the order of notices",
        assumptions=("progress-falls-by-drafts-only", "notices-follow-the-drafter"),
        witness=_boundary_case(_BOTH, look_ahead=0),
    ),
    Claim(
        id="drafter-resident-or-boundary",
        kind="safety",
        sentence=sentence_of(statements.drafter_resident_or_boundary),
        why="the invariant itself: 29750, 32469, 46315, 51603",
        not_expected="where target-resident is not, and with a scheduler that does not look as far "
        "ahead as the gather",
        assumptions=("progress-falls-by-drafts-only", "notices-follow-the-drafter"),
        witness=_boundary_case(_BOTH),
    ),
    Claim(
        id="boundary-miss-tolerated",
        kind="safety",
        sentence=sentence_of(statements.boundary_miss_tolerated),
        why="46315: its row costs draft quality only, but raising stops the engine",
        not_expected="never",
        assumptions=_LAYOUT,
        witness=_boundary_case((EncoderOutput("A", 4),)),
        faults=("no-boundary-tolerance",),
    ),
    Claim(
        id="interior-miss-raises",
        kind="exactness",
        sentence=sentence_of(statements.interior_miss_raises),
        why="38622, 53451: swallowing it hides a broken invariant and changes the output",
        not_expected="where Python runs with assertions off and a release raises by assertion",
        assumptions=_LAYOUT,
        witness=_boundary_case((EncoderOutput("B", 4),)),
        faults=("interior-miss-swallowed", "window-search-late"),
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
        witness=_boundary_case(_BOTH),
        faults=("rows-by-position", "window-search-late"),
    ),
    Claim(
        id="mask-exact",
        kind="exactness",
        sentence="gather's mask is true exactly where the oracle has a row",
        why="the merge counts the mask's true positions; another count is an error or a shift",
        not_expected="for features interleaved on one span",
        assumptions=_LAYOUT,
        witness=_boundary_case(_BOTH),
        faults=("mask-fills-span", "window-search-late"),
    ),
    Claim(
        id="boundary-used-when-resident",
        kind="exactness",
        sentence=sentence_of(statements.boundary_used_when_resident),
        why="46315: clamping the window instead would lose the row for the drafter",
        not_expected="never",
        assumptions=_LAYOUT,
        witness=_boundary_case(_BOTH),
        faults=("clamped-drafter-window", "window-search-late"),
    ),
    Claim(
        id="runners-agree",
        kind="exactness",
        sentence="V1 and V2 return the same tensors on the same batch",
        why="a model is served by either runner and must not care which",
        not_expected="for a request whose shifted start is at or past its prefill length: V2 skips "
        "it unread",
        assumptions=(*_LAYOUT, "features-in-prompt"),
        witness=_boundary_case(_BOTH),
        faults=("v2-splits-rows",),
    ),
    Claim(
        id="window-exact",
        kind="exactness",
        sentence="the window search selects exactly the features that share a position with it",
        why="a feature that is not selected is silently read as text",
        not_expected="for features out of order or nested",
        assumptions=_LAYOUT,
        witness=WindowCase((_A, _B), 3, 5),
        faults=("window-search-late",),
    ),
    Claim(
        id="row-range-exact",
        kind="exactness",
        sentence="rows of a range of positions under a mask equal counting, empty ranges included",
        why="fixed by 0.20.2: rows of an empty range at the start were counted from the mask's end",
        not_expected="never",
        assumptions=(),
        witness=RowRangeCase((True, False, True, True), 0, 0),
        faults=("negative-mask-index",),
    ),
    Claim(
        id="freed-not-needed",
        kind="safety",
        sentence=sentence_of(statements.freed_not_needed),
        why="45347, 46315: a later read would miss",
        not_expected="after an abort, a preemption or a reset, which let go at once",
        assumptions=("drafts-are-placeholders", "progress-falls-by-drafts-only"),
        witness=FreeCase((_A,), 4, (Progress(8, 2, 1),)),
        faults=("free-ignores-placeholders", "freed-one-token-early"),
    ),
    Claim(
        id="held-until-last-use",
        kind="safety",
        sentence=sentence_of(statements.held_until_last_use),
        why="54284: dropping at the first occurrence costs a second encoding",
        not_expected="for occurrences that the request has not yet taken",
        assumptions=("hash-is-content",),
        witness=FreeCase((_X, _X_AGAIN), 4, (Progress(4), Progress(8))),
        faults=("dropped-at-first-occurrence",),
    ),
    Claim(
        id="slots-conserved",
        kind="accounting",
        sentence=sentence_of(statements.slots_conserved),
        why="57696, 51228, 55733, 55734: slots that drift let the worker outgrow its memory",
        not_expected="never",
        assumptions=("hash-is-content",),
        witness=BookCase(4, ((_X,),), (BookOperation("take"), BookOperation("drop"))),
        faults=("own-size-free", "encoder-decoder-credit"),
    ),
    Claim(
        id="evicted-not-live",
        kind="safety",
        sentence=sentence_of(statements.evicted_not_live),
        why="52482: the worker would drop what the book believes to be there",
        not_expected="never",
        assumptions=(),
        witness=BookCase(
            4,
            ((_X,), (Feature(0, 4, "Y"),)),
            (
                BookOperation("take", 0),
                BookOperation("drop", 0),
                BookOperation("take", 1),
                BookOperation("end_pass"),
            ),
        ),
        faults=("stale-eviction-notice",),
    ),
    Claim(
        id="released",
        kind="progress",
        sentence=sentence_of(statements.released),
        why="31857: a reference that nobody needs keeps the cache full",
        not_expected="never",
        assumptions=(),
        witness=BookCase(4, ((_X,),), (BookOperation("take"), BookOperation("finish"))),
        faults=("finish-keeps-references",),
    ),
    Claim(
        id="book-exact",
        kind="exactness",
        sentence="the book hits what is present, refuses only what cannot fit, and evicts the "
        "oldest unreferenced entries and no more than needed",
        why="every claim above relies on the book's answers",
        not_expected="where a narrower claim is violated at the same operation: it counts there",
        assumptions=("hash-is-content",),
        witness=BookCase(4, ((_X,),), (BookOperation("take"), BookOperation("take"))),
        faults=("evicts-newest-first", "notices-lost"),
    ),
    Claim(
        id="no-error",
        kind="safety",
        sentence="free, gather and the book raise nothing on legal input, misses apart",
        why="an exception here stops the engine for everybody",
        not_expected="for misses, which have claims of their own",
        assumptions=_LAYOUT,
        witness=_boundary_case(_BOTH),
        faults=("finish-needs-references",),
    ),
)

BY_ID: dict[str, Claim] = {claim.id: claim for claim in CLAIMS}


def claim(claim_id: str) -> Claim:
    """The claim with the given id.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    known = BY_ID.get(claim_id)
    if known is None:
        raise InputError(f"unknown claim {claim_id!r}; known claims: {', '.join(sorted(BY_ID))}")
    return known
