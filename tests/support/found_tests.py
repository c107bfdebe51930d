"""Find the tests that the ledger names, and see that each is about its claim."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from impl.faults.switches import FAULTS
from proofs.ledger.records import TestRecord


def found(named: Mapping[str, tuple[str, ...]]) -> Iterator[TestRecord]:
    """Those of the named tests that exist and are about the claim they are named for."""
    for claim, tests in named.items():
        for test in tests:
            if _is_about(test, claim):
                yield TestRecord(test, claim)


def _is_about(test: str, claim: str) -> bool:
    """Whether the test exists, and its text or its parameter names the claim or its fault."""
    place, _, parameter = test.removesuffix("]").partition("[")
    module_name, _, name = place.partition("::")
    try:
        module = import_module(f"tests.{module_name}")
    except ModuleNotFoundError:
        return False
    function = getattr(module, name, None)
    if not name.startswith("test_") or not callable(function):
        return False
    if not parameter:
        return claim in _strings(module).get(name, ())
    breaking = {f.name for f in FAULTS if claim in (*f.breaks, *f.breaks_in_loop)}
    return parameter in {claim, *breaking} and parameter in _parameters(function)


@cache
def _strings(module: ModuleType) -> dict[str, frozenset[str]]:
    """By test, the strings that its text holds."""
    tree = ast.parse(inspect.getsource(module))
    return {
        function.name: frozenset(
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
    }


def _parameters(function: Any) -> set[str]:
    """The ids of a test's parameters, each of them alone."""
    ids: set[str] = set()
    for mark in getattr(function, "pytestmark", ()):
        if mark.name == "parametrize":
            name = mark.kwargs.get("ids") or str
            values = mark.args[1]
            ids |= {name(v) for v in values} if callable(name) else set(map(str, name))
    return ids
