"""How many tokens of its turn a request runs and emits.

A turn ends at ``limit`` prompt and generated tokens.
"""

from __future__ import annotations

from spec.algebra import BoolTerm, IntTerm, and_, ite, min_


def surely_ends(
    num_computed_tokens: IntTerm, num_output_placeholders: IntTerm, limit: IntTerm
) -> BoolTerm:
    """Whether a step in flight is sure to reach the turn's last token.

    Args:
        num_computed_tokens: progress, tokens in flight included.
        num_output_placeholders: tokens counted in advance.
        limit: prompt and generated tokens at which the turn ends.
    """
    return and_(
        num_output_placeholders > 0,
        num_computed_tokens + 2 - num_output_placeholders >= limit,
    )


def tokens_wanted(
    num_computed_tokens: IntTerm,
    num_known_tokens: IntTerm,
    num_draft_tokens: IntTerm,
    num_output_placeholders: IntTerm,
    limit: IntTerm,
) -> IntTerm:
    """Tokens that a running request would run: those known, drafted or sampled and not computed."""
    return ite(
        surely_ends(num_computed_tokens, num_output_placeholders, limit),
        0,
        num_known_tokens + num_draft_tokens + num_output_placeholders - num_computed_tokens,
    )


def tokens_emitted(num_sampled: IntTerm, num_known_tokens: IntTerm, limit: IntTerm) -> IntTerm:
    """Sampled tokens that are appended: no more than the turn may have."""
    return min_(num_sampled, limit - num_known_tokens)
