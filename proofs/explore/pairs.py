"""A covering array: few rows in which every two values of different axes meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

Row: TypeAlias = dict[str, str]
"""A value for each axis."""

_Pair: TypeAlias = tuple[tuple[str, str], tuple[str, str]]


def covering_array(axes: Mapping[str, Sequence[str]], given: Sequence[Row] = ()) -> tuple[Row, ...]:
    """Rows such that every two values of different axes meet in one; greedy and deterministic.

    Each row begins with the first pair that is still missing; every other axis then takes the value
    that meets the most missing pairs, the first such value where several do.

    Args:
        axes: values of each axis.
        given: rows to begin with.
    """
    missing: dict[_Pair, None] = {}
    for left, right in combinations(axes, 2):
        for value in axes[left]:
            for right_value in axes[right]:
                missing[(left, value), (right, right_value)] = None
    rows = [{axis: row[axis] for axis in axes} for row in given]
    for row in rows:
        for pair in combinations(row.items(), 2):
            missing.pop(pair, None)
    while missing:
        (left, value), (right, right_value) = next(iter(missing))
        row = {left: value, right: right_value}
        for axis in axes:
            if axis not in row:
                row[axis] = max(axes[axis], key=lambda v: _met(missing, row, (axis, v)))
        ordered = {axis: row[axis] for axis in axes}
        for pair in combinations(ordered.items(), 2):
            missing.pop(pair, None)
        rows.append(ordered)
    return tuple(rows)


def _met(missing: Mapping[_Pair, None], row: Row, item: tuple[str, str]) -> int:
    """How many missing pairs an item makes with a row."""
    return sum((met, item) in missing or (item, met) in missing for met in row.items())
