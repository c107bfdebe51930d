"""One set of connectives over Python numbers and over solver terms.

A rule written with these functions is an oracle when it is called with integers, a z3 proof term
when it is called with z3 terms and a second opinion when it is called with cvc5 terms. Addition,
subtraction and the order comparisons need no function: all three kinds of operand define them.
Equality and every connective do. Python would settle ``and``, ``if``, ``min`` or a chained
comparison by asking a term for its truth value, and z3 answers some of those questions with a
silent structural ``False``.

The solvers' term types are registered by the room that owns the solvers
(:mod:`proofs.smt.solvers`), so that this package imports neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

IntTerm: TypeAlias = Any
"""A Python ``int`` or a solver's integer term."""

BoolTerm: TypeAlias = Any
"""A Python ``bool`` or a solver's Boolean term."""


@dataclass(frozen=True)
class Backend:
    """The connectives of one solver's term language."""

    name: str
    conjunction: Callable[..., BoolTerm]
    disjunction: Callable[..., BoolTerm]
    negation: Callable[[BoolTerm], BoolTerm]
    implication: Callable[[BoolTerm, BoolTerm], BoolTerm]
    if_then_else: Callable[[BoolTerm, IntTerm, IntTerm], IntTerm]
    equality: Callable[[IntTerm, IntTerm], BoolTerm]


_BACKENDS: dict[type, Backend] = {}


def register(term_type: type, backend: Backend) -> None:
    """Make every connective of this module accept terms of ``term_type`` and its subclasses."""
    _BACKENDS[term_type] = backend


def backend_of(*operands: object) -> Backend | None:
    """Return the solver backend that owns any of the operands, or ``None`` for plain numbers.

    Raises:
        TypeError: an operand is neither a number nor a registered term, or two solvers are mixed.
    """
    found: Backend | None = None
    for operand in operands:
        if isinstance(operand, (bool, int)):
            continue
        owner = next((_BACKENDS[t] for t in type(operand).__mro__ if t in _BACKENDS), None)
        if owner is None:
            raise TypeError(
                f"{operand!r} is neither an integer, a Boolean nor a term of a registered solver"
            )
        if found is not None and found is not owner:
            raise TypeError(f"terms of {found.name} and of {owner.name} in one expression")
        found = owner
    return found


_PLAIN = frozenset((bool, int))
"""Types that no solver owns; met first, since rules run on numbers millions of times."""


def and_(*operands: BoolTerm) -> BoolTerm:
    """Conjunction; true for no operands."""
    if _PLAIN.issuperset(map(type, operands)):
        return all(operands)
    backend = backend_of(*operands)
    if backend is not None:
        return backend.conjunction(*operands)
    return all(operands)


def or_(*operands: BoolTerm) -> BoolTerm:
    """Disjunction; false for no operands."""
    if _PLAIN.issuperset(map(type, operands)):
        return any(operands)
    backend = backend_of(*operands)
    if backend is not None:
        return backend.disjunction(*operands)
    return any(operands)


def not_(operand: BoolTerm) -> BoolTerm:
    """Negation."""
    if operand is True or operand is False:
        return not operand
    backend = backend_of(operand)
    if backend is not None:
        return backend.negation(operand)
    return not operand


def implies(premise: BoolTerm, conclusion: BoolTerm) -> BoolTerm:
    """Implication."""
    if type(premise) in _PLAIN and type(conclusion) in _PLAIN:
        return (not premise) or bool(conclusion)
    backend = backend_of(premise, conclusion)
    if backend is not None:
        return backend.implication(premise, conclusion)
    return (not premise) or bool(conclusion)


def iff(left: BoolTerm, right: BoolTerm) -> BoolTerm:
    """Equivalence of two Boolean operands."""
    if type(left) in _PLAIN and type(right) in _PLAIN:
        return bool(left) is bool(right)
    return and_(implies(left, right), implies(right, left))


def ite(condition: BoolTerm, if_true: IntTerm, if_false: IntTerm) -> IntTerm:
    """The integer ``if_true`` where the condition holds, else ``if_false``."""
    if type(condition) in _PLAIN and type(if_true) in _PLAIN and type(if_false) in _PLAIN:
        return if_true if condition else if_false
    backend = backend_of(condition, if_true, if_false)
    if backend is not None:
        return backend.if_then_else(condition, if_true, if_false)
    return if_true if condition else if_false


def eq(left: IntTerm, right: IntTerm) -> BoolTerm:
    """Equality of two integers."""
    if type(left) in _PLAIN and type(right) in _PLAIN:
        return bool(left == right)
    backend = backend_of(left, right)
    if backend is not None:
        return backend.equality(left, right)
    return bool(left == right)


def min_(left: IntTerm, right: IntTerm) -> IntTerm:
    """The smaller of two integers."""
    return ite(left <= right, left, right)


def max_(left: IntTerm, right: IntTerm) -> IntTerm:
    """The larger of two integers."""
    return ite(left <= right, right, left)
