"""The two solvers: their terms in :mod:`spec.algebra`, and one fresh solver for each question.

Limits are counted in the solver's own resource units, never in seconds, and every question gets a
fresh context and fixed seeds: the same question has the same answer and the same count each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from proofs.smt.vocabulary import Assignment, PrefixCount, Value, mask_with_counts
from spec import algebra
from spec.algebra import BoolTerm, IntTerm
from spec.errors import InputError, message_of

try:
    import cvc5.pythonic as cvc5
    import cvc5.pythonic.cvc5_pythonic as cvc5_internals
    import z3
except ImportError as _error:
    _missing = message_of(_error)
else:
    _missing = ""

Answer: TypeAlias = Literal["unsat", "sat", "unknown"]

RESOURCE_LIMIT = 2_000_000
"""Resource units that a solver may spend on one question; proofs here take some thousands."""


def _backend(solver: Any, name: str) -> algebra.Backend:
    """The connectives of a solver with z3's interface."""
    return algebra.Backend(
        name=name,
        conjunction=solver.And,
        disjunction=solver.Or,
        negation=solver.Not,
        implication=solver.Implies,
        if_then_else=solver.If,
        equality=lambda left, right: left == right,
    )


if not _missing:
    algebra.register(z3.ExprRef, _backend(z3, "z3"))
    algebra.register(cvc5_internals.ExprRef, _backend(cvc5, "cvc5"))


def require_solvers() -> None:
    """Check that both solvers are there.

    Raises:
        InputError: one is not.
    """
    if _missing:
        raise InputError(
            f"a solver is missing ({_missing}); both z3-solver and cvc5 are needed, because a "
            "claim is proved only when both agree: run `pip install z3-solver cvc5` in this "
            "environment"
        )


class SymbolicTruthError(TypeError):
    """A rule asked a term for its truth value while a formula was built."""


@contextmanager
def no_truth_values() -> Iterator[None]:
    """Make a term's truth value an error.

    Left alone, both solvers answer the question for an equality, by comparing its sides as text:
    ``if x == y`` would silently mean ``if False``.
    """

    def refuse(term: object) -> bool:
        raise SymbolicTruthError(
            f"the truth value of `{term}` was asked for; rules use the connectives of spec.algebra"
        )

    classes: tuple[Any, ...] = (z3.AstRef, cvc5_internals.ExprRef)
    originals = [cls.__bool__ for cls in classes]
    for cls in classes:
        cls.__bool__ = refuse
    try:
        yield
    finally:
        for cls, original in zip(classes, originals, strict=True):
            cls.__bool__ = original


class SolverVocabulary:
    """Variables of one solver in one context, in the order in which a formula names them."""

    def __init__(self, solver: Any, context: Any) -> None:
        self._solver = solver
        self._context = context
        self.integers: dict[str, IntTerm] = {}
        self.booleans: dict[str, BoolTerm] = {}
        self.masks: dict[str, PrefixCount] = {}

    def integer(self, name: str) -> IntTerm:
        """The solver's integer constant of that name."""
        return self.integers.setdefault(name, self._solver.Int(name, self._context))

    def boolean(self, name: str) -> BoolTerm:
        """The solver's Boolean constant of that name."""
        return self.booleans.setdefault(name, self._solver.Bool(name, self._context))

    def mask(self, name: str, length: IntTerm) -> PrefixCount:
        """The prefix count of a mask, as an uninterpreted function."""
        if name not in self.masks:
            sort = self._solver.IntSort(self._context)
            function = self._solver.Function(f"rows_before_{name}", sort, sort)
            self.masks[name] = PrefixCount(lambda at: function(self.term(at)), length)
        return self.masks[name]

    def truth(self, value: bool) -> BoolTerm:
        """A Python truth value as this solver's constant."""
        return self._solver.BoolVal(value, self._context)

    def term(self, value: IntTerm) -> IntTerm:
        """A Python integer as this solver's constant; terms stay as they are."""
        return self._solver.IntVal(value, self._context) if isinstance(value, int) else value


Build: TypeAlias = Callable[[SolverVocabulary], BoolTerm]
"""Builds, over a vocabulary, the term whose satisfiability is asked."""


@dataclass(frozen=True)
class SolverAnswer:
    """A solver's answer.

    Attributes:
        answer: the answer.
        resources: resource units that it took.
        asked: of z3, the solver that gave it, with the formula's variables.
    """

    answer: Answer
    resources: int
    asked: tuple[Any, SolverVocabulary] | None = field(default=None, compare=False, repr=False)


class Solver(Protocol):
    """One of the two solvers."""

    @property
    def name(self) -> str:
        """The solver's name in reports."""
        ...

    def check(self, build: Build, resource_limit: int) -> SolverAnswer:
        """Whether the built formula is satisfiable."""
        ...


T = TypeVar("T")


def build_formula(build: Callable[[SolverVocabulary], T], vocabulary: SolverVocabulary) -> T:
    """Build over a solver's vocabulary, with truth values of terms refused."""
    with no_truth_values():
        return build(vocabulary)


