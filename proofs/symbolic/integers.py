"""Symbolic integers whose comparisons fork the run.

Code under proof runs unchanged on them: they add, subtract and compare like integers, and whoever
asks a comparison for its truth value gets the answer of the exploration that is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

import z3

from spec.algebra import Backend, register


class NotModelled(Exception):  # noqa: N818 - it says what happened, not what went wrong
    """The code under proof asked for something that the symbolic run does not model."""


_Decide: TypeAlias = Callable[[z3.BoolRef], bool]

_deciders: list[_Decide] = []


@contextmanager
def deciding(decide: _Decide) -> Iterator[None]:
    """Let ``decide`` answer for symbolic truth values inside the block."""
    _deciders.append(decide)
    try:
        yield
    finally:
        _deciders.pop()


def _decide(condition: z3.BoolRef) -> bool:
    if not _deciders:
        raise NotModelled("a symbolic truth value was asked for outside an exploration")
    return _deciders[-1](condition)


class SymbolicBool:
    """A truth value that forks the run when Python asks for it."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: z3.BoolRef) -> None:
        self.term = term

    def __bool__(self) -> bool:
        """Fork the run."""
        return _decide(self.term)

    def __eq__(self, other: object) -> bool:
        """Compare with a truth value, after forking the run."""
        return bool(self) == other

    def _other(self, other: object) -> z3.BoolRef:
        if isinstance(other, SymbolicBool):
            return other.term
        if isinstance(other, bool):
            return z3.BoolVal(other, self.term.ctx)
        raise NotModelled(f"a truth value was combined with {type(other).__name__}")

    def __or__(self, other: object) -> SymbolicBool:
        """Either, without forking the run."""
        return SymbolicBool(z3.Or(self.term, self._other(other)))

    def __and__(self, other: object) -> SymbolicBool:
        """Both, without forking the run."""
        return SymbolicBool(z3.And(self.term, self._other(other)))

    __ror__ = __or__
    __rand__ = __and__


class SymbolicInt:
    """An integer of unbounded size that is not known."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: z3.ArithRef) -> None:
        self.term = term

    def __repr__(self) -> str:
        """The term, for messages."""
        return str(self.term)

    def _other(self, other: object) -> z3.ArithRef:
        if isinstance(other, SymbolicInt):
            return other.term
        if isinstance(other, int):
            return z3.IntVal(int(other), self.term.ctx)
        raise NotModelled(f"an integer was combined with {type(other).__name__}")

    def __add__(self, other: object) -> SymbolicInt:
        return SymbolicInt(self.term + self._other(other))

    def __radd__(self, other: object) -> SymbolicInt:
        return SymbolicInt(self._other(other) + self.term)

    def __sub__(self, other: object) -> SymbolicInt:
        return SymbolicInt(self.term - self._other(other))

    def __rsub__(self, other: object) -> SymbolicInt:
        return SymbolicInt(self._other(other) - self.term)

    def __mul__(self, other: object) -> SymbolicInt:
        return SymbolicInt(self.term * self._other(other))

    __rmul__ = __mul__

    def __neg__(self) -> SymbolicInt:
        return SymbolicInt(-self.term)

    def __lt__(self, other: object) -> SymbolicBool:
        return SymbolicBool(self.term < self._other(other))

    def __le__(self, other: object) -> SymbolicBool:
        return SymbolicBool(self.term <= self._other(other))

    def __gt__(self, other: object) -> SymbolicBool:
        return SymbolicBool(self.term > self._other(other))

    def __ge__(self, other: object) -> SymbolicBool:
        return SymbolicBool(self.term >= self._other(other))

    def __eq__(self, other: object) -> Any:
        if other is None:
            return False
        return SymbolicBool(self.term == self._other(other))

    def __ne__(self, other: object) -> Any:
        if other is None:
            return True
        return SymbolicBool(self.term != self._other(other))

    def __bool__(self) -> bool:
        """Fork on whether the integer is zero."""
        return _decide(self.term != 0)

    def _refuse(self, *_: object) -> NoReturn:
        """Refuse arithmetic that is not linear or not modelled."""
        raise NotModelled("the code divides, shifts or raises an integer to a power")

    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = _refuse
    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _refuse

    def __index__(self) -> int:
        """Refuse: the code wants a concrete integer, say as a list index."""
        raise NotModelled(f"the code needs the concrete value of {self.term}")


AnyInt: TypeAlias = int | SymbolicInt


def term(value: AnyInt, context: z3.Context) -> z3.ArithRef:
    """The z3 term of a plain or symbolic integer."""
    return value.term if isinstance(value, SymbolicInt) else z3.IntVal(value, context)


def _context(*operands: object) -> z3.Context:
    return next(o.term.ctx for o in operands if isinstance(o, (SymbolicBool, SymbolicInt)))


def _condition(operand: object, context: z3.Context) -> z3.BoolRef:
    if isinstance(operand, SymbolicBool):
        return operand.term
    if isinstance(operand, bool):
        return z3.BoolVal(operand, context)
    raise NotModelled(f"a truth value was combined with {type(operand).__name__}")


def _all(*operands: object) -> SymbolicBool:
    context = _context(*operands)
    return SymbolicBool(z3.And(*(_condition(operand, context) for operand in operands)))


def _any(*operands: object) -> SymbolicBool:
    context = _context(*operands)
    return SymbolicBool(z3.Or(*(_condition(operand, context) for operand in operands)))


def _not(operand: object) -> SymbolicBool:
    return SymbolicBool(z3.Not(_condition(operand, _context(operand))))


def _implies(premise: object, conclusion: object) -> SymbolicBool:
    context = _context(premise, conclusion)
    return SymbolicBool(z3.Implies(_condition(premise, context), _condition(conclusion, context)))


def _if_then_else(condition: object, if_true: AnyInt, if_false: AnyInt) -> SymbolicInt:
    context = _context(condition, if_true, if_false)
    return SymbolicInt(
        z3.If(_condition(condition, context), term(if_true, context), term(if_false, context))
    )


# The claims' own statements judge what a release did on symbolic integers. They combine conditions
# without asking for a truth value; whoever asks for that of the whole forks the run.
for _kind in (SymbolicBool, SymbolicInt):
    register(
        _kind,
        Backend(
            "symbolic integers",
            conjunction=_all,
            disjunction=_any,
            negation=_not,
            implication=_implies,
            if_then_else=_if_then_else,
            equality=lambda left, right: left == right,
        ),
    )
