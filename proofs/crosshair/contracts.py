"""Contracts on the reference's integer guards, in the form that CrossHair checks.

Each function asks a guard of the reference and says after ``post:`` what the rule of ``spec/``
answers, for all integers that satisfy ``pre:``.
"""

from __future__ import annotations

from impl.reference.scheduling import guards
from spec.rules import chunk_ends, geometry  # noqa: F401 -- named in the contracts
from spec.rules.free import (  # noqa: F401 -- named in the contracts
    may_drop_encoder_decoder_reference,
    may_drop_reference,
)
from spec.rules.tolerance import (  # noqa: F401 -- named in the contracts
    miss_tolerated_v1,
    miss_tolerated_v2,
)


def free(offset: int, length: int, margin: int, computed: int, placeholders: int) -> bool:
    """The reference may go exactly when the rule says so.

    post: _ == may_drop_reference(offset, length, computed, placeholders, margin)
    """
    return guards.reference_may_go(offset + length, margin, computed, placeholders)


def free_encoder_decoder(computed: int) -> bool:
    """The encoder-decoder reference may go exactly when the rule says so.

    post: _ == may_drop_encoder_decoder_reference(computed)
    """
    return guards.encoder_decoder_reference_may_go(computed)


def tolerance_v1(offset: int, computed: int, scheduled: int) -> bool:
    """Runner V1 tolerates a miss exactly when the rule says so.

    post: _ == miss_tolerated_v1(offset, computed, scheduled)
    """
    return guards.tolerates_miss_v1(offset, computed, scheduled)


def tolerance_v2(offset: int, look_ahead: int, query_end: int) -> bool:
    """Runner V2 tolerates a miss exactly when the rule says so.

    post: _ == miss_tolerated_v2(offset, look_ahead, query_end)
    """
    return guards.tolerates_miss_v2(offset, look_ahead, query_end)


def overlap(offset: int, length: int, start: int, end: int) -> bool:
    """Feature and window overlap exactly when they share a position.

    pre: length >= 1
    pre: start < end
    post: _ == geometry.meets(offset, length, start, end)
    """
    return guards.overlaps(offset, length, start, end)


def slice_bounds(offset: int, length: int, start: int, end: int) -> tuple[int, int]:
    """The slice has the rule's bounds, and is not empty where feature and window overlap.

    pre: length >= 1
    pre: start < end
    pre: geometry.overlaps(offset, length, start, end)
    post: _ == geometry.slice_bounds(offset, length, start, end)
    post: 0 <= _[0] < _[1] <= length
    """
    return guards.slice_bounds(offset, length, start, end)


def split_item(start: int, num_tokens: int, offset: int, end: int) -> bool:
    """A chunk splits an item exactly if it holds its first position and not its last.

    pre: num_tokens >= 1 and offset < end
    post: _ == chunk_ends.splits_item(offset, end, start, num_tokens)
    """
    return guards.ends_inside(start, num_tokens, offset, end)


def window_search(
    a_offset: int, a_length: int, gap: int, b_length: int, start: int, end: int
) -> tuple[int, int]:
    """Of two sorted, disjoint features the search finds exactly those that meet the window.

    pre: a_length >= 1 and gap >= 0 and b_length >= 1
    pre: start < end
    post: (_[0] <= 0 < _[1]) == geometry.meets(a_offset, a_length, start, end)
    post: (_[0] <= 1 < _[1]) == geometry.meets(a_offset + a_length + gap, b_length, start, end)
    """
    a_end = a_offset + a_length
    b_offset = a_end + gap
    return guards.search_window((a_offset, b_offset), (a_end, b_offset + b_length), start, end)


def row_range(first: bool, second: bool, third: bool, start: int, end: int) -> tuple[int, int]:
    """The rows of a range of positions of a mask equal counting.

    pre: 0 <= start <= end <= 3
    post: _[0] == geometry.count_rows_before((first, second, third), start)
    post: _[1] == geometry.count_rows_before((first, second, third), end)
    """
    rows_before = (0, int(first), int(first) + int(second), int(first) + int(second) + int(third))
    return guards.rows_in_range(rows_before, start, end)
