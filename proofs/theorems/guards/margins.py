"""Margins: the smallest safe margin of *free* under each assumption.

The second part of group ``lifetime``; see :mod:`proofs.theorems.guards.lifetime`.
"""

from __future__ import annotations

from functools import partial

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import (
    DRAFTS_ARE_PLACEHOLDERS,
    FALLS_BY_DRAFTS_ONLY,
    FEATURES_IN_PROMPT,
    FREED,
    NOTICES_FOLLOW,
    a_span,
    counts,
    freed,
    unread_from,
)
from spec.algebra import and_, implies, max_
from spec.rules import geometry

GROUP = "lifetime"

DRAFTING_PAST_PROMPT = "drafting-begins-at-prompt-end"


def _margin_zero_without_rollback(v: Vocabulary, margin: int = 0) -> Formula:
    span = a_span(v)
    computed, placeholders, start = integers(
        v, "num_computed_tokens num_output_placeholders later_start"
    )
    return Formula(
        {
            FREED: freed(span, computed, placeholders, margin),
            FALLS_BY_DRAFTS_ONLY: computed - placeholders <= start,
        },
        unread_from(span, start),
        counts(span.offset, span.length, placeholders, computed - placeholders, start),
    )


def _margin_zero_with_placeholders(v: Vocabulary, margin: int = 0) -> Formula:
    span = a_span(v)
    computed, placeholders, drafts, start = integers(
        v, "num_computed_tokens num_output_placeholders num_drafts_in_flight later_start"
    )
    return Formula(
        {
            FREED: freed(span, computed, placeholders, margin),
            DRAFTS_ARE_PLACEHOLDERS: drafts <= placeholders,
            FALLS_BY_DRAFTS_ONLY: computed - drafts <= start,
        },
        unread_from(span, start),
        counts(span.offset, span.length, placeholders, computed - placeholders, drafts, start),
    )


def _margin_is_uncounted_drafts(v: Vocabulary, less: int = 0) -> Formula:
    span = a_span(v)
    computed, placeholders, drafts, start = integers(
        v, "num_computed_tokens num_output_placeholders num_drafts_in_flight later_start"
    )
    margin = max_(drafts - placeholders, 0) - less
    return Formula(
        {
            FREED: freed(span, computed, placeholders, margin),
            FALLS_BY_DRAFTS_ONLY: computed - drafts <= start,
        },
        unread_from(span, start),
        and_(
            counts(span.offset, span.length, placeholders, computed - placeholders, start),
            drafts - placeholders >= less,
        ),
    )


def _placeholders_needless_in_prompt(v: Vocabulary, margin: int = 0) -> Formula:
    span = a_span(v)
    computed, drafts, prompt, start = integers(
        v, "num_computed_tokens num_drafts_in_flight num_prompt_tokens later_start"
    )
    return Formula(
        {
            FREED: freed(span, computed, 0, margin),
            FEATURES_IN_PROMPT: span.end <= prompt,
            DRAFTING_PAST_PROMPT: implies(drafts >= 1, prompt <= computed - drafts),
            FALLS_BY_DRAFTS_ONLY: computed - drafts <= start,
        },
        unread_from(span, start),
        counts(span.offset, span.length, computed, drafts, prompt, start),
    )


def _notice_after_drafter(v: Vocabulary, margin: int = 0) -> Formula:
    """The reference goes when the step is scheduled, so progress already counts the step."""
    span = a_span(v)
    computed, scheduled, look_ahead, start = integers(
        v, "num_computed_tokens num_scheduled_tokens look_ahead first_read_after_notice"
    )
    drafter = geometry.drafter_window(computed, scheduled, look_ahead)
    return Formula(
        {
            FREED: freed(span, computed + scheduled, 0, margin),
            NOTICES_FOLLOW: computed + scheduled <= start,
        },
        unread_from(span, start),
        and_(
            counts(span.offset, span.length, computed, scheduled, look_ahead - 1),
            drafter[0] <= start,
        ),
    )


def _margin_before_the_drafter(v: Vocabulary, less: int = 0) -> Formula:
    span = a_span(v)
    computed, scheduled, look_ahead, start = integers(
        v, "num_computed_tokens num_scheduled_tokens look_ahead first_read_after_notice"
    )
    drafter = geometry.drafter_window(computed, scheduled, look_ahead)
    margin = max_(scheduled - look_ahead, 0) - less
    return Formula(
        {
            FREED: freed(span, computed + scheduled, 0, margin),
            "notice-follows-the-target": drafter[0] <= start,
        },
        unread_from(span, start),
        and_(
            counts(span.offset, span.length, computed, look_ahead, start - computed),
            scheduled - look_ahead >= less,
        ),
    )


def _free_before_execution(v: Vocabulary, margin: int = 0) -> Formula:
    span = a_span(v)
    computed, scheduled, drafts, prompt, look_ahead, start = integers(
        v,
        "num_computed_tokens num_scheduled_tokens num_drafts_in_flight num_prompt_tokens "
        "look_ahead first_read_after_notice",
    )
    end = computed + scheduled
    return Formula(
        {
            FREED: freed(span, end, 0, margin),
            FEATURES_IN_PROMPT: span.end <= prompt,
            DRAFTING_PAST_PROMPT: implies(drafts >= 1, prompt <= end - drafts),
            NOTICES_FOLLOW: end - drafts <= start,
        },
        unread_from(span, start),
        and_(
            counts(span.offset, span.length, computed, drafts, look_ahead - 1),
            drafts < scheduled,
            computed + look_ahead <= start,
        ),
    )


