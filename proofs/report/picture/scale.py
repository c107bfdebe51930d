"""Where token positions lie across a picture: all alike, or long stretches shortened."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

_MOST_UNITS = 40

_LONGEST_STRETCH = 3
"""Units of a shortened stretch."""

_WIDEST_UNIT, _NARROWEST_UNIT = 56.0, 11.0


class Scale:
    """Token positions as x coordinates.

    Args:
        first: the first position.
        last: the position after the last.
        marks: positions at which something begins or ends: they keep their place.
        width: how wide it may be (px); more only where a position would get too narrow.
        most_units: with more positions, stretches in which nothing begins or ends are shortened.
        narrowest: least width of a position that is not shortened (px).

    Attributes:
        unit: width of a position that is not shortened (px).
        width: of the whole (px).
        shortened: the stretches that are not to scale.
    """

    def __init__(
        self,
        first: int,
        last: int,
        marks: Iterable[int],
        width: float,
        *,
        most_units: int = _MOST_UNITS,
        narrowest: float = _NARROWEST_UNIT,
    ) -> None:
        last = max(last, first + 1)
        inside = {mark for mark in marks if first < mark < last}
        stops = [first, *sorted(inside), last]
        self._stops = stops
        if last - first <= most_units:
            units = [float(b - a) for a, b in pairwise(stops)]
        else:
            units = [float(min(b - a, _LONGEST_STRETCH)) for a, b in pairwise(stops)]
        self.unit = min(_WIDEST_UNIT, max(narrowest, width / sum(units)))
        self._at = [0.0]
        for unit in units:
            self._at.append(self._at[-1] + unit * self.unit)
        self.width = self._at[-1]
        self.shortened = [
            (a, b) for (a, b), unit in zip(pairwise(stops), units, strict=True) if b - a > unit
        ]

    def x(self, position: int) -> float:
        """Where a position begins (px)."""
        stops, at = self._stops, self._at
        if position <= stops[0]:
            return 0.0
        if position >= stops[-1]:
            return self.width
        index = bisect_right(stops, position) - 1
        share = (position - stops[index]) / (stops[index + 1] - stops[index])
        return at[index] + share * (at[index + 1] - at[index])

    def ticks(self, gap: float) -> list[tuple[float, str]]:
        """Labels with the middle of what they name, at least a gap (px) apart."""
        found: list[tuple[float, str]] = []
        end = -gap
        for a, b in pairwise(self._stops):
            if (a, b) in self.shortened:
                labels = [((self.x(a) + self.x(b)) / 2, f"{a}\u2013{b - 1}")]
            else:
                labels = [((self.x(p) + self.x(p + 1)) / 2, str(p)) for p in range(a, b)]
            for middle, label in labels:
                half = len(label) * 3.4
                if middle - half >= end + gap:
                    found.append((middle, label))
                    end = middle + half
        return found
