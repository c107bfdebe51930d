"""Mutants of guards: each comparison off by one or turned round, each term or condition dropped.

Of a chain of comparisons each is made strict or loose, and the first and the last are dropped.

A suite that cannot tell a mutant from the original does not check that guard. Mutants are made in
memory from the syntax tree; nothing is written.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One change to one function.

    Attributes:
        line: line of the change in the original source.
        change: the original and the changed expression.
        tree: the whole changed module.
    """

    function: str
    line: int
    change: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Short name for reports."""
        return f"{self.function}:{self.line}: {self.change}"


STRICTER_OR_LOOSER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}

_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def mutants(
    tree: ast.Module, functions: tuple[str, ...], class_name: str | None = None
) -> Iterator[Mutant]:
    """Yield every mutant of the named functions of a module, or methods of one of its classes."""
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name]
    inside = tree if class_name is None else ast.Module([*classes], [])
    for function in ast.walk(inside):
        if isinstance(function, ast.FunctionDef) and function.name in functions:
            yield from _mutants_of(tree, function)


def _mutants_of(tree: ast.Module, function: ast.FunctionDef) -> Iterator[Mutant]:
    for node in ast.walk(function):
        if not isinstance(node, ast.expr):
            continue
        for replacement in _replacements(node):
            yield Mutant(
                function=function.name,
                line=node.lineno,
                change=f"{ast.unparse(node)} -> {ast.unparse(replacement)}",
                tree=_replaced(tree, node, replacement),
            )


def _replacements(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            flipped = STRICTER_OR_LOOSER[type(operator)]()
            yield ast.Compare(left, [flipped], [right])
            if isinstance(operator, _ORDER):
                other_way = ast.BinOp(right, _away(operator), ast.Constant(1))
                yield ast.Compare(left, [operator], [other_way])
        case ast.Compare(left=left, ops=operators, comparators=values):
            for index, operator in enumerate(operators):
                flipped = STRICTER_OR_LOOSER[type(operator)]()
                changed = [*operators[:index], flipped, *operators[index + 1 :]]
                yield ast.Compare(left, changed, values)
            yield ast.Compare(values[0], operators[1:], values[1:])
            yield ast.Compare(left, operators[:-1], values[:-1])
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
            yield left
            yield right if isinstance(operator, ast.Add) else ast.UnaryOp(ast.USub(), right)
        case ast.BoolOp(values=values) if len(values) > 1:
            for index in range(len(values)):
                kept = values[:index] + values[index + 1 :]
                yield kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=[first, second]):
            yield first
            yield second
            swapped = ast.Name("min" if name == "max" else "max", ast.Load())
            yield ast.Call(swapped, [first, second], [])


def _away(operator: ast.cmpop) -> ast.operator:
    """The direction that the strict or loose twin of the operator does not already cover."""
    return ast.Add() if isinstance(operator, (ast.LtE, ast.Gt)) else ast.Sub()


def _replaced(tree: ast.Module, node: ast.expr, replacement: ast.expr) -> ast.Module:
    """A copy of the module in which one node is another; the original stays as it is.

    Only the nodes above the change are copied: modules of engines are large, and nothing else
    differs.
    """
    fixed = ast.fix_missing_locations(ast.copy_location(copy.deepcopy(replacement), node))
    changed = copy.copy(tree)
    above: ast.AST = changed
    path = _path_to(tree, node)
    for step, (name, index) in enumerate(path):
        child = getattr(above, name)
        below = (
            fixed if step == len(path) - 1 else copy.copy(child if index is None else child[index])
        )
        if index is None:
            setattr(above, name, below)
        else:
            setattr(above, name, [*child[:index], below, *child[index + 1 :]])
        above = below
    return changed


def _path_to(tree: ast.AST, node: ast.AST) -> list[tuple[str, int | None]]:
    for name, value in ast.iter_fields(tree):
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if child is node:
                return [(name, index)]
            if isinstance(child, ast.AST):
                below = _path_to(child, node)
                if below:
                    return [(name, index), *below]
    return []
