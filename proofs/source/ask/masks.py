"""Masks on symbolic positions: prefix counts and the laws that every mask obeys.

A mask of unknown length is an uninterpreted prefix count ``P`` (rows before a position) and an
uninterpreted predicate ``M`` (whether a position takes a row). At the finitely many positions that
occur, they obey: ``P(0) = 0``, ``0 <= P(y) - P(x) <= y - x`` for ``x <= y``, and ``M(x)`` iff
``P(x+1) - P(x) = 1``. Every finite set of values that obeys these laws is that of some mask, so
nothing is lost and nothing invented.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from proofs.smt.vocabulary import mask_with_counts
from proofs.source.ask.question import number_in
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import AnyInt, SymbolicBool, SymbolicInt, term
from spec.algebra import BoolTerm, and_, eq, iff, implies


@dataclass(frozen=True)
class _Point:
    """A position at which a mask is looked at, and how many rows stand before it."""

    position: SymbolicInt
    count: SymbolicInt


class SymbolicMask:
    """The mask of one feature: ``None`` in the code's place stands for a dense feature.

    Args:
        exploration: gets the laws as facts.
        index: the feature's index, which names its functions.
        length: the feature's length (tokens).
        dense: whether every position takes a row.
    """

    def __init__(
        self, exploration: Exploration, index: int, length: SymbolicInt, *, dense: bool
    ) -> None:
        self._exploration = exploration
        self._length = length
        self._dense = dense
        context = exploration.context
        integers = z3.IntSort(context)
        self._count_before = z3.Function(f"rows_before_{index}", integers, integers)
        self._takes_row = z3.Function(f"takes_row_{index}", integers, z3.BoolSort(context))
        self._counts: dict[int, tuple[AnyInt, SymbolicInt]] = {}
        self._points: dict[int, _Point] = {}
        if not dense:
            exploration.add_fact(self._count_before(z3.IntVal(0, context)) == 0)
            self.rows_before(0)
            self.rows_before(length)

    def rows_before(self, position: AnyInt) -> AnyInt:
        """How many positions before this one take a row."""
        if self._dense:
            return position
        counted = self._counts.get(id(position))
        if counted is None:
            counted = self._counts[id(position)] = (position, self._point(position).count)
        return counted[1]

    def _point(self, position: AnyInt) -> _Point:
        """The position's simplest form with its count: equal forms are one point."""
        simple = z3.simplify(term(position, self._exploration.context))
        if simple.get_id() not in self._points:
            point = _Point(SymbolicInt(simple), SymbolicInt(self._count_before(simple)))
            for other in self._points.values():
                self._relate(point, other)
            self._points[simple.get_id()] = point
        return self._points[simple.get_id()]

    def takes_row(self, position: AnyInt) -> BoolTerm:
        """Whether the position, counted from the feature's first, takes a row."""
        inside = and_(position >= 0, position < self._length)
        if self._dense:
            return inside
        step = self.rows_before(position + 1) - self.rows_before(position)
        taken = SymbolicBool(self._takes_row(self._point(position).position.term))
        self._exploration.add_fact(implies(inside, iff(taken, eq(step, 1))))
        return and_(inside, taken)

    def in_model(self, model: z3.ModelRef) -> tuple[bool, ...] | None:
        """A mask with the model's counts at every position that occurs; ``None`` if dense."""
        if self._dense:
            return None
        length = number_in(model, self._length.term)
        counts = {0: 0}
        for point in self._points.values():
            position = number_in(model, point.position.term)
            if 0 <= position <= length:
                counts[position] = number_in(model, point.count.term)
        return mask_with_counts(length, sorted(counts.items()))

    def _relate(self, left: _Point, right: _Point) -> None:
        for low, high in ((left, right), (right, left)):
            start, end, step = low.position, high.position, high.count - low.count
            ordered = and_(start >= 0, start <= end, end <= self._length)
            self._exploration.add_fact(implies(ordered, and_(step >= 0, step <= end - start)))


class SymbolicCumulativeCounts:
    """The list ``embeds_cumsum`` of a masked feature, indexed as Python lists are.

    Entry ``i`` counts the rows of positions ``0`` to ``i``. A negative index counts from the end;
    an index out of range raises, both as paths of their own.
    """

    def __init__(self, mask: SymbolicMask, length: SymbolicInt) -> None:
        self._mask = mask
        self._length = length

    def __bool__(self) -> bool:
        """Whether the list has entries."""
        return bool(self._length > 0)

    def __getitem__(self, index: AnyInt) -> AnyInt:
        """The count up to and including the index.

        Raises:
            IndexError: on the path where the index is out of range.
        """
        place = index
        if place < 0:
            place = self._length + place
        if place < 0 or place >= self._length:
            raise IndexError("list index out of range")
        return self._mask.rows_before(place + 1)
