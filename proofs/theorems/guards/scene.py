"""The variables that most formulas share: one step of one request, and one of its features."""

from __future__ import annotations

from dataclasses import dataclass

from proofs.smt.vocabulary import Vocabulary, integers
from spec.algebra import BoolTerm, IntTerm, and_
from spec.claims.predicates import Chunk
from spec.rules import free, geometry, tolerance
from spec.rules.geometry import Window, drafter_window, processed_end, target_window

LOOK_AHEAD_NOT_NEGATIVE = "look-ahead-not-negative"
FREED = "reference-dropped"
STEP_NOT_EMPTY = "step-not-empty"
FEATURES_NOT_EMPTY = "features-not-empty"
SORTED_DISJOINT = "features-sorted-disjoint"
FEATURES_IN_PROMPT = "features-in-prompt"
HASH_IS_CONTENT = "hash-is-content"
DRAFTS_ARE_PLACEHOLDERS = "drafts-are-placeholders"
FALLS_BY_DRAFTS_ONLY = "progress-falls-by-drafts-only"
NOTICES_FOLLOW = "notices-follow-the-drafter"


@dataclass(frozen=True)
class Step:
    """One step of a request and the reader's look-ahead (tokens)."""

    computed: IntTerm
    scheduled: IntTerm
    look_ahead: IntTerm

    @property
    def end(self) -> IntTerm:
        """The processed end."""
        return processed_end(self.computed, self.scheduled)

    @property
    def target(self) -> Window:
        """What the target reads."""
        return target_window(self.computed, self.scheduled)

    @property
    def chunk(self) -> Chunk:
        """The step as claims look at it."""
        return Chunk(self.computed, self.end, self.look_ahead)

    @property
    def drafter(self) -> Window:
        """What the drafter reads."""
        return drafter_window(self.computed, self.scheduled, self.look_ahead)

    @property
    def clamped(self) -> Window:
        """The drafter's window cut off at the processed end, which no look-ahead below 0 needs."""
        return self.drafter[0], self.end


@dataclass(frozen=True)
class Span:
    """The positions of a feature (tokens)."""

    offset: IntTerm
    length: IntTerm

    @property
    def end(self) -> IntTerm:
        """The position after the last."""
        return self.offset + self.length

    def has_row_in(self, start: IntTerm, end: IntTerm) -> BoolTerm:
        """Whether a position of ``[start, end)`` lies in the feature, which has no mask."""
        return geometry.meets(self.offset, self.length, start, end)


def a_step(v: Vocabulary) -> Step:
    """A step of a request."""
    return Step(*integers(v, "num_computed_tokens num_scheduled_tokens look_ahead"))


def a_span(v: Vocabulary) -> Span:
    """A feature."""
    return Span(*integers(v, "offset length"))


def counts(*terms: IntTerm) -> BoolTerm:
    """None of the integers is negative."""
    return and_(*(term >= 0 for term in terms))


def realistic(span: Span, step: Step) -> BoolTerm:
    """A feature and a step as an engine has them."""
    return and_(
        counts(span.offset, step.computed, step.look_ahead), span.length >= 1, step.scheduled >= 1
    )


def inside(position: IntTerm, window: Window) -> BoolTerm:
    """Whether the position lies in the window."""
    return and_(window[0] <= position, position < window[1])


def at_boundary(span: Span, step: Step) -> BoolTerm:
    """Whether the feature lies at the step's boundary."""
    processed_to = geometry.processed_end(step.computed, step.scheduled)
    return geometry.is_at_boundary(span.offset, processed_to)


def tolerated(span: Span, step: Step) -> BoolTerm:
    """Whether a miss of the feature is tolerated in the step."""
    return tolerance.miss_tolerated_v1(span.offset, step.computed, step.scheduled)


def reads(span: Span, window: Window) -> BoolTerm:
    """Whether a gather of the window reads the dense feature."""
    return geometry.meets(span.offset, span.length, *window)


def freed(span: Span, computed: IntTerm, placeholders: IntTerm, margin: IntTerm) -> BoolTerm:
    """Whether a decoder-only request may drop its reference."""
    return free.reference_may_go(
        span.offset, span.length, computed, placeholders, margin, is_encoder_decoder=False
    )


def unread_from(span: Span, start: IntTerm) -> BoolTerm:
    """Whether no read that starts there or later can touch the feature."""
    return free.cannot_be_read_from(span.offset, span.length, start)


PREFILL_WITNESS = {"num_computed_tokens": 0, "num_scheduled_tokens": 4, "look_ahead": 1}
AT_BOUNDARY_WITNESS = {**PREFILL_WITNESS, "offset": 4, "length": 4}
INTERIOR_WITNESS = {**PREFILL_WITNESS, "offset": 2, "length": 4}
