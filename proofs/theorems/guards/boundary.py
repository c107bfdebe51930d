"""The boundary: which misses a gather tolerates, and that these are the drafter's alone."""

from __future__ import annotations

from functools import partial

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Ablation, Formula, Obligation
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
from spec.rules import free as rules

GROUP = "boundary"

ONE_LOOK_AHEAD = "window-and-test-use-one-look-ahead"
POSITION_IN_FEATURE = "position-in-feature"
POSITION_IN_WINDOW = "position-in-drafter-window"
DRAFTER_READS = "drafter-reads-feature"
TARGET_READS = "target-reads-feature"


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


def _v2_test_is_boundary(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    of_test = v.integer("look_ahead_of_test")
    return Formula(
        {ONE_LOOK_AHEAD: eq(of_test, step.look_ahead)},
        iff(
            rules.miss_tolerated_v2(span.offset, of_test, step.drafter[1]),
            at_boundary(span, step),
        ),
        realistic(span, step),
    )


def _v2_test_with_unshifted_end(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    return Formula(
        {},
        iff(
            rules.miss_tolerated_v2(span.offset, step.look_ahead, step.end),
            at_boundary(span, step),
        ),
        realistic(span, step),
    )


def _v1_equals_v2(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    of_test = v.integer("look_ahead_of_test")
    return Formula(
        {ONE_LOOK_AHEAD: eq(of_test, step.look_ahead)},
        iff(
            tolerated(span, step),
            rules.miss_tolerated_v2(span.offset, of_test, step.drafter[1]),
        ),
        realistic(span, step),
    )


def _target_miss_raises(v: Vocabulary, early: int = 0) -> Formula:
    step, span = a_step(v), a_span(v)
    offset = span.offset + early
    return Formula(
        {TARGET_READS: reads(span, step.target)},
        not_(
            or_(
                rules.miss_tolerated_v1(offset, step.computed, step.scheduled),
                rules.miss_tolerated_v2(offset, 0, step.target[1]),
            )
        ),
        realistic(span, step),
    )


def _tolerated_is_drafter_only(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    return Formula(
        {
            LOOK_AHEAD_NOT_NEGATIVE: step.look_ahead >= 0,
            DRAFTER_READS: reads(span, step.drafter),
        },
        iff(tolerated(span, step), not_(reads(span, step.target))),
        span.length >= 1,
    )


def _passes_iff_invariant(v: Vocabulary, tolerant: bool = True) -> Formula:
    step, span = a_step(v), a_span(v)
    resident = v.boolean("resident")
    excused = and_(tolerant, tolerated(span, step))
    return Formula(
        {},
        iff(
            or_(resident, excused),
            rules.read_is_safe(resident, span.offset, step.computed, step.scheduled),
        ),
        and_(realistic(span, step), reads(span, step.drafter)),
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


OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="boundary-miss-tolerated",
        group=GROUP,
        short_name="boundary-is-unprocessed",
        sentence="a feature is at the boundary exactly when none of its positions is processed",
        build=_boundary_is_unprocessed,
        witness={**AT_BOUNDARY_WITNESS, "position": 5},
        ablations=(Ablation("position-elsewhere", drops=(POSITION_IN_FEATURE,)),),
    ),
    Obligation(
        claim="boundary-miss-tolerated",
        group=GROUP,
        short_name="v2-test-is-boundary",
        sentence="V2's tolerance test holds exactly for features that start at or past the "
        "processed end, for every look-ahead",
        build=_v2_test_is_boundary,
        witness={**AT_BOUNDARY_WITNESS, "look_ahead_of_test": 1},
        ablations=(
            Ablation("look-aheads-differ", drops=(ONE_LOOK_AHEAD,)),
            Ablation("query-end-unshifted", build=_v2_test_with_unshifted_end),
        ),
    ),
    Obligation(
        claim="runners-agree",
        group=GROUP,
        short_name="v1-equals-v2",
        sentence="V1's and V2's tolerance tests are equivalent",
        build=_v1_equals_v2,
        witness={**AT_BOUNDARY_WITNESS, "look_ahead_of_test": 1},
        ablations=(Ablation("look-aheads-differ", drops=(ONE_LOOK_AHEAD,)),),
    ),
    Obligation(
        claim="interior-miss-raises",
        group=GROUP,
        short_name="target-miss-raises",
        sentence="neither runner tolerates a miss of a feature that the target reads",
        build=_target_miss_raises,
        witness={**INTERIOR_WITNESS},
        ablations=(
            Ablation("one-token-early", build=partial(_target_miss_raises, early=1)),
            Ablation("not-read", drops=(TARGET_READS,)),
        ),
    ),
    Obligation(
        claim="interior-miss-raises",
        group=GROUP,
        short_name="tolerated-is-drafter-only",
        sentence="among the features that the drafter's window meets, the tolerated ones are "
        "exactly those that the target's does not meet, for every look-ahead of 0 or more",
        build=_tolerated_is_drafter_only,
        witness={**AT_BOUNDARY_WITNESS},
        ablations=(
            Ablation("drafter-looks-back", drops=(LOOK_AHEAD_NOT_NEGATIVE,)),
            Ablation("not-read", drops=(DRAFTER_READS,)),
        ),
    ),
    Obligation(
        claim="drafter-resident-or-boundary",
        group=GROUP,
        short_name="gather-passes-iff-invariant",
        sentence="the gather of a feature passes exactly when the invariant holds there: resident, "
        "or at the boundary",
        build=_passes_iff_invariant,
        witness={**AT_BOUNDARY_WITNESS, "resident": False},
        ablations=(Ablation("no-tolerance", build=partial(_passes_iff_invariant, tolerant=False)),),
    ),
    Obligation(
        claim="drafter-resident-or-boundary",
        group=GROUP,
        short_name="drafter-only-positions",
        sentence="the positions that the drafter reads and the target does not are exactly those "
        "of its window at or past the processed end",
        build=_drafter_only_positions,
        witness={**PREFILL_WITNESS, "position": 4},
        ablations=(
            Ablation("drafter-looks-back", drops=(LOOK_AHEAD_NOT_NEGATIVE,)),
            Ablation("outside-the-window", drops=(POSITION_IN_WINDOW,)),
        ),
    ),
)


if __name__ == "__main__":
    main_of_group(GROUP, OBLIGATIONS)
