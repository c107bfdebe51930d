"""Features of a request laid out for fast questions: which rows does a window read, and where."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TypeAlias

from spec.record.feature import Feature

Segment: TypeAlias = tuple[int, int, int]
"""Consecutive positions that take rows: first position, its row, and how many."""


class FeatureLayout:
    """One feature as runs of positions that take rows, so that no position is looked at alone.

    Attributes:
        index: index of the feature in its request.
        offset: first position (tokens).
        end: position after the last (tokens).
        identifier: its hash.
        content: what the hash stands for.
        num_rows: rows of its encoder output.
        last_row_position: the last position that takes a row; -1 where none does.
    """

    __slots__ = (
        "_ends",
        "_rows",
        "_starts",
        "content",
        "end",
        "identifier",
        "index",
        "last_row_position",
        "num_rows",
        "offset",
    )

    def __init__(self, index: int, feature: Feature, content: str) -> None:
        self.index = index
        self.offset = feature.offset
        self.end = feature.end
        self.identifier = feature.identifier
        self.content = content
        self.num_rows = feature.num_rows
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._rows: list[int] = []
        self._find_runs(feature)
        self.last_row_position = self._ends[-1] - 1 if self._ends else -1

    def _find_runs(self, feature: Feature) -> None:
        mask = feature.is_embed
        if mask is None:
            mask = (True,) if feature.length else ()
        row = 0
        for place, takes_row in enumerate(mask):
            if not takes_row:
                continue
            position = feature.offset + place
            if self._ends and self._ends[-1] == position:
                self._ends[-1] = position + 1
            else:
                self._starts.append(position)
                self._ends.append(position + 1)
                self._rows.append(row)
            row += 1
        if feature.is_embed is None and self._ends:
            self._ends[-1] = feature.end

    def has_row_in(self, start: int, end: int) -> bool:
        """Whether any position of ``[start, end)`` takes a row."""
        run = bisect_right(self._ends, start)
        return start < end and run < len(self._starts) and self._starts[run] < end

    def segments(self, start: int, end: int) -> list[Segment]:
        """The runs of rows in ``[start, end)``, in order of positions."""
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        found = []
        for run in range(first, last):
            low = max(start, self._starts[run])
            high = min(end, self._ends[run])
            if low < high:
                found.append((low, self._rows[run] + low - self._starts[run], high - low))
        return found

    def describe(self) -> str:
        """The feature as a person writes it: ``A[4,8)``."""
        return f"{self.identifier}[{self.offset},{self.end})"


class RequestLayout:
    """The features of one request, sorted by offset and disjoint."""

    __slots__ = ("_ends", "features", "last_end")

    def __init__(self, features: Sequence[FeatureLayout] = ()) -> None:
        self.features = list(features)
        self._ends = [feature.end for feature in features]
        self.last_end = self._ends[-1] if self._ends else 0

    def extend(self, features: Sequence[FeatureLayout]) -> None:
        """Add the features of the request's next turn."""
        self.features += features
        self._ends += [feature.end for feature in features]
        if self._ends:
            self.last_end = self._ends[-1]

    def meeting(self, start: int, end: int) -> list[FeatureLayout]:
        """Features that share a position with ``[start, end)``, in order."""
        if start >= self.last_end:
            return []
        found = []
        for index in range(bisect_right(self._ends, start), len(self.features)):
            feature = self.features[index]
            if feature.offset >= end:
                break
            found.append(feature)
        return found
