"""Symbolic integers whose comparisons fork the run.

Code under proof runs unchanged on them: they add, subtract and compare like integers, and whoever
asks a comparison for its truth value gets the answer of the exploration that is under way.

The paths of a function repeat most of each other. A sum or a comparison of the same operands is
therefore made once and is the same object each time: to build a solver's term takes far longer than
to look it up.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias, TypeVar

import z3

from spec.algebra import Backend, register


class NotModelled(Exception):  # noqa: N818 - it says what happened, not what went wrong
    """The code under proof asked for something that the symbolic run does not model."""


_Decide: TypeAlias = "Callable[[SymbolicBool], bool]"

_deciders: list[_Decide] = []


@contextmanager
def deciding(decide: _Decide) -> Iterator[None]:
    """Let ``decide`` answer for symbolic truth values inside the block."""
    _deciders.append(decide)
    try:
        yield
    finally:
        _deciders.pop()


class _Symbolic:
    """A solver's term, and what was made of it so far.

    A key of what was made names operands by their identifier, so the operands are kept with it.
    """

    __slots__ = ("_made", "term")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: Any) -> None:
        self.term = term
        self._made: dict[tuple[Any, ...], tuple[Any, Any]] = {}


class SymbolicBool(_Symbolic):
    """A truth value that forks the run when Python asks for it."""

    __slots__ = ()
    __hash__ = None
    term: z3.BoolRef

    def __bool__(self) -> bool:
        """Fork the run."""
        if not _deciders:
            raise NotModelled("a symbolic truth value was asked for outside an exploration")
        return _deciders[-1](self)

    def __eq__(self, other: object) -> bool:
        """Compare with a truth value, after forking the run."""
        return bool(self) == other

    def __or__(self, other: object) -> bool | SymbolicBool:
        """Either, without forking the run."""
        return _any(self, other)

    def __and__(self, other: object) -> bool | SymbolicBool:
        """Both, without forking the run."""
        return _all(self, other)

    __ror__ = __or__
    __rand__ = __and__


_Kind = TypeVar("_Kind", bound=_Symbolic)


class SymbolicInt(_Symbolic):
    """An integer of unbounded size that is not known."""

    __slots__ = ()
    __hash__ = None
    term: z3.ArithRef

    def __repr__(self) -> str:
        """The term, for messages."""
        return str(self.term)

    def _made_once(
        self, operate: Callable[[Any, Any], Any], other: object, kind: type[_Kind]
    ) -> _Kind:
        """What the operation makes of the two terms."""
        # A symbolic operand's key begins with the operation, a plain one's ends with it.
        key: tuple[Any, ...] = (operate, id(other))
        operand = other
        if not isinstance(other, SymbolicInt):
            if not isinstance(other, int):
                raise NotModelled(f"an integer was combined with {type(other).__name__}")
            operand = int(other)
            key = (operand, operate)
        found = self._made.get(key)
        if found is None:
            made = kind(operate(self.term, term(operand, self.term.ctx)))  # type: ignore[arg-type]
            found = self._made[key] = (made, operand)
        result: _Kind = found[0]
        return result

    def __add__(self, other: object) -> SymbolicInt:
        return self._made_once(operator.add, other, SymbolicInt)

    __radd__ = __add__

    def __sub__(self, other: object) -> SymbolicInt:
        return self._made_once(operator.sub, other, SymbolicInt)

    def __rsub__(self, other: object) -> SymbolicInt:
        return self._made_once(_subtracted_from, other, SymbolicInt)

    def __mul__(self, other: object) -> SymbolicInt:
        return self._made_once(operator.mul, other, SymbolicInt)

    __rmul__ = __mul__

    def __neg__(self) -> SymbolicInt:
        return self.__rsub__(0)

    def __lt__(self, other: object) -> SymbolicBool:
        return self._made_once(operator.lt, other, SymbolicBool)

    def __le__(self, other: object) -> SymbolicBool:
        return self._made_once(operator.le, other, SymbolicBool)

    def __gt__(self, other: object) -> SymbolicBool:
        return self._made_once(operator.gt, other, SymbolicBool)

    def __ge__(self, other: object) -> SymbolicBool:
        return self._made_once(operator.ge, other, SymbolicBool)

    def __eq__(self, other: object) -> Any:
        return False if other is None else self._made_once(operator.eq, other, SymbolicBool)

    def __ne__(self, other: object) -> Any:
        return True if other is None else self._made_once(operator.ne, other, SymbolicBool)

    def __bool__(self) -> bool:
        """Fork on whether the integer is zero."""
        return bool(self != 0)

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


def _subtracted_from(number: Any, other: Any) -> Any:
    return other - number


def term(value: AnyInt, context: z3.Context) -> z3.ArithRef:
    """The z3 term of a plain or symbolic integer."""
    return value.term if isinstance(value, SymbolicInt) else z3.IntVal(value, context)


AnyBool: TypeAlias = bool | SymbolicBool

Condition: TypeAlias = AnyBool | z3.BoolRef
"""A truth value that is plain, symbolic, or a term of z3's already."""


