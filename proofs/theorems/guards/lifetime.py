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

from functools import partial

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards import margins
from proofs.theorems.guards.scene import (
    FALLS_BY_DRAFTS_ONLY,
    FEATURES_NOT_EMPTY,
    FREED,
    LOOK_AHEAD_NOT_NEGATIVE,
    SORTED_DISJOINT,
    Span,
    a_span,
    counts,
    freed,
    unread_from,
)
from spec.algebra import and_, eq, implies, not_
from spec.rules import free as rules
from spec.rules import geometry

GROUP = "lifetime"

STARTS_LATER = "read-starts-no-earlier"


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


def _shared_entry(v: Vocabulary, first: bool = False) -> Formula:
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


def _encoder_decoder(v: Vocabulary) -> Formula:
    """Only the step that starts at 0 reads the encoder output."""
    span = a_span(v)
    computed, placeholders, margin, start = integers(
        v, "num_computed_tokens num_output_placeholders margin later_start"
    )
    goes = rules.reference_may_go(
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


_SPAN = {"offset": 0, "length": 4}
_FALLS = Ablation("progress-falls", drops=(FALLS_BY_DRAFTS_ONLY,))

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="drop-is-safe-from",
        sentence="a reference dropped at progress x with margin m is safe for every read that "
        "starts at x - m or later",
        build=_drop_is_safe_from,
        witness={
            **_SPAN,
            "num_computed_tokens": 8,
            "num_output_placeholders": 2,
            "margin": 1,
            "later_start": 5,
        },
        ablations=(
            Ablation("starts-earlier", drops=(STARTS_LATER,)),
            Ablation("reference-held", drops=(FREED,)),
        ),
    ),
    Obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="drop-is-unsafe-below",
        sentence="for every later start below x - m there is a feature that was dropped at x with "
        "margin m and is read by the target of that step",
        build=_drop_is_unsafe_below,
        witness={
            "num_computed_tokens": 8,
            "num_output_placeholders": 2,
            "margin": 1,
            "later_start": 4,
            "num_scheduled_tokens": 1,
        },
        ablations=(
            Ablation("starts-later", drops=("starts-below-progress-less-margin",)),
            Ablation("empty-step", drops=("step-not-empty",)),
        ),
    ),
    Obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="nothing-reads-it-later",
        sentence="no step that starts at a feature's end or later reads it, for target and drafter "
        "and every look-ahead of 0 or more",
        build=_nothing_reads_it_later,
        witness={
            **_SPAN,
            "later_start": 4,
            "num_computed_tokens": 5,
            "num_scheduled_tokens": 2,
            "look_ahead": 1,
        },
        ablations=(
            Ablation("drafter-looks-back", drops=(LOOK_AHEAD_NOT_NEGATIVE,)),
            Ablation("starts-earlier", drops=(STARTS_LATER,)),
        ),
    ),
    Obligation(
        claim="held-until-last-use",
        group=GROUP,
        short_name="something-reads-it-otherwise",
        sentence="a feature that ends past the start of a step is read by a step from there to its "
        "end",
        build=_something_reads_it_otherwise,
        witness={**_SPAN, "later_start": 3},
        ablations=(
            Ablation("empty-feature", drops=(FEATURES_NOT_EMPTY,)),
            Ablation("ended-before", drops=("ends-past-later-start",)),
        ),
    ),
    Obligation(
        claim="held-until-last-use",
        group=GROUP,
        short_name="shared-entry-follows-last-occurrence",
        sentence="an entry that one request takes twice is safe to let go with the last taken "
        "occurrence",
        build=_shared_entry,
        witness={
            **_SPAN,
            "last_offset": 4,
            "last_length": 4,
            "num_computed_tokens": 8,
            "later_start": 8,
        },
        ablations=(
            Ablation("dropped-at-first", build=partial(_shared_entry, first=True)),
            Ablation("nested-features", drops=(SORTED_DISJOINT,)),
            _FALLS,
        ),
    ),
    Obligation(
        claim="freed-not-needed",
        group=GROUP,
        short_name="encoder-decoder-after-first-step",
        sentence="an encoder-decoder request may let go exactly when its first step, the only one "
        "that reads the encoder output, cannot come again",
        build=_encoder_decoder,
        witness={
            **_SPAN,
            "num_computed_tokens": 1,
            "num_output_placeholders": 1,
            "margin": 0,
            "later_start": 1,
        },
        ablations=(
            Ablation("starts-again", drops=("progress-does-not-restart",)),
            Ablation("empty-feature", drops=(FEATURES_NOT_EMPTY,)),
        ),
    ),
    *margins.OBLIGATIONS,
)


if __name__ == "__main__":
    main_of_group(GROUP, OBLIGATIONS)
