"""Changes to a release's protocol code that change nothing of what it does, as a clean-up makes.

Each is made on the syntax trees of whole modules, at every place where it applies.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.protocol_faults import PLACES

Modules = Mapping[str, ast.Module]
"""Syntax trees by name below ``vllm``."""

_OUTPUT = "v1.core.sched.output"
_COUNTED = re.compile(r"num_|budget|slots|tokens|embeds")


@dataclass(frozen=True)
class Refactoring:
    """One kind of change.

    Attributes:
        name: what a reviewer would call it.
        change: makes it in trees that are its own to change; how often it applied.
    """

    name: str
    change: Callable[[Modules], int]


def parsed(package: Path) -> dict[str, ast.Module]:
    """The modules with protocol code, parsed anew.

    Args:
        package: the folder ``vllm``.
    """
    names = dict.fromkeys([*(place.module for place in PLACES), _OUTPUT])
    return {
        name: ast.parse((package / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))
        for name in names
    }


def _classes(modules: Modules) -> Iterator[tuple[ast.Module, ast.ClassDef, list[ast.FunctionDef]]]:
    """The classes with protocol code, and their methods that are some."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for place in PLACES:
        if place.class_name is not None:
            wanted.setdefault((place.module, place.class_name), []).extend(place.functions)
    for (module, name), functions in wanted.items():
        for node in list(modules[module].body):
            if isinstance(node, ast.ClassDef) and node.name == name:
                methods = [
                    method
                    for method in node.body
                    if isinstance(method, ast.FunctionDef) and method.name in functions
                ]
                yield modules[module], node, methods


def _methods(modules: Modules) -> Iterator[ast.FunctionDef]:
    for _module, _owner, methods in _classes(modules):
        yield from methods


def _rewritten(modules: Modules, rewrite: type[_Counting]) -> int:
    count = 0
    for method in _methods(modules):
        rewriting = rewrite()
        method.body = [
            node for statement in method.body for node in _as_list(rewriting.visit(statement))
        ]
        ast.fix_missing_locations(method)
        count += rewriting.count
    return count


def _as_list(visited: ast.stmt | list[ast.stmt]) -> list[ast.stmt]:
    return visited if isinstance(visited, list) else [visited]


class _Counting(ast.NodeTransformer):
    """A rewriting that counts where it applied."""

    def __init__(self) -> None:
        self.count = 0


# --- inside functions ------------------------------------------------------------------------


def _rename_locals(modules: Modules) -> int:
    count = 0
    for method in _methods(modules):
        names = {
            node.id
            for node in ast.walk(method)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        names -= {node.arg for node in ast.walk(method) if isinstance(node, ast.arg)}
        for node in ast.walk(method):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                names -= {*node.names}
        for node in ast.walk(method):
            if isinstance(node, ast.Name) and node.id in names:
                node.id = f"renamed_{node.id}"
                count += 1
    return count


class _TurnedComparisons(_Counting):
    _TURNED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        turned = self._TURNED.get(type(node.ops[0]))
        if turned is None or len(node.ops) > 1 or _calls(node):
            return node
        self.count += 1
        return ast.Compare(node.comparators[0], [turned()], [node.left])


class _SpelledOutUpdates(_Counting):
    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        # An update of a list or a set changes it in place; these are of numbers.
        target = node.target
        if not isinstance(node.op, (ast.Add, ast.Sub)) or isinstance(target, ast.Subscript):
            return node
        if not _COUNTED.search(ast.unparse(target)):
            return node
        self.count += 1
        before = ast.parse(ast.unparse(target), mode="eval").body
        return ast.Assign([target], ast.BinOp(before, node.op, node.value))


class _NestedConditions(_Counting):
    def visit_If(self, node: ast.If) -> ast.stmt:
        self.generic_visit(node)
        if node.orelse or not isinstance(node.test, ast.BoolOp):
            return node
        if not isinstance(node.test.op, ast.And):
            return node
        self.count += 1
        body = node.body
        for test in reversed(node.test.values):
            body = [ast.If(test, body, [])]
        return body[0]


class _NamedResults(_Counting):
    def visit_Return(self, node: ast.Return) -> ast.stmt | list[ast.stmt]:
        if node.value is None or isinstance(node.value, (ast.Name, ast.Constant)):
            return node
        self.count += 1
        named = ast.Assign([ast.Name("what_is_returned", ast.Store())], node.value)
        return [named, ast.Return(ast.Name("what_is_returned", ast.Load()))]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node


class _SpelledOutCopies(_Counting):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="list"), args=[ast.expr() as values], keywords=[]):
                self.count += 1
                entry = ast.Name("entry", ast.Load())
                each = ast.comprehension(ast.Name("entry", ast.Store()), values, [], 0)
                return ast.ListComp(entry, [each])
        return node


def _nest_after_early_returns(modules: Modules) -> int:
    count = 0
    for method in _methods(modules):
        for index, statement in enumerate(method.body):
            match statement:
                case ast.If(test=test, body=[ast.Return(value=None)], orelse=[]):
                    rest = method.body[index + 1 :]
                    if rest:
                        nested = ast.If(ast.UnaryOp(ast.Not(), test), rest, [])
                        method.body = [*method.body[:index], nested]
                        ast.fix_missing_locations(method)
                        count += 1
                    break
    return count


