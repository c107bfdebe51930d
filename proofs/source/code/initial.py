"""What a class of a release sets to a plain value when an object is made, read from its source.

A stand-in needs dozens of attributes that start as 0, ``None`` or an empty queue. Those are taken
from the release's own ``__init__``, so that a counter of a release's own needs no entry here. An
attribute that ``__init__`` assigns more than once depends on the configuration and is left out:
whoever needs it must say what it is.
"""

from __future__ import annotations

import ast
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from proofs.source.code.release import SourceModule

_EMPTY: dict[str, Callable[[], Any]] = {"set": set, "dict": dict, "list": list, "deque": deque}


class InitialValues:
    """Makes the plain attributes of new objects of a class.

    Args:
        module: the class's module.
        class_name: the class; without an ``__init__`` it has none.
        makers: what makes a value where ``__init__`` calls a function of that name.
    """

    def __init__(
        self,
        module: SourceModule,
        class_name: str,
        makers: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        self._makers = {**_EMPTY, **(makers or {})}
        node = module.definition(class_name, "__init__")
        assigned = [] if node is None else list(_assignments(node))
        times = Counter(name for name, _ in assigned)
        self._plain = {
            name: self._maker(value)
            for name, value in assigned
            if times[name] == 1 and self._is_plain(value)
        }

    def new(self) -> dict[str, Any]:
        """Fresh values by attribute."""
        return {name: make() for name, make in self._plain.items()}

    def _is_plain(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in self._makers:
                    return name not in _EMPTY or not (node.args or node.keywords)
            return False
        try:
            ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            return False
        return True

    def _maker(self, node: ast.expr) -> Callable[[], Any]:
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            return self._makers[node.func.id]
        if isinstance(node, ast.Constant):
            # Nobody can change it, so that all objects may share it.
            return lambda: node.value
        return partial(ast.literal_eval, node)


def _assignments(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Every assignment to an attribute of ``self``, nested ones included."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if _is_own(target):
                        yield target.attr, value  # type: ignore[attr-defined]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                if _is_own(target):
                    yield target.attr, value  # type: ignore[union-attr]
            case ast.AugAssign(target=target, value=value):
                if _is_own(target):
                    # Twice, so that it is never taken for what the attribute starts with.
                    yield target.attr, value  # type: ignore[union-attr]
                    yield target.attr, value  # type: ignore[union-attr]
            case _:
                pass


def _is_own(target: ast.expr) -> bool:
    return (
        isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    )
