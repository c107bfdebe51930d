"""The decision tree of a symbolic run: forks on comparisons, and what each path returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import z3

from proofs.symbolic.integers import Condition, truth_term

Value = TypeVar("Value")


@dataclass(frozen=True)
class Leaf(Generic[Value]):
    """The end of one path: what the run returned."""

    outcome: Value


@dataclass(frozen=True)
class Pruned:
    """A branch that the solver found infeasible.

    Claims are proved with it counted as a failure, so both solvers check every prune again.
    """


@dataclass(frozen=True)
class Unfinished:
    """A branch that the budget did not reach: whatever depends on it is unknown."""

    reason: str


@dataclass
class Fork(Generic[Value]):
    """A comparison, and what follows when it holds and when it does not."""

    condition: z3.BoolRef
    holds: Tree[Value]
    fails: Tree[Value]


Tree: TypeAlias = "Leaf[Value] | Fork[Value] | Pruned | Unfinished"


@dataclass(frozen=True)
class Decision:
    """One answer on a path: forced where the other was infeasible."""

    condition: z3.BoolRef
    taken: bool
    forced: bool


def insert(tree: Tree[Value] | None, decisions: list[Decision], end: Tree[Value]) -> Tree[Value]:
    """Add one path to the tree; branches not yet run hold ``Unfinished`` until they are."""
    root = tree
    parent: Fork[Value] | None = None
    went = False
    node = root
    for decision in decisions:
        if not isinstance(node, Fork):
            missing: Tree[Value] = Pruned() if decision.forced else Unfinished("not run")
            node = Fork(decision.condition, missing, missing)
            root = _attach(parent, went, node, root)
        parent, went = node, decision.taken
        node = node.holds if decision.taken else node.fails
    return _attach(parent, went, end, root)


def _attach(
    parent: Fork[Value] | None, went: bool, node: Tree[Value], root: Tree[Value] | None
) -> Tree[Value]:
    if parent is None:
        return node
    if went:
        parent.holds = node
    else:
        parent.fails = node
    assert root is not None
    return root


def leaves(tree: Tree[Value]) -> Iterator[tuple[list[z3.BoolRef], Value]]:
    """Every finished path: its conditions, and what it returned."""
    stack: list[tuple[Tree[Value], list[z3.BoolRef]]] = [(tree, [])]
    while stack:
        node, conditions = stack.pop()
        if isinstance(node, Leaf):
            yield conditions, node.outcome
        elif isinstance(node, Fork):
            stack.append((node.fails, [*conditions, z3.Not(node.condition)]))
            stack.append((node.holds, [*conditions, node.condition]))


def denote(
    tree: Tree[Value],
    of_leaf: Callable[[Value], Condition],
    context: z3.Context,
    *,
    pruned: bool = False,
) -> z3.BoolRef:
    """The condition under which the run ends in a leaf that satisfies ``of_leaf``.

    Args:
        of_leaf: condition for one leaf.
        context: the tree's z3 context.
        pruned: what a pruned branch counts as. ``False`` makes a proof of the whole condition also
            a proof that every pruned branch is infeasible.
    """
    passed: list[z3.BoolRef] = []
    while isinstance(tree, Fork) and not pruned:
        # A chain of prunes is one conjunction: it is built and solved faster than nested choices.
        if isinstance(tree.fails, Pruned):
            passed.append(tree.condition)
            tree = tree.holds
        elif isinstance(tree.holds, Pruned):
            passed.append(z3.Not(tree.condition))
            tree = tree.fails
        else:
            break
    if isinstance(tree, Leaf):
        end = truth_term(of_leaf(tree.outcome), context)
    elif isinstance(tree, Fork):
        end = z3.If(
            tree.condition,
            denote(tree.holds, of_leaf, context, pruned=pruned),
            denote(tree.fails, of_leaf, context, pruned=pruned),
        )
    else:
        end = z3.BoolVal(pruned if isinstance(tree, Pruned) else False, context)
    return z3.And(*passed, end) if passed else end
