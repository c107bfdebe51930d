"""Every change to a rule turns an obligation red."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proofs.smt import mutate
from proofs.smt.obligation import Obligation, negated
from proofs.smt.solvers import Z3
from proofs.theorems.groups import all_obligations
from spec.rules import free as rules
from spec.rules import geometry

ALL = all_obligations()


def _functions(module: types.ModuleType) -> tuple[str, ...]:
    return tuple(
        name
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType)
        and value.__module__ == module.__name__
        and name != "count_rows_before"
    )


def _connective_mutants(tree: ast.Module, functions: tuple[str, ...]) -> Iterator[mutate.Mutant]:
    """Each operand of a conjunction or disjunction dropped; the two limits of a slice swapped."""
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) or function.name not in functions:
            continue
        calls = [
            (number, node)
            for number, node in enumerate(ast.walk(function))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("and_", "or_", "max_", "min_")
        ]
        for number, call in calls:
            assert isinstance(call.func, ast.Name)
            for index in range(len(call.args)):
                changed = ast.parse(ast.unparse(tree))
                (copy,) = (
                    f
                    for f in changed.body
                    if isinstance(f, ast.FunctionDef) and f.name == function.name
                )
                node = list(ast.walk(copy))[number]
                assert isinstance(node, ast.Call)
                before = ast.unparse(node)
                assert len(node.args) == 2
                idempotent = "and_" if call.func.id in ("and_", "or_") else "max_"
                node.func = ast.Name(idempotent, ast.Load())
                node.args = [node.args[1 - index]] * 2
                ast.fix_missing_locations(changed)
                yield mutate.Mutant(
                    function.name, call.lineno, f"{before} -> {ast.unparse(node)}", changed
                )


def _mutants(module: types.ModuleType) -> dict[str, mutate.Mutant]:
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    functions = _functions(module)
    found = [*mutate.mutants(tree, functions), *_connective_mutants(tree, functions)]
    return {mutant.name: mutant for mutant in found}


RULE_MUTANTS = {
    f"{module.__name__}.{name}": (module, mutant)
    for module in (rules, geometry)
    for name, mutant in _mutants(module).items()
}

EQUIVALENT: dict[str, str] = {}
"""Mutants that mean the same as the original, with the reason."""


def _install(monkeypatch: pytest.MonkeyPatch, module: types.ModuleType, tree: ast.Module) -> None:
    """Replace the module's functions by the mutant's, wherever they were imported."""
    namespace: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(tree, str(module.__file__), "exec"), namespace)
    users = [m for name, m in sys.modules.items() if name.startswith(("spec.", "proofs."))]
    for name in _functions(module):
        original = getattr(module, name)
        for user in users:
            if getattr(user, name, None) is original:
                monkeypatch.setattr(user, name, namespace[name])


def _turns_red(obligation: Obligation) -> bool:
    """Whether a solver finds the obligation wrong."""
    return Z3().check(negated(obligation.build)).answer == "sat"


@pytest.mark.parametrize("name", RULE_MUTANTS)
def test_mutant_of_a_rule_turns_an_obligation_red(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A rule that can be changed without an obligation noticing is not proved."""
    module, mutant = RULE_MUTANTS[name]
    _install(monkeypatch, module, mutant.tree)
    red = any(_turns_red(obligation) for obligation in ALL)
    assert red is (name not in EQUIVALENT)


def test_each_rule_has_mutants() -> None:
    """A rule without a mutant would be left out above unseen."""
    mutated = {mutant.function for _, mutant in RULE_MUTANTS.values()}
    calls_only = {"is_read", "row_range", "target_window"}
    assert set(_functions(rules)) | set(_functions(geometry)) == mutated | calls_only
    assert set(EQUIVALENT) <= set(RULE_MUTANTS)
