"""Slices: the part of a feature inside a window, and where it lands in the flattened batch."""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import (
    FEATURES_NOT_EMPTY,
    SORTED_DISJOINT,
    STEP_NOT_EMPTY,
    Span,
    Step,
    a_span,
    a_step,
    counts,
    inside,
    realistic,
)
from spec.algebra import BoolTerm, and_, iff, min_
from spec.rules import geometry
from spec.rules.geometry import Window

GROUP = Group("slices")

SELECTED = "feature-selected"


def _selected(span: Span, step: Step) -> BoolTerm:
    return geometry.overlaps(span.offset, span.length, *step.drafter)


def _slice(span: Span, step: Step) -> Window:
    return geometry.slice_bounds(span.offset, span.length, *step.drafter)


_EMPTY_FEATURE = without("empty-feature", FEATURES_NOT_EMPTY)
_EMPTY_STEP = without("empty-step", STEP_NOT_EMPTY)
_NOT_SELECTED = without("not-selected", SELECTED)

_WITNESS = {
    "num_computed_tokens": 2,
    "num_scheduled_tokens": 4,
    "look_ahead": 1,
    "offset": 4,
    "length": 4,
}


@theorem(
    GROUP,
    claim="no-error",
    sentence="the slice of a selected feature is not empty",
    witness={**_WITNESS},
    ablations=(_EMPTY_FEATURE, _EMPTY_STEP, _NOT_SELECTED),
)
def _never_empty(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    low, high = _slice(span, step)
    return Formula(
        {
            FEATURES_NOT_EMPTY: span.length >= 1,
            STEP_NOT_EMPTY: step.scheduled >= 1,
            SELECTED: _selected(span, step),
        },
        low < high,
        counts(span.offset, span.length, step.computed, step.scheduled, step.look_ahead),
    )


@theorem(
    GROUP,
    claim="no-error",
    sentence="the slice of a selected feature lies in the feature and is not turned round",
    witness={**_WITNESS},
    ablations=(_NOT_SELECTED,),
)
def _in_range(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    low, high = _slice(span, step)
    return Formula(
        {
            "lengths-not-negative": counts(span.length, step.scheduled),
            SELECTED: _selected(span, step),
        },
        and_(low >= 0, low <= high, high <= span.length),
        realistic(span, step),
    )


@theorem(
    GROUP,
    claim="rows-exact",
    sentence="the slice holds exactly the feature's positions inside the window",
    witness={**_WITNESS, "position": 5},
    ablations=(changed("start-not-cut", cut=False),),
)
def _exactly_the_window(v: Vocabulary, cut: bool = True) -> Formula:
    step, span = a_step(v), a_span(v)
    position = v.integer("position")
    part = _slice(span, step)
    if not cut:
        part = (step.drafter[0] - span.offset, min_(part[1], span.length))
    return Formula(
        {},
        iff(
            inside(position - span.offset, part),
            and_(inside(position, (span.offset, span.end)), inside(position, step.drafter)),
        ),
        realistic(span, step),
    )


@theorem(
    GROUP,
    claim="mask-exact",
    sentence="the mask's positions of a selected feature lie in its request's part of the batch",
    witness={**_WITNESS, "query_start": 3},
    ablations=(changed("start-unshifted", shifted=False),),
)
def _lands_in_its_request(v: Vocabulary, shifted: bool = True) -> Formula:
    step, span = a_step(v), a_span(v)
    query_start = v.integer("query_start")
    low, high = _slice(span, step)
    base = query_start + span.offset - (step.drafter[0] if shifted else step.computed)
    return Formula(
        {},
        and_(query_start <= base + low, base + high <= query_start + step.scheduled),
        and_(query_start >= 0, realistic(span, step), _selected(span, step)),
    )


@theorem(
    GROUP,
    claim="mask-exact",
    sentence="the slices of two disjoint features of a request take different positions of the "
    "batch, in the order of the features",
    witness={**_WITNESS, "offset": 1, "length": 4, "next_offset": 5, "next_length": 3},
    ablations=(without("nested-features", SORTED_DISJOINT),),
)
def _features_do_not_collide(v: Vocabulary) -> Formula:
    step, left = a_step(v), a_span(v)
    right = Span(*integers(v, "next_offset next_length"))
    left_end = left.offset + _slice(left, step)[1]
    right_start = right.offset + _slice(right, step)[0]
    return Formula(
        {SORTED_DISJOINT: left.end <= right.offset},
        left_end <= right_start,
        and_(
            realistic(left, step),
            realistic(right, step),
            left.offset <= right.offset,
            _selected(left, step),
            _selected(right, step),
        ),
    )


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