def truth_term(value: Condition, context: z3.Context) -> z3.BoolRef:
    """The z3 term of a condition."""
    if isinstance(value, SymbolicBool):
        return value.term
    return z3.BoolVal(value, context) if isinstance(value, bool) else value


def _of_many(
    connective: Callable[..., z3.BoolRef], decides: bool, operands: Sequence[object]
) -> AnyBool:
    """A conjunction or disjunction, of which one kind of plain operand decides the whole."""
    kept: dict[int, SymbolicBool] = {}
    for operand in operands:
        if isinstance(operand, SymbolicBool):
            kept[id(operand)] = operand
        elif not isinstance(operand, bool):
            raise NotModelled(f"a truth value was combined with {type(operand).__name__}")
        elif operand is decides:
            return decides
    if not kept:
        return not decides
    first, *others = kept.values()
    if not others:
        return first
    key = (connective, *kept)
    found = first._made.get(key)
    if found is None:
        made = SymbolicBool(connective(first.term, *(other.term for other in others)))
        found = first._made[key] = (made, others)
    result: SymbolicBool = found[0]
    return result


def _all(*operands: object) -> AnyBool:
    return _of_many(z3.And, False, operands)


def _any(*operands: object) -> AnyBool:
    return _of_many(z3.Or, True, operands)


def _not(operand: SymbolicBool) -> SymbolicBool:
    found = operand._made.get((_not,))
    if found is None:
        made = SymbolicBool(z3.Not(operand.term))
        made._made[(_not,)] = (operand, None)
        found = operand._made[(_not,)] = (made, None)
    result: SymbolicBool = found[0]
    return result


def _implies(premise: AnyBool, conclusion: AnyBool) -> AnyBool:
    return _any(not premise if isinstance(premise, bool) else _not(premise), conclusion)


def _if_then_else(condition: AnyBool, if_true: AnyInt, if_false: AnyInt) -> AnyInt:
    if isinstance(condition, bool):
        return if_true if condition else if_false
    if if_true is if_false:
        return if_true
    values = (if_true, if_false)
    key = (_if_then_else, *((v, None) if isinstance(v, int) else id(v) for v in values))
    found = condition._made.get(key)
    if found is None:
        terms = (term(value, condition.term.ctx) for value in values)
        found = condition._made[key] = (SymbolicInt(z3.If(condition.term, *terms)), values)
    result: SymbolicInt = found[0]
    return result


# The claims' own statements judge what a release did on symbolic integers. They combine conditions
# without asking for a truth value; whoever asks for that of the whole forks the run.
_BACKEND = Backend(
    "symbolic integers",
    conjunction=_all,
    disjunction=_any,
    negation=_not,
    implication=_implies,
    if_then_else=_if_then_else,
    equality=operator.eq,
)
for _kind in (SymbolicBool, SymbolicInt):
    register(_kind, _BACKEND)
