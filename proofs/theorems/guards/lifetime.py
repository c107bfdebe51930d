"""Lifetime: when a reference may go, and the smallest margin that is safe under each assumption.

Settles the first question from the review of pull request 46315, whether the deferred free is
needed for safety. With progress ``x = computed - placeholders``, a reference dropped with margin
``m`` is safe for every target and drafter read that starts at ``b`` or later if and only if
``x - m <= b`` (``lifetime.drop-is-safe-from``, ``lifetime.drop-is-unsafe-below``). So the smallest
safe margin is ``max(0, x - b)`` for the lowest ``b`` that is reachable, and the look-ahead does not
enter, for a drafter reads no earlier than the target:

* 0 where progress never goes back below ``x`` (``margin-zero-without-rollback``), which holds where
  every draft in flight is a placeholder (``margin-zero-with-placeholders``);
* the excess of drafts in flight over placeholders, otherwise (``margin-is-uncounted-drafts``);
* 0 even if placeholders are ignored, while features lie in the prompt
  (``placeholders-needless-in-prompt``, ``free-before-execution``);
* 0 where notices reach the worker after the drafter of the step (``notice-after-drafter``), and the
  step's tokens less the look-ahead where they reach it before (``margin-before-the-drafter``).

A margin of -1 is unsafe in each of the cases where 0 is safe, and one less than the margin named in
the others: these are ablations.
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import (
    DRAFTS_ARE_PLACEHOLDERS,
    FALLS_BY_DRAFTS_ONLY,
    FEATURES_IN_PROMPT,
    FEATURES_NOT_EMPTY,
    FREED,
    LOOK_AHEAD_NOT_NEGATIVE,
    NOTICES_FOLLOW,
    SORTED_DISJOINT,
    Span,
    a_span,
    counts,
    freed,
    unread_from,
)
from spec.algebra import and_, eq, implies, max_, not_
from spec.rules import free, geometry

GROUP = Group("lifetime")

STARTS_LATER = "read-starts-no-earlier"


_SPAN = {"offset": 0, "length": 4}


@theorem(
    GROUP,
    claim="freed-not-needed",
    sentence="a reference dropped at progress x with margin m is safe for every read that "
    "starts at x - m or later",
    witness={
        **_SPAN,
        "num_computed_tokens": 8,
        "num_output_placeholders": 2,
        "margin": 1,
        "later_start": 5,
    },
    ablations=(without("starts-earlier", STARTS_LATER), without("reference-held", FREED)),
)
def _drop_is_safe_from(v: Vocabulary) -> Formula:
    span = a_span(v)
    computed, placeholders, margin, start = integers(
        v, "num_computed_tokens num_output_placeholders margin later_start"
    )
    return Formula(
        {
            FREED: freed(span, computed, placeholders, margin),
            STARTS_LATER: computed - placeholders - margin <= start,
        },
        unread_from(span, start),
        counts(span.offset, span.length, placeholders, computed - placeholders, start),
    )


@theorem(
    GROUP,
    claim="freed-not-needed",
    sentence="for every later start below x - m there is a feature that was dropped at x with "
    "margin m and is read by the target of that step",
    witness={
        "num_computed_tokens": 8,
        "num_output_placeholders": 2,
        "margin": 1,
        "later_start": 4,
        "num_scheduled_tokens": 1,
    },
    ablations=(
        without("starts-later", "starts-below-progress-less-margin"),
        without("empty-step", "step-not-empty"),
    ),
)
def _drop_is_unsafe_below(v: Vocabulary) -> Formula:
    """The feature that shows it spans from the later start to the last token that may be let go."""
    computed, placeholders, margin, start = integers(
        v, "num_computed_tokens num_output_placeholders margin later_start"
    )
    scheduled = v.integer("num_scheduled_tokens")
    span = Span(start, computed - placeholders - margin - start)
    window = geometry.target_window(start, scheduled)
    return Formula(
        {
            "step-not-empty": scheduled >= 1,
            "starts-below-progress-less-margin": start < computed - placeholders - margin,
        },
        and_(
            freed(span, computed, placeholders, margin),
            geometry.meets(span.offset, span.length, *window),
            not_(unread_from(span, start)),
        ),
        counts(placeholders, computed - placeholders, start),
    )


@theorem(
    GROUP,
    claim="freed-not-needed",
    sentence="no step that starts at a feature's end or later reads it, for target and drafter "
    "and every look-ahead of 0 or more",
    witness={
        **_SPAN,
        "later_start": 4,
        "num_computed_tokens": 5,
        "num_scheduled_tokens": 2,
        "look_ahead": 1,
    },
    ablations=(
        without("drafter-looks-back", LOOK_AHEAD_NOT_NEGATIVE),
        without("starts-earlier", STARTS_LATER),
    ),
)
def _nothing_reads_it_later(v: Vocabulary) -> Formula:
    span = a_span(v)
    start, later, scheduled, look_ahead = integers(
        v, "later_start num_computed_tokens num_scheduled_tokens look_ahead"
    )
    target = geometry.target_window(later, scheduled)
    drafter = geometry.drafter_window(later, scheduled, look_ahead)
    return Formula(
        {
            "ends-by-later-start": unread_from(span, start),
            STARTS_LATER: start <= later,
            LOOK_AHEAD_NOT_NEGATIVE: look_ahead >= 0,
        },
        and_(
            not_(geometry.meets(span.offset, span.length, *target)),
            not_(geometry.meets(span.offset, span.length, *drafter)),
        ),
        counts(span.offset, span.length, start, later, scheduled),
    )


@theorem(
    GROUP,
    claim="held-until-last-use",
    sentence="a feature that ends past the start of a step is read by a step from there to its end",
    witness={**_SPAN, "later_start": 3},
    ablations=(
        without("empty-feature", FEATURES_NOT_EMPTY),
        without("ended-before", "ends-past-later-start"),
    ),
)
def _something_reads_it_otherwise(v: Vocabulary) -> Formula:
    """The step that shows it runs from the later start to the feature's end."""
    span = a_span(v)
    start = v.integer("later_start")
    return Formula(
        {
            FEATURES_NOT_EMPTY: span.length >= 1,
            "ends-past-later-start": not_(unread_from(span, start)),
        },
        geometry.meets(
            span.offset,
            span.length,
            *geometry.target_window(start, span.offset + span.length - start),
        ),
        counts(span.offset, span.length, start),
    )


