"""When *free* lets a request's reference to a feature go."""

from __future__ import annotations

from spec.algebra import BoolTerm, IntTerm, and_, or_


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


def cannot_be_read_from(offset: IntTerm, length: IntTerm, first_position: IntTerm) -> BoolTerm:
    """Whether no read that starts at ``first_position`` or later can touch the feature."""
    return offset + length <= first_position