def _calls(node: ast.AST) -> bool:
    return any(isinstance(inner, (ast.Call, ast.NamedExpr)) for inner in ast.walk(node))


# --- of functions and classes ----------------------------------------------------------------


def _extract_conditions(modules: Modules) -> int:
    """Put the conditions of short methods into functions of the module."""
    count = 0
    for module, owner, methods in _classes(modules):
        for method in methods:
            if len(method.body) > 12:
                continue
            for node in [node for node in ast.walk(method) if isinstance(node, ast.If)]:
                names = _names_in(node.test)
                if names is None:
                    continue
                name = f"_condition_{owner.name}_{method.name}_{count}".replace("__", "_")
                arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
                helper = ast.FunctionDef(name, arguments, [ast.Return(node.test)], [], None)
                node.test = ast.Call(
                    ast.Name(name, ast.Load()), [ast.Name(n, ast.Load()) for n in names], []
                )
                module.body.insert(module.body.index(owner), helper)
                count += 1
        ast.fix_missing_locations(module)
    return count


def _names_in(test: ast.expr) -> list[str] | None:
    """The names that a condition reads; ``None`` where it does more than read."""
    if not isinstance(test, (ast.Compare, ast.BoolOp)) or _calls(test):
        return None
    if any(isinstance(node, (ast.Lambda, ast.comprehension)) for node in ast.walk(test)):
        return None
    names = [node.id for node in ast.walk(test) if isinstance(node, ast.Name)]
    return [name for name in dict.fromkeys(names) if not hasattr(builtins, name)]


def _name_arguments(modules: Modules) -> int:
    """Name the arguments in calls of protocol methods of the object itself and of its book."""
    parameters: dict[str, list[str]] = {}
    for method in _methods(modules):
        if not method.decorator_list:
            parameters[method.name] = [argument.arg for argument in method.args.args[1:]]
    count = 0
    for method in _methods(modules):
        for node in ast.walk(method):
            match node:
                case ast.Call(func=ast.Attribute(value=value, attr=name), args=[_, *_]):
                    whose = ast.unparse(value)
                    names = parameters.get(name)
                    if whose not in ("self", "self.encoder_cache_manager") or names is None:
                        continue
                    if any(isinstance(argument, ast.Starred) for argument in node.args):
                        continue
                    named = zip(names, node.args, strict=False)
                    node.keywords = [*(ast.keyword(n, a) for n, a in named), *node.keywords]
                    node.args = []
                    count += 1
        ast.fix_missing_locations(method)
    return count


def _move_to_mixins(modules: Modules) -> int:
    """Move methods to a new first base of their class."""
    count = 0
    for module, owner, methods in _classes(modules):
        moved = [
            method
            for method in methods
            if "super()" not in ast.unparse(method)
            and "._" + owner.name not in ast.unparse(method)
            and not re.search(r"self\.__\w+(?<!__)\b", ast.unparse(method))
        ]
        if not moved:
            continue
        mixin = ast.ClassDef(f"{owner.name}Part", [], [], [*moved], [])
        owner.body = [node for node in owner.body if node not in moved] or [ast.Pass()]
        owner.bases.insert(0, ast.Name(mixin.name, ast.Load()))
        module.body.insert(module.body.index(owner), mixin)
        ast.fix_missing_locations(module)
        count += len(moved)
    return count


def _add_fields(modules: Modules) -> int:
    """Give what the scheduler hands to the workers one more field, with a default."""
    count = 0
    for node in modules[_OUTPUT].body:
        if isinstance(node, ast.ClassDef) and any(
            "dataclass" in ast.unparse(decorator) for decorator in node.decorator_list
        ):
            fields = [i for i, entry in enumerate(node.body) if isinstance(entry, ast.AnnAssign)]
            field = ast.parse("a_field_that_is_new: int = 0").body[0]
            node.body.insert(fields[-1] + 1, field)
            count += 1
    ast.fix_missing_locations(modules[_OUTPUT])
    return count


def _by(rewrite: type[_Counting]) -> Callable[[Modules], int]:
    return lambda modules: _rewritten(modules, rewrite)


REFACTORINGS: tuple[Refactoring, ...] = (
    Refactoring("locals renamed", _rename_locals),
    Refactoring("comparisons turned round", _by(_TurnedComparisons)),
    Refactoring("updates of numbers spelled out", _by(_SpelledOutUpdates)),
    Refactoring("conjunctions nested", _by(_NestedConditions)),
    Refactoring("results named before they are returned", _by(_NamedResults)),
    Refactoring("copies of lists spelled out", _by(_SpelledOutCopies)),
    Refactoring("the rest nested behind an early return", _nest_after_early_returns),
    Refactoring("conditions extracted into functions", _extract_conditions),
    Refactoring("arguments named in calls", _name_arguments),
    Refactoring("methods moved to a mixin", _move_to_mixins),
    Refactoring("fields added to what workers are given", _add_fields),
)