_FALLS = without("progress-falls", FALLS_BY_DRAFTS_ONLY)


@theorem(
    GROUP,
    claim="held-until-last-use",
    sentence="an entry that one request takes twice is safe to let go with the last taken "
    "occurrence",
    witness={
        **_SPAN,
        "last_offset": 4,
        "last_length": 4,
        "num_computed_tokens": 8,
        "later_start": 8,
    },
    ablations=(
        changed("dropped-at-first", first=True),
        without("nested-features", SORTED_DISJOINT),
        _FALLS,
    ),
)
def _shared_entry_follows_last_occurrence(v: Vocabulary, first: bool = False) -> Formula:
    """One request takes a hash twice; the entry goes when one of the occurrences may go."""
    left = a_span(v)
    right = Span(*integers(v, "last_offset last_length"))
    computed, start = integers(v, "num_computed_tokens later_start")
    return Formula(
        {
            "counts-not-negative": counts(
                left.offset, left.length, right.offset, right.length, computed, start
            ),
            SORTED_DISJOINT: left.end <= right.offset,
            FREED: freed(left if first else right, computed, 0, 0),
            FALLS_BY_DRAFTS_ONLY: computed <= start,
        },
        and_(unread_from(left, start), unread_from(right, start)),
        and_(left.length >= 1, right.length >= 1, left.offset <= right.offset),
    )


@theorem(
    GROUP,
    claim="freed-not-needed",
    sentence="an encoder-decoder request may let go exactly when its first step, the only one "
    "that reads the encoder output, cannot come again",
    witness={
        **_SPAN,
        "num_computed_tokens": 1,
        "num_output_placeholders": 1,
        "margin": 0,
        "later_start": 1,
    },
    ablations=(
        without("starts-again", "progress-does-not-restart"),
        without("empty-feature", FEATURES_NOT_EMPTY),
    ),
)
def _encoder_decoder_after_first_step(v: Vocabulary) -> Formula:
    """Only the step that starts at 0 reads the encoder output."""
    span = a_span(v)
    computed, placeholders, margin, start = integers(
        v, "num_computed_tokens num_output_placeholders margin later_start"
    )
    goes = free.reference_may_go(
        span.offset, span.length, computed, placeholders, margin, is_encoder_decoder=True
    )
    return Formula(
        {
            "counts-not-negative": counts(
                span.offset, span.length, computed, placeholders, margin, start
            ),
            FEATURES_NOT_EMPTY: span.length >= 1,
            "progress-does-not-restart": computed <= start,
        },
        and_(implies(goes, not_(eq(start, 0))), implies(computed >= 1, goes)),
    )


