"""Rows that a gather returns, as runs: how they are joined, compared and written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from spec.history.layout import FeatureLayout
from spec.record.steps import Read

Reader: TypeAlias = Literal["target", "drafter"]
Row: TypeAlias = tuple[int, int, int]
"""Rows of an encoding: its number, the first row, how many."""
Placed: TypeAlias = tuple[int, int, int, int]
"""The same with the flattened position of the first of them at the end."""
Ranges: TypeAlias = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ReadFeature:
    """A feature with a row in a reader's window.

    Attributes:
        request: the request.
        feature: the feature.
        boundary: whether it starts at or past the processed end.
        start: start of the window (tokens).
        end: end of the window (tokens).
        base: flattened position of the window's start.
    """

    request: int
    feature: FeatureLayout
    boundary: bool
    start: int
    end: int
    base: int

    def placed(self, encoding: int) -> list[Placed]:
        """Its rows in the window, each run with its flattened position."""
        shift = self.base - self.start
        return [
            (encoding, row, count, position + shift)
            for position, row, count in self.feature.segments(self.start, self.end)
        ]

    def describe(self) -> str:
        """The feature and who reads it."""
        return f"request {self.request}, feature {self.feature.describe()}"


def join_rows(rows: Iterable[Row]) -> list[Row]:
    """Join consecutive rows of one encoding."""
    joined: list[Row] = []
    for encoding, first, count in rows:
        if not count:
            continue
        if joined:
            last_encoding, start, num_rows = joined[-1]
            if last_encoding == encoding and start + num_rows == first and encoding >= 0:
                joined[-1] = (encoding, start, num_rows + count)
                continue
        joined.append((encoding, first, count))
    return joined


def join_placed(runs: Iterable[Placed]) -> list[Placed]:
    """Join runs whose rows and positions both follow on."""
    joined: list[Placed] = []
    for encoding, first, count, position in runs:
        if not count:
            continue
        if joined:
            last_encoding, start, num_rows, place = joined[-1]
            follows = start + num_rows == first and place + num_rows == position
            if last_encoding == encoding and follows:
                joined[-1] = (encoding, start, num_rows + count, place)
                continue
        joined.append((encoding, first, count, position))
    return joined


def join_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Join ranges that touch."""
    joined: Ranges = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        elif start < end:
            joined.append((start, end))
    return joined


def returned_rows(read: Read) -> list[Row]:
    """The rows as returned, neighbours joined."""
    return join_rows((run.encoding, run.first_row, run.num_rows) for run in read.rows)


def positions_of(placed: Iterable[Placed]) -> Ranges:
    """Flattened positions that take a row, neighbours joined."""
    return join_ranges((position, position + count) for _, _, count, position in placed)


def rows_of(placed: Iterable[Placed]) -> list[Row]:
    """The rows without their positions, neighbours joined."""
    return join_rows(run[:3] for run in placed)


def write_rows(rows: Iterable[Row]) -> str:
    """Rows as a person reads them."""
    runs = [f"{first}..{first + n - 1} of encoding {number}" for number, first, n in rows]
    return ", ".join(runs) or "none"


def write_ranges(ranges: Iterable[tuple[int, int]]) -> str:
    """Half-open ranges as a person reads them."""
    return " ".join(f"[{start},{end})" for start, end in ranges) or "none"


def single_rows(rows: Iterable[Row]) -> Iterable[tuple[int, int]]:
    """Each row with its encoding."""
    for encoding, first, count in rows:
        for row in range(first, first + count):
            yield encoding, row


def ranges_meet(ranges: Ranges, others: Ranges) -> bool:
    """Whether two sets of ranges share a position."""
    return any(a < d and c < b for a, b in ranges for c, d in others)


def write_placed(placed: list[Placed]) -> str:
    """Rows and their positions as a person reads them."""
    runs = [
        f"{write_rows([(encoding, first, count)])} at {position}"
        for encoding, first, count, position in placed
    ]
    return ", ".join(runs) or "no rows"