_SPAN = {"offset": 0, "length": 4}
_MINUS_ONE = "margin-minus-one"
_FALLS = Ablation("progress-falls", drops=(FALLS_BY_DRAFTS_ONLY,))

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="margin-zero-without-rollback",
        sentence="margin 0 is safe, and the smallest, where progress never goes back below x",
        build=_margin_zero_without_rollback,
        witness={
            **_SPAN,
            "num_computed_tokens": 6,
            "num_output_placeholders": 2,
            "later_start": 4,
        },
        ablations=(
            _FALLS,
            Ablation(_MINUS_ONE, build=partial(_margin_zero_without_rollback, margin=-1)),
        ),
    ),
    Obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="margin-zero-with-placeholders",
        sentence="margin 0 is safe, and the smallest, where progress goes back by the drafts in "
        "flight and each of them is a placeholder",
        build=_margin_zero_with_placeholders,
        witness={
            **_SPAN,
            "num_computed_tokens": 6,
            "num_output_placeholders": 2,
            "num_drafts_in_flight": 1,
            "later_start": 5,
        },
        ablations=(
            Ablation("drafts-not-counted", drops=(DRAFTS_ARE_PLACEHOLDERS,)),
            _FALLS,
            Ablation(_MINUS_ONE, build=partial(_margin_zero_with_placeholders, margin=-1)),
        ),
    ),
    Obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="margin-is-uncounted-drafts",
        sentence="where progress goes back by the drafts in flight, the smallest safe margin is "
        "the excess of drafts in flight over placeholders",
        build=_margin_is_uncounted_drafts,
        witness={
            **_SPAN,
            "num_computed_tokens": 6,
            "num_output_placeholders": 0,
            "num_drafts_in_flight": 2,
            "later_start": 4,
        },
        ablations=(
            _FALLS,
            Ablation("margin-one-less", build=partial(_margin_is_uncounted_drafts, less=1)),
        ),
    ),
    Obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="placeholders-needless-in-prompt",
        sentence="margin 0 is safe, and the smallest, even if placeholders are ignored, while "
        "features lie in the prompt, where nothing is drafted",
        build=_placeholders_needless_in_prompt,
        witness={
            **_SPAN,
            "num_computed_tokens": 7,
            "num_drafts_in_flight": 2,
            "num_prompt_tokens": 5,
            "later_start": 5,
        },
        ablations=(
            Ablation("features-beyond-prompt", drops=(FEATURES_IN_PROMPT,)),
            Ablation("drafts-in-prompt", drops=(DRAFTING_PAST_PROMPT,)),
            _FALLS,
            Ablation(_MINUS_ONE, build=partial(_placeholders_needless_in_prompt, margin=-1)),
        ),
    ),
    Obligation(
        claim="drafter-resident-or-boundary",
        group=GROUP,
        short_name="notice-after-drafter",
        sentence="margin 0 is safe, and the smallest, for a reference dropped as soon as its step "
        "is scheduled, if the notice reaches the worker after that step's drafter and the next "
        "read starts no earlier than the step's end",
        build=_notice_after_drafter,
        witness={
            **_SPAN,
            "num_computed_tokens": 0,
            "num_scheduled_tokens": 4,
            "look_ahead": 1,
            "first_read_after_notice": 4,
        },
        ablations=(
            Ablation("notice-before-drafter", drops=(NOTICES_FOLLOW,)),
            Ablation(_MINUS_ONE, build=partial(_notice_after_drafter, margin=-1)),
        ),
    ),
    Obligation(
        claim="drafter-resident-or-boundary",
        group=GROUP,
        short_name="margin-before-the-drafter",
        sentence="where the notice can reach the worker between target and drafter of the step, "
        "the smallest safe margin is the step's tokens less the look-ahead",
        build=_margin_before_the_drafter,
        witness={
            **_SPAN,
            "num_computed_tokens": 3,
            "num_scheduled_tokens": 4,
            "look_ahead": 1,
            "first_read_after_notice": 4,
        },
        ablations=(
            Ablation("margin-one-less", build=partial(_margin_before_the_drafter, less=1)),
            Ablation("notice-before-target", drops=("notice-follows-the-target",)),
        ),
    ),
    Obligation(
        claim="target-resident",
        group=GROUP,
        short_name="free-before-execution",
        sentence="dropping references right after scheduling, unconfirmed drafts counted as "
        "progress, is safe while features lie in the prompt and notices follow the drafter",
        build=_free_before_execution,
        witness={
            **_SPAN,
            "num_computed_tokens": 5,
            "num_scheduled_tokens": 3,
            "num_drafts_in_flight": 2,
            "num_prompt_tokens": 5,
            "look_ahead": 1,
            "first_read_after_notice": 6,
        },
        ablations=(
            Ablation("features-beyond-prompt", drops=(FEATURES_IN_PROMPT,)),
            Ablation("notice-before-drafter", drops=(NOTICES_FOLLOW,)),
            Ablation(_MINUS_ONE, build=partial(_free_before_execution, margin=-1)),
        ),
    ),
)
