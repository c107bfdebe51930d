"""Every assumption: its id, one sentence, and what breaks without it.

``broken_by`` names the ablations that drop the assumption in a proof, as
``group.obligation/ablation``.
``trace`` is a concrete case that breaks ``claim`` when the assumption does not hold; where the
engine keeps a second guard in front of it, ``with_fault`` names the switch that removes that guard.
"""

from __future__ import annotations

from dataclasses import dataclass

from spec.errors import InputError
from spec.functions.cases import BookCase, BookOperation, Case, FreeCase, Progress, WindowCase
from spec.record.feature import Feature


@dataclass(frozen=True)
class Assumption:
    """Something that proofs and claims take for granted about the engine or the world."""

    id: str
    sentence: str
    without: str
    broken_by: tuple[str, ...] = ()
    claim: str | None = None
    trace: Case | None = None
    with_fault: str | None = None


ASSUMPTIONS: tuple[Assumption, ...] = (
    Assumption(
        id="features-sorted-disjoint",
        sentence="a request's features are sorted by offset and do not overlap",
        without="A[0,2) with B[0,1) nested after it: a search of [1,2) by bisection misses A",
        broken_by=("window.search-selects-overlapping/nested-features",),
        claim="window-exact",
        trace=WindowCase((Feature(0, 2, "A"), Feature(0, 1, "B")), 1, 2),
    ),
    Assumption(
        id="features-not-empty",
        sentence="every feature spans at least one token",
        without="an empty feature strictly inside the window passes the overlap test, and its "
        "slice is empty",
        broken_by=(
            "window.overlap-is-meeting/empty-feature",
            "slices.never-empty/empty-feature",
        ),
    ),
    Assumption(
        id="step-not-empty",
        sentence="a scheduled request runs at least one token",
        without="an empty range strictly inside a feature passes the overlap test, and the "
        "slice is empty",
        broken_by=("window.overlap-is-meeting/empty-step", "slices.never-empty/empty-step"),
    ),
    Assumption(
        id="features-in-prompt",
        sentence="every feature ends at or before the prompt's end, where drafting begins",
        without="A[50,150) at 160 computed tokens of which 12 are placeholders and 11 drafts: a "
        "free that ignores placeholders lets A go although progress can fall to 149",
        broken_by=("lifetime.placeholders-needless-in-prompt/features-beyond-prompt",),
        claim="freed-not-needed",
        trace=FreeCase((Feature(50, 100, "A"),), 100, (Progress(160, 12, 11),)),
        with_fault="free-ignores-placeholders",
    ),
    Assumption(
        id="hash-is-content",
        sentence="an identifier stands for one content, hence for one number of rows",
        without="X stored with 2 rows and let go by a request whose mask has 4: slots drift where "
        "the book credits the request's own count",
        claim="slots-conserved",
        trace=BookCase(
            8,
            ((Feature(0, 2, "X"),), (Feature(0, 4, "X"),)),
            (
                BookOperation("take", 0),
                BookOperation("take", 1),
                BookOperation("drop", 0),
                BookOperation("drop", 1),
            ),
            content_is_hashed=False,
        ),
        with_fault="own-size-free",
    ),
    Assumption(
        id="drafts-are-placeholders",
        sentence="every draft in flight was counted as a placeholder",
        without="10 computed tokens, no placeholder, 1 draft in flight: a feature that ends at 10 "
        "is let go although progress can fall to 9",
        broken_by=("lifetime.margin-zero-with-placeholders/drafts-not-counted",),
    ),
    Assumption(
        id="progress-falls-by-drafts-only",
        sentence="progress never falls below what is confirmed: only drafts in flight are rejected",
        without="a failed KV load that lowers progress below a freed feature's end reads it again",
        broken_by=("lifetime.margin-zero-without-rollback/progress-falls",),
    ),
    Assumption(
        id="notices-follow-the-drafter",
        sentence="an eviction notice reaches the worker after the drafter of the step in which the "
        "reference was dropped",
        without="dropped when scheduled and evicted before the same step's drafter: the drafter "
        "reads [c+1, c+n+1) of a feature that ends at c+n",
        broken_by=("lifetime.notice-after-drafter/notice-before-drafter",),
    ),
)

BY_ID: dict[str, Assumption] = {assumption.id: assumption for assumption in ASSUMPTIONS}


def assumption(assumption_id: str) -> Assumption:
    """The assumption with the given id.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    known = BY_ID.get(assumption_id)
    if known is None:
        raise InputError(f"unknown assumption {assumption_id!r}; known: {', '.join(sorted(BY_ID))}")
    return known
