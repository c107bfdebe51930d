"""Every guard of the protocol, once.

Written over :mod:`spec.algebra`, so that the same text is the oracle of the tests, the subject of
the proofs and the yardstick for the real source. A test walks this file's syntax tree and refuses
any construct that would ask a solver term for its truth value.
"""

from __future__ import annotations

from spec.algebra import BoolTerm, IntTerm, and_, or_
from spec.rules.geometry import is_boundary, meets


def confirmed_progress(num_computed_tokens: IntTerm, num_output_placeholders: IntTerm) -> IntTerm:
    """Tokens known to be computed: what is counted, less what was only counted in advance.

    An asynchronous scheduler counts the tokens that a step in flight will sample as computed; they
    are the placeholders (pull request 45347).
    """
    return num_computed_tokens - num_output_placeholders


def may_drop_reference(
    offset: IntTerm,
    length: IntTerm,
    num_computed_tokens: IntTerm,
    num_output_placeholders: IntTerm,
    margin: IntTerm,
) -> BoolTerm:
    """Whether progress lets a decoder-only request drop its reference to a feature.

    Args:
        offset: the feature's first position (tokens).
        length: the feature's length (tokens).
        num_computed_tokens: progress of the request, in-flight tokens included (tokens).
        num_output_placeholders: tokens counted in advance (tokens).
        margin: how many tokens past the feature's end progress must be. 0 suffices while progress
            never falls below ``num_computed_tokens - num_output_placeholders`` (theorem
            ``lifetime.margin-zero-without-rollback``); releases 0.24 to 0.32 used 1 or the
            drafter's look-ahead (pull request 46315).
    """
    progress = confirmed_progress(num_computed_tokens, num_output_placeholders)
    return offset + length + margin <= progress


def may_drop_encoder_decoder_reference(num_computed_tokens: IntTerm) -> BoolTerm:
    """Whether an encoder-decoder request may drop its reference: its first step has run.

    The first step stores the cross-attention keys and values, and nothing reads the encoder output
    again.
    """
    return num_computed_tokens > 0


def reference_may_go(
    offset: IntTerm,
    length: IntTerm,
    num_computed_tokens: IntTerm,
    num_output_placeholders: IntTerm,
    margin: IntTerm,
    is_encoder_decoder: BoolTerm,
) -> BoolTerm:
    """The whole rule of *free*: the encoder-decoder form or the margin form."""
    return or_(
        and_(is_encoder_decoder, may_drop_encoder_decoder_reference(num_computed_tokens)),
        may_drop_reference(offset, length, num_computed_tokens, num_output_placeholders, margin),
    )


def miss_tolerated_v1(
    offset: IntTerm, num_computed_tokens: IntTerm, num_scheduled_tokens: IntTerm
) -> BoolTerm:
    """Runner V1's test whether a missing feature is skipped without an error (46315)."""
    return offset >= num_computed_tokens + num_scheduled_tokens


def miss_tolerated_v2(offset: IntTerm, draft_lookahead: IntTerm, shifted_end: IntTerm) -> BoolTerm:
    """Runner V2's form of the same test (46315).

    Args:
        offset: the feature's first position (tokens).
        draft_lookahead: how far the drafter reads ahead (tokens); 0 for the target's own gather.
        shifted_end: end of the window that is gathered, look-ahead included (tokens).
    """
    return offset + draft_lookahead >= shifted_end


def read_is_safe(
    resident: BoolTerm,
    offset: IntTerm,
    num_computed_tokens: IntTerm,
    num_scheduled_tokens: IntTerm,
) -> BoolTerm:
    """The invariant at one feature that the drafter reads: resident, or at the boundary."""
    return or_(resident, is_boundary(offset, num_computed_tokens, num_scheduled_tokens))


def selected_by_window_search(
    offset: IntTerm, length: IntTerm, start: IntTerm, end: IntTerm
) -> BoolTerm:
    """Whether two bisections over sorted, disjoint features keep this one.

    One bisection drops the features that end at or before ``start``, the other those that begin at
    or after ``end``.
    """
    return and_(offset + length >= start + 1, offset < end)


def is_read(offset: IntTerm, length: IntTerm, start: IntTerm, end: IntTerm) -> BoolTerm:
    """Whether a dense feature is selected by a gather of the window ``[start, end)``."""
    return meets(offset, length, start, end)


def cannot_be_read_from(offset: IntTerm, length: IntTerm, first_position: IntTerm) -> BoolTerm:
    """Whether no read that starts at ``first_position`` or later can touch the feature."""
    return offset + length <= first_position
