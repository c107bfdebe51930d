"""The connectives mean the same on integers, on z3 terms and on cvc5 terms."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

import cvc5.pythonic as cvc5
import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

import spec.rules
from proofs.smt.solvers import SymbolicTruthError, no_truth_values
from spec import algebra
from spec.algebra import and_, eq, iff, implies, ite, max_, min_, not_, or_
from spec.claims import predicates
from spec.relation import (
    book_moves,
    cross_attention,
    cross_attention_moves,
    guards,
    invariants,
    release_moves,
    request_moves,
    state,
    worker_moves,
)
from spec.rules import geometry

INTEGERS = st.integers(-4, 4)


def _formula(a: Any, b: Any, p: Any, q: Any) -> Any:
    """Every connective once, over two integers and two truth values."""
    return or_(
        and_(p, iff(q, a < b), eq(min_(a, b) + max_(a, b), a + b)),
        implies(q, not_(eq(ite(p, a, b), max_(a, b)))),
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and_": lambda a, b, p, q: and_(p, q, a < b),
    "or_": lambda a, b, p, q: or_(p, q, a < b),
    "not_": lambda a, b, p, q: not_(p),
    "implies": lambda a, b, p, q: implies(p, q),
    "iff": lambda a, b, p, q: iff(p, q),
    "eq": lambda a, b, p, q: eq(a, b),
    "ite": lambda a, b, p, q: eq(ite(p, a, b), a),
    "min_": lambda a, b, p, q: eq(min_(a, b), a),
    "max_": lambda a, b, p, q: eq(max_(a, b), a),
    "all together": _formula,
}


@given(a=INTEGERS, b=INTEGERS, p=st.booleans(), q=st.booleans())
def test_solvers_agree_with_integers(a: int, b: int, p: bool, q: bool) -> None:
    """A connective that a solver reads differently would prove another theorem than is tested."""
    expected = {name: function(a, b, p, q) for name, function in FUNCTIONS.items()}
    assert {type(value) for value in expected.values()} == {bool}
    for solver in (z3, cvc5):
        terms = (solver.IntVal(a), solver.IntVal(b), solver.BoolVal(p), solver.BoolVal(q))
        with no_truth_values():
            differs = [
                solver.Not(term) if expected[name] else term
                for name, function in FUNCTIONS.items()
                for term in [function(*terms)]
            ]
        question = solver.Solver()
        question.add(solver.Or(*differs))
        assert str(question.check()) == "unsat"


def test_every_connective_is_compared() -> None:
    """A connective without a comparison could differ between solvers unseen."""
    helpers = {"register", "backend_of", "dataclass"}
    connectives = {
        name
        for name, value in vars(algebra).items()
        if inspect.isfunction(value) and value.__module__ == algebra.__name__
    } - helpers
    assert connectives <= set(FUNCTIONS)


@pytest.mark.parametrize("solver", [z3, cvc5], ids=["z3", "cvc5"])
def test_truth_value_of_an_equality_is_refused(solver: Any) -> None:
    """Left alone, a solver answers `x == y` by comparing text: a rule with `if` would pass."""
    x, y = solver.Int("x"), solver.Int("y")
    assert bool(x == y) is False
    with no_truth_values():
        for question in (x == y, x < y, solver.And(x < y, y < x)):
            with pytest.raises(SymbolicTruthError):
                bool(question)
        with pytest.raises(SymbolicTruthError):
            _ = 0 <= x < 1
    assert bool(x == x) is True


def test_two_solvers_do_not_mix() -> None:
    """A formula with terms of both solvers would be a proof in neither."""
    with pytest.raises(TypeError, match="terms of"):
        and_(z3.Bool("p"), cvc5.Bool("q"))
    with pytest.raises(TypeError, match="neither an integer"):
        and_(True, "p")


CONCRETE_ONLY = {"count_rows_before": "counts the entries of a concrete mask; never given a term"}
"""Functions of the rule files that take no terms, with the reason."""

FORBIDDEN: tuple[type[ast.AST], ...] = (
    ast.BoolOp,
    ast.Not,
    ast.If,
    ast.IfExp,
    ast.While,
    ast.Assert,
    ast.In,
    ast.NotIn,
    ast.Is,
    ast.IsNot,
    ast.Eq,
    ast.NotEq,
    ast.FloorDiv,
    ast.Mod,
    ast.comprehension,
    ast.Match,
)
FORBIDDEN_CALLS = {"min", "max", "any", "all", "bool", "int", "sum", "abs", "sorted", "divmod"}


def offences(tree: ast.Module) -> list[str]:
    """Constructs that ask a term for its truth value or that no solver term understands."""
    found = []
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name in CONCRETE_ONLY:
            continue
        for node in ast.walk(function):
            chained = isinstance(node, ast.Compare) and len(node.ops) > 1
            called = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in FORBIDDEN_CALLS
            )
            if chained or called or isinstance(node, FORBIDDEN):
                found.append(f"line {getattr(node, 'lineno', '?')}: {type(node).__name__}")
    return found


RULES = tuple(
    importlib.import_module(f"{spec.rules.__name__}.{module.name}")
    for module in pkgutil.iter_modules(spec.rules.__path__)
    if module.name != "releases"
)
"""All guards; :mod:`spec.rules.releases` holds the table of what releases do, and no formula."""

RELATION = (
    state,
    guards,
    book_moves,
    release_moves,
    request_moves,
    worker_moves,
    invariants,
    cross_attention,
    cross_attention_moves,
)
"""Everything that is an oracle, a proof term and a second opinion by one text."""


@pytest.mark.parametrize(
    "module", [*RULES, predicates, *RELATION], ids=lambda module: module.__name__
)
def test_rules_use_the_algebra_only(module: Any) -> None:
    """A rule that branches in Python is not the formula that the solvers prove."""
    assert offences(ast.parse(inspect.getsource(module))) == []


@pytest.mark.parametrize(
    "source",
    [
        "a and b",
        "not a",
        "a if b else c",
        "a in b",
        "a == b",
        "a != b",
        "0 <= a < b",
        "min(a, b)",
        "max(a, b)",
        "any(a)",
        "all(a)",
        "a // 2",
        "a is b",
        "[x for x in a]",
    ],
)
def test_the_check_of_the_rules_can_fail(source: str) -> None:
    """A check that lets one of these pass would not protect the rules."""
    assert offences(ast.parse(f"def rule(a, b, c):\n    return {source}"))


def test_exempt_functions_exist() -> None:
    """An exemption for a function that is gone could later exempt another one."""
    for name in CONCRETE_ONLY:
        assert callable(getattr(geometry, name))
