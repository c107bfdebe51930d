"""Windows of token positions and how features lie in them.

All functions are rules over :mod:`spec.algebra`: integers in, integers or truth values out, on
Python numbers and solver terms alike. Positions are token indices within one request; a range
``[start, end)`` never includes its end. Symbols follow the engine: ``num_computed_tokens`` is the
progress at the start of a step, ``num_scheduled_tokens`` the tokens that the step runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spec.algebra import BoolTerm, IntTerm, and_, max_, min_

Window = tuple[IntTerm, IntTerm]
"""A half-open range of token positions."""


def processed_end(num_computed_tokens: IntTerm, num_scheduled_tokens: IntTerm) -> IntTerm:
    """The first position that the target has not processed when the step ends."""
    return num_computed_tokens + num_scheduled_tokens


def target_window(num_computed_tokens: IntTerm, num_scheduled_tokens: IntTerm) -> Window:
    """Positions whose embeddings the target model reads in one step."""
    return num_computed_tokens, processed_end(num_computed_tokens, num_scheduled_tokens)


def drafter_window(
    num_computed_tokens: IntTerm, num_scheduled_tokens: IntTerm, look_ahead: IntTerm
) -> Window:
    """Positions whose embeddings the drafter reads: the target's, ``look_ahead`` tokens further."""
    start, end = target_window(num_computed_tokens, num_scheduled_tokens)
    return start + look_ahead, end + look_ahead


def meets(offset: IntTerm, length: IntTerm, start: IntTerm, end: IntTerm) -> BoolTerm:
    """Whether the feature ``[offset, offset + length)`` and the range share a position.

    This is overlap as a person counts it, right for empty features and empty ranges too: the
    intersection of the two is not empty.
    """
    return max_(offset, start) < min_(offset + length, end)


def overlaps(offset: IntTerm, length: IntTerm, start: IntTerm, end: IntTerm) -> BoolTerm:
    """The two-comparison overlap test of an engine.

    Equal to :func:`meets` when neither the feature nor the range is empty (theorem
    ``window.overlap-is-meeting``); an empty feature strictly inside the range passes it.
    """
    return and_(offset < end, start < offset + length)


def selected_by_window_search(
    offset: IntTerm, length: IntTerm, start: IntTerm, end: IntTerm
) -> BoolTerm:
    """Whether two bisections over sorted, disjoint features keep this one.

    One bisection drops the features that end at or before ``start``, the other those that begin at
    or after ``end``.
    """
    return and_(offset + length >= start + 1, offset < end)


def is_at_boundary(offset: IntTerm, processed_to: IntTerm) -> BoolTerm:
    """Whether the feature starts at or past the processed end: only the drafter can reach it."""
    return offset >= processed_to


def slice_bounds(offset: IntTerm, length: IntTerm, start: IntTerm, end: IntTerm) -> Window:
    """The part of a feature inside ``[start, end)``, counted from the feature's first position."""
    return max_(start - offset, 0), min_(end - offset, length)


def row_range(rows_before: Callable[[IntTerm], IntTerm], start: IntTerm, end: IntTerm) -> Window:
    """Encoder rows that the feature's positions ``[start, end)`` take.

    Args:
        rows_before: how many positions before the given one (counted from the feature's first
            position) take a row. It is the identity for a feature without a mask.
        start: first position, from the feature's first position.
        end: position after the last.
    """
    return rows_before(start), rows_before(end)


def count_rows_before(is_embed: Sequence[bool] | None, position: int) -> int:
    """How many of a feature's first ``position`` positions take an encoder row, by counting.

    ``is_embed`` of ``None`` means that every position does. This is the row index of ``position``
    itself where that position takes a row.
    """
    if is_embed is None:
        return position
    return sum(1 for takes_row in is_embed[:position] if takes_row)
