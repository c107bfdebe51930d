"""Clamping: what cutting the drafter's window off at the processed end would change.

Settles the second question from the review of pull request 46315: tolerating a boundary miss is not
the same as clamping the drafter's window. For dense features both let the same steps pass
(``clamping.agrees-over-the-step``), but clamping loses every resident row at or past the processed
end (``clamping.loses-rows-past-the-end``), and for a masked feature the two disagree on what raises
as well (``clamping.differs-by-late-rows``).
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary
from proofs.theorems.guards.scene import (
    AT_BOUNDARY_WITNESS,
    INTERIOR_WITNESS,
    LOOK_AHEAD_NOT_NEGATIVE,
    PREFILL_WITNESS,
    Span,
    Step,
    a_span,
    a_step,
    at_boundary,
    inside,
    reads,
    realistic,
    tolerated,
)
from spec.algebra import BoolTerm, IntTerm, and_, iff, implies, max_, not_, or_

GROUP = Group("clamping")

LOOK_AHEAD_SHORTER = "look-ahead-shorter-than-step"
STARTS_BEFORE_END = "feature-starts-before-processed-end"
AT_BOUNDARY = "feature-at-boundary"
POSITION_IN_WINDOW = "position-in-drafter-window"


@theorem(
    GROUP,
    claim="boundary-used-when-resident",
    sentence="with a look-ahead shorter than the step, clamping reads the same dense features "
    "that start before the processed end",
    witness={**INTERIOR_WITNESS},
    ablations=(
        without("boundary-feature", STARTS_BEFORE_END),
        without("look-ahead-reaches-step", LOOK_AHEAD_SHORTER),
    ),
)
def _keeps_interior_features(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    return Formula(
        {
            LOOK_AHEAD_NOT_NEGATIVE: step.look_ahead >= 0,
            LOOK_AHEAD_SHORTER: step.look_ahead < step.scheduled,
            STARTS_BEFORE_END: not_(at_boundary(span, step)),
        },
        iff(reads(span, step.drafter), reads(span, step.clamped)),
        and_(step.computed >= 0, span.length >= 1),
    )


@theorem(
    GROUP,
    claim="boundary-used-when-resident",
    sentence="clamping never reads a boundary feature, resident or not",
    witness={**AT_BOUNDARY_WITNESS},
    ablations=(without("interior-feature", AT_BOUNDARY), changed("not-clamped", clamped=False)),
)
def _skips_boundary(v: Vocabulary, clamped: bool = True) -> Formula:
    step, span = a_step(v), a_span(v)
    window = step.clamped if clamped else step.drafter
    return Formula(
        {AT_BOUNDARY: at_boundary(span, step)}, not_(reads(span, window)), realistic(span, step)
    )


def _raising(span: Span, step: Step) -> tuple[BoolTerm, BoolTerm]:
    """Whether the drafter's gather raises if the dense feature is absent: as it is; clamped."""
    tolerant = and_(reads(span, step.drafter), not_(tolerated(span, step)))
    return tolerant, reads(span, step.clamped)


@theorem(
    GROUP,
    claim="interior-miss-raises",
    sentence="for dense features and a look-ahead shorter than the step, the drafter's gather "
    "raises for the same features with tolerance as when clamped",
    witness={**INTERIOR_WITNESS},
    ablations=(without("look-ahead-reaches-step", LOOK_AHEAD_SHORTER),),
)
def _agrees_in_the_gather(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    return Formula(
        {
            LOOK_AHEAD_NOT_NEGATIVE: step.look_ahead >= 0,
            LOOK_AHEAD_SHORTER: step.look_ahead < step.scheduled,
        },
        iff(*_raising(span, step)),
        and_(step.computed >= 0, span.length >= 1),
    )


@theorem(
    GROUP,
    claim="interior-miss-raises",
    sentence="for dense features and every look-ahead, target and drafter together raise for "
    "the same features with tolerance as when clamped",
    witness={**INTERIOR_WITNESS},
    ablations=(changed("drafter-alone", target_first=False),),
)
def _agrees_over_the_step(v: Vocabulary, target_first: bool = True) -> Formula:
    step, span = a_step(v), a_span(v)
    tolerant, clamped = _raising(span, step)
    target = and_(target_first, reads(span, step.target))
    return Formula(
        {LOOK_AHEAD_NOT_NEGATIVE: step.look_ahead >= 0},
        iff(or_(target, tolerant), or_(target, clamped)),
        and_(step.computed >= 0, step.scheduled >= 1, span.length >= 1),
    )


@theorem(
    GROUP,
    claim="boundary-used-when-resident",
    sentence="of the positions that the drafter reads, clamping loses exactly those at or past "
    "the processed end, resident or not",
    witness={**AT_BOUNDARY_WITNESS, "position": 4},
    ablations=(
        changed("clamp-loses-nothing", clamped=False),
        without("outside-the-window", POSITION_IN_WINDOW),
    ),
)
def _loses_rows_past_the_end(v: Vocabulary, clamped: bool = True) -> Formula:
    step, span = a_step(v), a_span(v)
    position = v.integer("position")
    kept = inside(position, step.clamped if clamped else step.drafter)
    return Formula(
        {POSITION_IN_WINDOW: inside(position, step.drafter)},
        iff(not_(kept), position >= step.end),
        and_(realistic(span, step), inside(position, (span.offset, span.end))),
    )


@theorem(
    GROUP,
    claim="interior-miss-raises",
    sentence="with masks, a step that passes with tolerance passes when clamped; the other way "
    "round it fails exactly for a feature that starts before the processed end, has no row "
    "for the target and has one for the drafter past that end",
    witness={**PREFILL_WITNESS, "offset": 2, "length": 4, "is_embed": (False, False, True, True)},
    ablations=(changed("masked-like-dense", like_dense=True),),
)
def _differs_by_late_rows(v: Vocabulary, like_dense: bool = False) -> Formula:
    step, span = a_step(v), a_span(v)
    mask = v.mask("is_embed", span.length)

    def has_row(start: IntTerm, end: IntTerm) -> BoolTerm:
        return mask.rows_in(span.offset, start, end) >= 1

    target = has_row(*step.target)
    tolerant = or_(target, and_(has_row(*step.drafter), not_(tolerated(span, step))))
    clamped = or_(target, has_row(*step.clamped))
    late = and_(
        not like_dense,
        not_(at_boundary(span, step)),
        not_(target),
        has_row(max_(step.end, step.drafter[0]), step.drafter[1]),
    )
    return Formula(
        {LOOK_AHEAD_NOT_NEGATIVE: step.look_ahead >= 0},
        and_(implies(clamped, tolerant), iff(and_(tolerant, not_(clamped)), late)),
        and_(span.offset >= 0, step.computed >= 0, step.scheduled >= 1, span.length >= 1),
    )


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
