"""The boundary: which misses a gather tolerates, and that these are the drafter's alone."""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, instead, theorem, without
from proofs.smt.vocabulary import Vocabulary
from proofs.theorems.guards.scene import (
    AT_BOUNDARY_WITNESS,
    INTERIOR_WITNESS,
    LOOK_AHEAD_NOT_NEGATIVE,
    PREFILL_WITNESS,
    a_span,
    a_step,
    at_boundary,
    inside,
    reads,
    realistic,
    tolerated,
)
from spec.algebra import and_, eq, iff, implies, not_, or_
from spec.claims import predicates as claims
from spec.rules import tolerance

GROUP = Group("boundary")

ONE_LOOK_AHEAD = "window-and-test-use-one-look-ahead"
POSITION_IN_FEATURE = "position-in-feature"
POSITION_IN_WINDOW = "position-in-drafter-window"
DRAFTER_READS = "drafter-reads-feature"
TARGET_READS = "target-reads-feature"


@theorem(
    GROUP,
    claim="boundary-miss-tolerated",
    sentence="a feature is at the boundary exactly when none of its positions is processed",
    witness={**AT_BOUNDARY_WITNESS, "position": 5},
    ablations=(without("position-elsewhere", POSITION_IN_FEATURE),),
)
def _boundary_is_unprocessed(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    position = v.integer("position")
    processed = position < step.computed + step.scheduled
    first_processed = span.offset < step.computed + step.scheduled
    return Formula(
        {POSITION_IN_FEATURE: inside(position, (span.offset, span.end))},
        and_(
            implies(at_boundary(span, step), not_(processed)),
            implies(not_(at_boundary(span, step)), first_processed),
        ),
        realistic(span, step),
    )


def _v2_test_with_unshifted_end(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    return Formula(
        {},
        iff(
            tolerance.miss_tolerated_v2(span.offset, step.look_ahead, step.end),
            at_boundary(span, step),
        ),
        realistic(span, step),
    )


@theorem(
    GROUP,
    claim="boundary-miss-tolerated",
    sentence="V2's tolerance test holds exactly for features that start at or past the "
    "processed end, for every look-ahead",
    witness={**AT_BOUNDARY_WITNESS, "look_ahead_of_test": 1},
    ablations=(
        without("look-aheads-differ", ONE_LOOK_AHEAD),
        instead("query-end-unshifted", _v2_test_with_unshifted_end),
    ),
)
def _v2_test_is_boundary(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    of_test = v.integer("look_ahead_of_test")
    return Formula(
        {ONE_LOOK_AHEAD: eq(of_test, step.look_ahead)},
        iff(
            tolerance.miss_tolerated_v2(span.offset, of_test, step.drafter[1]),
            at_boundary(span, step),
        ),
        realistic(span, step),
    )


@theorem(
    GROUP,
    claim="runners-agree",
    sentence="V1's and V2's tolerance tests are equivalent",
    witness={**AT_BOUNDARY_WITNESS, "look_ahead_of_test": 1},
    ablations=(without("look-aheads-differ", ONE_LOOK_AHEAD),),
)
def _v1_equals_v2(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    of_test = v.integer("look_ahead_of_test")
    return Formula(
        {ONE_LOOK_AHEAD: eq(of_test, step.look_ahead)},
        iff(
            tolerated(span, step),
            tolerance.miss_tolerated_v2(span.offset, of_test, step.drafter[1]),
        ),
        realistic(span, step),
    )


@theorem(
    GROUP,
    claim="interior-miss-raises",
    sentence="neither runner tolerates a miss of a feature that the target reads",
    witness={**INTERIOR_WITNESS},
    ablations=(changed("one-token-early", early=1), without("not-read", TARGET_READS)),
)
def _target_miss_raises(v: Vocabulary, early: int = 0) -> Formula:
    step, span = a_step(v), a_span(v)
    offset = span.offset + early
    return Formula(
        {TARGET_READS: reads(span, step.target)},
        not_(
            or_(
                tolerance.miss_tolerated_v1(offset, step.computed, step.scheduled),
                tolerance.miss_tolerated_v2(offset, 0, step.target[1]),
            )
        ),
        realistic(span, step),
    )


@theorem(
    GROUP,
    claim="interior-miss-raises",
    sentence="among the features that the drafter's window meets, the tolerated ones are "
    "exactly those that the target's does not meet, for every look-ahead of 0 or more",
    witness={**AT_BOUNDARY_WITNESS},
    ablations=(
        without("drafter-looks-back", LOOK_AHEAD_NOT_NEGATIVE),
        without("not-read", DRAFTER_READS),
    ),
)
def _tolerated_is_drafter_only(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    return Formula(
        {LOOK_AHEAD_NOT_NEGATIVE: step.look_ahead >= 0, DRAFTER_READS: reads(span, step.drafter)},
        iff(tolerated(span, step), not_(reads(span, step.target))),
        span.length >= 1,
    )


@theorem(
    GROUP,
    claim="drafter-resident-or-boundary",
    sentence="the gather of a feature passes exactly when the invariant holds there: resident, "
    "or at the boundary",
    witness={**AT_BOUNDARY_WITNESS, "resident": False},
    ablations=(changed("no-tolerance", tolerant=False),),
)
def _gather_passes_iff_invariant(v: Vocabulary, tolerant: bool = True) -> Formula:
    step, span = a_step(v), a_span(v)
    resident = v.boolean("resident")
    excused = and_(tolerant, tolerated(span, step))
    return Formula(
        {},
        iff(
            implies(reads(span, step.drafter), or_(resident, excused)),
            claims.drafter_resident_or_boundary(span, step.chunk, resident),
        ),
        and_(realistic(span, step), reads(span, step.drafter)),
    )


@theorem(
    GROUP,
    claim="drafter-resident-or-boundary",
    sentence="the positions that the drafter reads and the target does not are exactly those "
    "of its window at or past the processed end",
    witness={**PREFILL_WITNESS, "position": 4},
    ablations=(
        without("drafter-looks-back", LOOK_AHEAD_NOT_NEGATIVE),
        without("outside-the-window", POSITION_IN_WINDOW),
    ),
)
def _drafter_only_positions(v: Vocabulary) -> Formula:
    step, position = a_step(v), v.integer("position")
    return Formula(
        {
            LOOK_AHEAD_NOT_NEGATIVE: step.look_ahead >= 0,
            POSITION_IN_WINDOW: inside(position, step.drafter),
        },
        iff(not_(inside(position, step.target)), position >= step.end),
        and_(step.computed >= 0, step.scheduled >= 1),
    )


@theorem(
    GROUP,
    claim="boundary-miss-tolerated",
    sentence="a gather that raises for each feature that is neither resident nor tolerated raises "
    "for none at the boundary",
    witness={**AT_BOUNDARY_WITNESS, "resident": False},
    ablations=(changed("no-tolerance", tolerant=False),),
)
def _boundary_miss_raises_nothing(v: Vocabulary, tolerant: bool = True) -> Formula:
    step, span, resident = a_step(v), a_span(v), v.boolean("resident")
    raises = not_(or_(resident, and_(tolerant, tolerated(span, step))))
    return Formula(
        {},
        claims.boundary_miss_tolerated(at_boundary(span, step), resident, raises),
        and_(realistic(span, step), reads(span, step.drafter)),
    )


@theorem(
    GROUP,
    claim="interior-miss-raises",
    sentence="such a gather raises for each feature that is not resident and not at the boundary",
    witness={**INTERIOR_WITNESS, "resident": False},
    ablations=(changed("one-token-early", early=1),),
)
def _interior_miss_is_an_error(v: Vocabulary, early: int = 0) -> Formula:
    step, span, resident = a_step(v), a_span(v), v.boolean("resident")
    tolerates = tolerance.miss_tolerated_v1(span.offset + early, step.computed, step.scheduled)
    raises = not_(or_(resident, tolerates))
    return Formula(
        {},
        claims.interior_miss_raises(at_boundary(span, step), resident, raises),
        and_(realistic(span, step), reads(span, step.drafter)),
    )


@theorem(
    GROUP,
    claim="boundary-used-when-resident",
    sentence="of a resident dense feature at the boundary that the drafter's window meets, its "
    "gather reads a row; clamped at the processed end it would not",
    witness={**AT_BOUNDARY_WITNESS, "resident": True},
    ablations=(
        changed("clamped", is_clamped=True),
        without("out-of-the-window", DRAFTER_READS),
    ),
)
def _boundary_is_used(v: Vocabulary, is_clamped: bool = False) -> Formula:
    step, span, resident = a_step(v), a_span(v), v.boolean("resident")
    used = and_(resident, reads(span, step.clamped if is_clamped else step.drafter))
    start, end = step.drafter
    meets = and_(span.offset < end, span.end > start, span.length >= 1, start < end)
    return Formula(
        {DRAFTER_READS: meets},
        claims.boundary_used_when_resident(at_boundary(span, step), resident, used),
        realistic(span, step),
    )


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
