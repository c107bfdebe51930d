"""The integer guards of the reference implementation.

Written the way an engine writes them: each asks only for the numbers at hand where it is called,
and none is derived from the rules that judge this package. Positions and lengths are in tokens;
ranges are half-open.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


def reference_may_go(
    end: int, margin: int, num_computed_tokens: int, num_output_placeholders: int
) -> bool:
    """Whether progress lets a decoder-only request drop its reference to a feature.

    Args:
        end: the position after the feature (tokens).
        margin: how many tokens past the end progress must be.
        num_computed_tokens: progress, tokens in flight included.
        num_output_placeholders: tokens counted in advance; a rejection takes some of them back
            (pull request 45347).
    """
    return end + margin <= num_computed_tokens - num_output_placeholders


def encoder_decoder_reference_may_go(num_computed_tokens: int) -> bool:
    """Whether an encoder-decoder request may drop its references: its first step has run.

    That step stored the cross-attention keys and values, the only use of the encoder output.
    """
    return num_computed_tokens > 0


def tolerates_miss_v1(offset: int, num_computed_tokens: int, num_scheduled_tokens: int) -> bool:
    """Whether runner V1 skips a missing feature: the target does not process its start (46315)."""
    return offset >= num_computed_tokens + num_scheduled_tokens


def tolerates_miss_v2(offset: int, draft_lookahead: int, query_end: int) -> bool:
    """Runner V2's test; ``query_end`` already contains the look-ahead (46315)."""
    return offset + draft_lookahead >= query_end


def overlaps(offset: int, length: int, start: int, end: int) -> bool:
    """Whether the feature and the window share a position; neither of them is empty."""
    return offset < end and start < offset + length


def slice_bounds(offset: int, length: int, start: int, end: int) -> tuple[int, int]:
    """The feature's positions inside the window, counted from the feature's first one."""
    return max(start - offset, 0), min(end - offset, length)


def ends_inside(start: int, num_tokens: int, offset: int, end: int) -> bool:
    """Whether a chunk ends inside a feature that it starts at or before (52306, 52412)."""
    return start <= offset < start + num_tokens < end


def search_window(
    offsets: Sequence[int], ends: Sequence[int], start: int, end: int
) -> tuple[int, int]:
    """Indices ``[low, high)`` of the features that meet the window ``[start, end)``.

    Args:
        offsets: first positions of the features, ascending.
        ends: positions after the features, ascending: features do not nest.
        start: first position of the window.
        end: position after the window.
    """
    return bisect_right(ends, start), bisect_left(offsets, end)


def rows_in_range(rows_before: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Encoder rows ``[low, high)`` of a feature's positions ``[start, end)``.

    Args:
        rows_before: for each of the ``length + 1`` places between positions, how many rows lie
            before it. The leading 0 makes empty ranges come out empty, at the start too.
        start: first position, counted from the feature's first one.
        end: position after the last.
    """
    return rows_before[start], rows_before[end]
