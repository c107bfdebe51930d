"""Where the variables of a formula come from: concrete data, or a solver's terms.

A formula is a function of a :class:`Vocabulary`. Over :class:`Values` it is evaluated on integers;
over the vocabularies of :mod:`proofs.smt.solvers` it is built as a term. The text is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Protocol, TypeAlias

from spec.algebra import BoolTerm, IntTerm, and_, eq, implies, ite
from spec.rules.geometry import count_rows_before, row_range, slice_bounds

Value: TypeAlias = int | bool | tuple[bool, ...]
"""Concrete data for a variable: an integer, a truth value, or a mask."""

Assignment: TypeAlias = Mapping[str, Value]
"""Concrete data for the variables of a formula, by name."""


class NotAMaskError(ValueError):
    """Counts that belong to no mask."""


class PrefixCount:
    """The prefix count of a mask: how many positions before a given one take an encoder row.

    An unbounded mask is not a term, but a formula looks at finitely many of its prefix counts. They
    are modelled as an uninterpreted function under the laws that every mask obeys, stated for
    exactly the positions looked at. The laws lose nothing: counts that obey them are those of a
    mask (:func:`mask_with_counts` builds it), so that every counterexample is a real mask.
    """

    def __init__(self, count: Callable[[IntTerm], IntTerm], length: IntTerm) -> None:
        self._count = count
        self.length = length
        self.points: list[tuple[IntTerm, IntTerm]] = []
        self(0)
        self(length)

    def __call__(self, position: IntTerm) -> IntTerm:
        """Rows before ``position`` (counted from the feature's first position)."""
        value = self._count(position)
        self.points.append((position, value))
        return value

    def takes_row_at(self, position: IntTerm) -> BoolTerm:
        """Whether the position itself takes a row."""
        return eq(self(position + 1), self(position) + 1)

    def rows_in(self, offset: IntTerm, start: IntTerm, end: IntTerm) -> IntTerm:
        """Rows that the feature at ``offset`` has in the prompt positions ``[start, end)``."""
        low, high = slice_bounds(offset, self.length, start, end)
        first, last = row_range(self, low, high)
        return ite(low < high, last - first, 0)

    def laws(self) -> BoolTerm:
        """What every mask obeys at the positions looked at so far.

        Nothing comes before the first position and nothing after the last, and from one position
        to a later one the count grows by no less than 0 and no more than 1 for each in between.
        """
        total = self._count(self.length)
        outside = (
            and_(implies(at <= 0, eq(count, 0)), implies(self.length <= at, eq(count, total)))
            for at, count in self.points
        )
        inside = (
            and_(_law(earlier, later), _law(later, earlier))
            for earlier, later in combinations(self.points, 2)
        )
        return and_(*outside, *inside)


def _law(earlier: tuple[IntTerm, IntTerm], later: tuple[IntTerm, IntTerm]) -> BoolTerm:
    (i, count_i), (j, count_j) = earlier, later
    return implies(i <= j, and_(count_i <= count_j, count_j - count_i <= j - i))


def mask_with_counts(length: int, counts: Sequence[tuple[int, int]]) -> tuple[bool, ...]:
    """The mask with the given prefix counts whose rows lie as late as possible.

    Args:
        length: positions of the mask.
        counts: positions and the rows before them; those outside the mask do not count.

    Raises:
        NotAMaskError: no mask has these counts.
    """
    rows_before = dict(counts)
    inside = sorted({(i, rows_before[i]) for i in rows_before if 0 <= i <= length} | {(0, 0)})
    mask: list[bool] = []
    for (i, count_i), (j, count_j) in pairwise(inside):
        if not 0 <= count_j - count_i <= j - i:
            raise NotAMaskError(f"{count_j - count_i} rows in the {j - i} positions from {i}")
        rows = count_j - count_i
        mask += [False] * (j - i - rows) + [True] * rows
    if len(mask) != length or len(dict(inside)) != len(inside):
        raise NotAMaskError(f"counts {counts} of a mask of {length} positions")
    return tuple(mask)


class Vocabulary(Protocol):
    """The variables of a formula, created or looked up by name."""

    def integer(self, name: str) -> IntTerm:
        """An integer variable."""
        ...

    def boolean(self, name: str) -> BoolTerm:
        """A truth value."""
        ...

    def mask(self, name: str, length: IntTerm) -> PrefixCount:
        """A mask of ``length`` positions, by its prefix count."""
        ...


def integers(vocabulary: Vocabulary, names: str) -> tuple[IntTerm, ...]:
    """Several integer variables, named in one string."""
    return tuple(vocabulary.integer(name) for name in names.split())


class Values:
    """The int interpretation: every variable is looked up in concrete data.

    Raises:
        KeyError: the data lack a variable of the formula.
        NotAMaskError: a mask of another length.
    """

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self.used: set[str] = set()

    def integer(self, name: str) -> int:
        """The integer of that name."""
        self.used.add(name)
        value = self._assignment[name]
        if not isinstance(value, int):
            raise TypeError(f"{name} is no integer")
        return value

    def boolean(self, name: str) -> bool:
        """The truth value of that name."""
        return bool(self.integer(name))

    def mask(self, name: str, length: int) -> PrefixCount:
        """The prefix count of the mask of that name, by counting."""
        self.used.add(name)
        mask = self._assignment[name]
        if not isinstance(mask, tuple):
            raise TypeError(f"{name} is no mask")
        if len(mask) != length:
            raise NotAMaskError(f"{name} has {len(mask)} positions, not {length}")

        def count(position: int) -> int:
            return count_rows_before(mask, min(max(position, 0), length))

        return PrefixCount(count, length)
