"""The rules of ``spec/`` with the signatures of the reference's guards.

``crosshair diffbehavior`` draws the arguments of both functions by their signatures, and must find
integers there; a rule takes any term.
"""

from __future__ import annotations

from spec.rules import chunk_ends, free, geometry, tolerance


def reference_may_go(
    end: int, margin: int, num_computed_tokens: int, num_output_placeholders: int
) -> bool:
    """The rule of free for a feature that ends at ``end``."""
    return bool(
        free.may_drop_reference(0, end, num_computed_tokens, num_output_placeholders, margin)
    )


def encoder_decoder_reference_may_go(num_computed_tokens: int) -> bool:
    """The rule of free for encoder-decoder requests."""
    return bool(free.may_drop_encoder_decoder_reference(num_computed_tokens))


def tolerates_miss_v1(offset: int, num_computed_tokens: int, num_scheduled_tokens: int) -> bool:
    """Runner V1's rule of tolerance."""
    return bool(tolerance.miss_tolerated_v1(offset, num_computed_tokens, num_scheduled_tokens))


def tolerates_miss_v2(offset: int, draft_lookahead: int, query_end: int) -> bool:
    """Runner V2's rule of tolerance."""
    return bool(tolerance.miss_tolerated_v2(offset, draft_lookahead, query_end))


def overlaps(offset: int, length: int, start: int, end: int) -> bool:
    """The two-comparison overlap test."""
    return bool(geometry.overlaps(offset, length, start, end))


def ends_inside(start: int, num_tokens: int, offset: int, end: int) -> bool:
    """Whether a chunk ends inside an item that it starts at or before."""
    return bool(chunk_ends.splits_item(offset, end, start, num_tokens))


def slice_bounds(offset: int, length: int, start: int, end: int) -> tuple[int, int]:
    """The bounds of a slice, for any feature and window."""
    low, high = geometry.slice_bounds(offset, length, start, end)
    return int(low), int(high)