class Z3:
    """z3, in a fresh context for each question."""

    name = "z3"

    def check(self, build: Build, resource_limit: int = RESOURCE_LIMIT) -> SolverAnswer:
        """Whether the built formula is satisfiable."""
        asked = self._solver(build, resource_limit)
        answer = _answer(str(asked[0].check()))
        resources = asked[0].statistics().get_key_value("rlimit count")
        return SolverAnswer(answer, resources, asked)

    def smallest_model(self, answer: SolverAnswer) -> Assignment:
        """The smallest model of a formula of which this solver has answered ``sat``.

        Smallest by the number of negative integers, then by the sum of absolute values, then by
        each integer in the order in which the formula names them (absolute value, then sign), then
        by truth values, then by the counts of masks. It is unique and so does not depend on the
        solver's search.

        Raises:
            ArithmeticError: the solver gave up on the way.
        """
        assert answer.asked is not None
        solver, vocabulary = answer.asked
        model = solver.model()
        goals = _sizes(vocabulary)
        for goal in goals:
            # Every goal is a natural number; bisection, for a first model can be far off.
            lowest, best = 0, _number(model, goal)
            while lowest < best:
                middle = (lowest + best) // 2
                solver.push()
                solver.add(goal <= middle)
                smaller = _next_model(solver)
                solver.pop()
                if smaller is None:
                    lowest = middle + 1
                else:
                    model, best = smaller, _number(smaller, goal)
            solver.add(goal == best)
        return _assignment(model, vocabulary)

    def vocabulary(self) -> SolverVocabulary:
        """An empty vocabulary in a fresh context."""
        return SolverVocabulary(z3, z3.Context())

    def to_smt2(self, build: Build) -> str:
        """The formula's declarations and assertion in SMT-LIB, as z3 prints them."""
        solver, _ = self._solver(build, RESOURCE_LIMIT)
        text: str = solver.to_smt2()
        return text

    def _solver(self, build: Build, resource_limit: int) -> tuple[Any, SolverVocabulary]:
        context = z3.Context()
        vocabulary = SolverVocabulary(z3, context)
        solver = z3.Solver(ctx=context)
        # z3 would take an interrupt for itself and answer "unknown".
        solver.set("ctrl_c", False)
        solver.set("random_seed", 0)
        solver.set("rlimit", resource_limit)
        solver.add(build_formula(build, vocabulary))
        return solver, vocabulary


class CVC5:
    """cvc5, in a fresh term manager for each question."""

    name = "cvc5"

    def check(self, build: Build, resource_limit: int = RESOURCE_LIMIT) -> SolverAnswer:
        """Whether the built formula is satisfiable."""
        context = cvc5.Context()
        solver = cvc5.Solver(ctx=context)
        solver.setOption("seed", "0")
        solver.setOption("rlimit", str(resource_limit))
        solver.add(build_formula(build, SolverVocabulary(cvc5, context)))
        answer = str(solver.check())
        used = solver.statistics()["resource::resourceUnitsUsed"]["value"]
        return SolverAnswer(_answer(answer), int(used))


SOLVERS: tuple[Solver, ...] = (Z3(), CVC5())
"""Both solvers; a claim is proved only when each answers ``unsat`` to its negation."""


def _answer(text: str) -> Answer:
    return "unsat" if text == "unsat" else "sat" if text == "sat" else "unknown"


def _next_model(solver: Any) -> Any | None:
    answer = solver.check()
    if answer == z3.unknown:
        raise ArithmeticError(f"z3 gave up on the smallest model ({solver.reason_unknown()})")
    return solver.model() if answer == z3.sat else None


def _sizes(vocabulary: SolverVocabulary) -> list[Any]:
    """What the smallest model minimises, most important first."""
    absolute = [z3.If(x >= 0, x, -x) for x in vocabulary.integers.values()]
    negative = [z3.If(x >= 0, 0, z3.IntVal(1, x.ctx)) for x in vocabulary.integers.values()]
    goals = [z3.Sum(negative), z3.Sum(absolute)] if absolute else []
    for size, sign in zip(absolute, negative, strict=True):
        goals += [size, sign]
    goals += [z3.If(b, z3.IntVal(1, b.ctx), 0) for b in vocabulary.booleans.values()]
    goals += [
        vocabulary.term(count) for mask in vocabulary.masks.values() for _, count in mask.points
    ]
    return goals


def _number(model: Any, term: IntTerm) -> int:
    return int(model.eval(term, model_completion=True).as_long())


def _assignment(model: Any, vocabulary: SolverVocabulary) -> Assignment:
    def number(term: IntTerm) -> int:
        return _number(model, vocabulary.term(term))

    values: dict[str, Value] = {name: number(x) for name, x in vocabulary.integers.items()}
    for name, b in vocabulary.booleans.items():
        values[name] = z3.is_true(model.eval(b, model_completion=True))
    for name, mask in vocabulary.masks.items():
        counts = [(number(position), number(count)) for position, count in mask.points]
        values[name] = mask_with_counts(number(mask.length), counts)
    return values
