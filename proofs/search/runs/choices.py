"""Where a builder of scenarios takes its choices from: hypothesis, or a seeded generator.

One builder serves both. Tests draw through hypothesis, which shrinks and remembers failures; the
command draws from a generator, which is many times faster, and shrinks scenarios itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

T = TypeVar("T")


class Choose(Protocol):
    """A source of choices. Each prefers, when it shrinks, what is named first."""

    def integer(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``, both included; the lower is the simpler."""
        ...

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""
        ...

    def chance(self, percent: int) -> bool:
        """True in about so many of a hundred draws; False is the simpler."""
        ...


class SeededChoices:
    """Choices of a seeded generator."""

    def __init__(self, random: Random) -> None:
        self._random = random.random

    def integer(self, low: int, high: int) -> int:
        """A number of the closed range, all equally likely."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return options[int(self._random() * len(options))]

    def chance(self, percent: int) -> bool:
        """Whether a number below 100 is below ``percent``."""
        return self._random() * 100 < percent


class DrawnChoices:
    """Choices drawn by hypothesis."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """A number that shrinks towards ``low``."""
        return self._draw(st.integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; shrinks towards the first."""
        return options[self._draw(st.integers(0, len(options) - 1))]

    def chance(self, percent: int) -> bool:
        """A Boolean that shrinks towards False."""
        return self._draw(st.integers(0, 99)) >= 100 - percent
