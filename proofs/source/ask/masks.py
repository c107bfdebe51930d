"""Masks on symbolic positions: prefix counts and the laws that every mask obeys.

A mask of unknown length is an uninterpreted prefix count ``P`` (rows before a position) and an
uninterpreted predicate ``M`` (whether a position takes a row). At the finitely many positions that
occur, they obey: ``P(0) = 0``, ``0 <= P(y) - P(x) <= y - x`` for ``x <= y``, and ``M(x)`` iff
``P(x+1) - P(x) = 1``. Every finite set of values that obeys these laws is that of some mask, so
nothing is lost and nothing invented.
"""

from __future__ import annotations

import z3

from proofs.smt.vocabulary import mask_with_counts
from proofs.source.ask.question import number_in
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import AnyInt, SymbolicInt, term


class SymbolicMask:
    """The mask of one feature: ``None`` in the code's place stands for a dense feature.

    Args:
        exploration: gets the laws as facts.
        index: the feature's index, which names its functions.
        length: the feature's length (tokens).
        dense: whether every position takes a row.
    """

    def __init__(
        self, exploration: Exploration, index: int, length: z3.ArithRef, *, dense: bool
    ) -> None:
        self._exploration = exploration
        self._length = length
        self._dense = dense
        context = exploration.context
        integers = z3.IntSort(context)
        self._rows_before = z3.Function(f"rows_before_{index}", integers, integers)
        self._takes_row = z3.Function(f"takes_row_{index}", integers, z3.BoolSort(context))
        self._points: dict[int, z3.ArithRef] = {}
        if not dense:
            zero = z3.IntVal(0, context)
            exploration.add_fact(self._rows_before(zero) == 0)
            self.rows_before(zero)
            self.rows_before(length)

    def rows_before(self, position: z3.ArithRef) -> z3.ArithRef:
        """How many positions before this one take a row."""
        position = z3.simplify(position)
        if self._dense:
            return position
        count = self._rows_before(position)
        if position.get_id() not in self._points:
            for point in self._points.values():
                self._relate(position, point)
            self._points[position.get_id()] = position
        return count

    def takes_row(self, position: z3.ArithRef) -> z3.BoolRef:
        """Whether the position, counted from the feature's first, takes a row."""
        position = z3.simplify(position)
        inside = z3.And(position >= 0, position < self._length)
        if self._dense:
            return inside
        step = self.rows_before(position + 1) - self.rows_before(position)
        taken = self._takes_row(position)
        self._exploration.add_fact(z3.Implies(inside, taken == (step == 1)))
        return z3.And(inside, taken)

    def in_model(self, model: z3.ModelRef) -> tuple[bool, ...] | None:
        """A mask with the model's counts at every position that occurs; ``None`` if dense."""
        if self._dense:
            return None
        length = number_in(model, self._length)
        counts = {0: 0}
        for point in self._points.values():
            position = number_in(model, point)
            if 0 <= position <= length:
                counts[position] = number_in(model, self._rows_before(point))
        return mask_with_counts(length, sorted(counts.items()))

    def _relate(self, left: z3.ArithRef, right: z3.ArithRef) -> None:
        for low, high in ((left, right), (right, left)):
            step = self._rows_before(high) - self._rows_before(low)
            ordered = z3.And(low >= 0, low <= high, high <= self._length)
            self._exploration.add_fact(z3.Implies(ordered, z3.And(step >= 0, step <= high - low)))


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

    def __getitem__(self, index: AnyInt) -> SymbolicInt:
        """The count up to and including the index.

        Raises:
            IndexError: on the path where the index is out of range.
        """
        place = index
        if place < 0:
            place = self._length + place
        if place < 0 or place >= self._length:
            raise IndexError("list index out of range")
        position = term(place, self._length.term.ctx)
        return SymbolicInt(self._mask.rows_before(position + 1))
