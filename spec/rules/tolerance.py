"""Which missing feature a gather skips without an error (46315)."""

from __future__ import annotations

from spec.algebra import BoolTerm, IntTerm


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