# Margins: the smallest safe margin of *free* under each assumption.
#
# The second part of group ``lifetime``; see :mod:`proofs.theorems.guards.lifetime`.


DRAFTING_PAST_PROMPT = "drafting-begins-at-prompt-end"
_MINUS_ONE = "margin-minus-one"


@theorem(
    GROUP,
    claim="freed-not-needed",
    sentence="margin 0 is safe, and the smallest, where progress never goes back below x",
    witness={**_SPAN, "num_computed_tokens": 6, "num_output_placeholders": 2, "later_start": 4},
    ablations=(_FALLS, changed(_MINUS_ONE, margin=-1)),
)
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


@theorem(
    GROUP,
    claim="freed-not-needed",
    sentence="margin 0 is safe, and the smallest, where progress goes back by the drafts in "
    "flight and each of them is a placeholder",
    witness={
        **_SPAN,
        "num_computed_tokens": 6,
        "num_output_placeholders": 2,
        "num_drafts_in_flight": 1,
        "later_start": 5,
    },
    ablations=(
        without("drafts-not-counted", DRAFTS_ARE_PLACEHOLDERS),
        _FALLS,
        changed(_MINUS_ONE, margin=-1),
    ),
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


@theorem(
    GROUP,
    claim="freed-not-needed",
    sentence="where progress goes back by the drafts in flight, the smallest safe margin is "
    "the excess of drafts in flight over placeholders",
    witness={
        **_SPAN,
        "num_computed_tokens": 6,
        "num_output_placeholders": 0,
        "num_drafts_in_flight": 2,
        "later_start": 4,
    },
    ablations=(_FALLS, changed("margin-one-less", less=1)),
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


@theorem(
    GROUP,
    claim="freed-not-needed",
    sentence="margin 0 is safe, and the smallest, even if placeholders are ignored, while "
    "features lie in the prompt, where nothing is drafted",
    witness={
        **_SPAN,
        "num_computed_tokens": 7,
        "num_drafts_in_flight": 2,
        "num_prompt_tokens": 5,
        "later_start": 5,
    },
    ablations=(
        without("features-beyond-prompt", FEATURES_IN_PROMPT),
        without("drafts-in-prompt", DRAFTING_PAST_PROMPT),
        _FALLS,
        changed(_MINUS_ONE, margin=-1),
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


@theorem(
    GROUP,
    claim="drafter-resident-or-boundary",
    sentence="margin 0 is safe, and the smallest, for a reference dropped as soon as its step "
    "is scheduled, if the notice reaches the worker after that step's drafter and the next "
    "read starts no earlier than the step's end",
    witness={
        **_SPAN,
        "num_computed_tokens": 0,
        "num_scheduled_tokens": 4,
        "look_ahead": 1,
        "first_read_after_notice": 4,
    },
    ablations=(without("notice-before-drafter", NOTICES_FOLLOW), changed(_MINUS_ONE, margin=-1)),
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


@theorem(
    GROUP,
    claim="drafter-resident-or-boundary",
    sentence="where the notice can reach the worker between target and drafter of the step, "
    "the smallest safe margin is the step's tokens less the look-ahead",
    witness={
        **_SPAN,
        "num_computed_tokens": 3,
        "num_scheduled_tokens": 4,
        "look_ahead": 1,
        "first_read_after_notice": 4,
    },
    ablations=(
        changed("margin-one-less", less=1),
        without("notice-before-target", "notice-follows-the-target"),
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


@theorem(
    GROUP,
    claim="target-resident",
    sentence="dropping references right after scheduling, unconfirmed drafts counted as "
    "progress, is safe while features lie in the prompt and notices follow the drafter",
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
        without("features-beyond-prompt", FEATURES_IN_PROMPT),
        without("notice-before-drafter", NOTICES_FOLLOW),
        changed(_MINUS_ONE, margin=-1),
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


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
