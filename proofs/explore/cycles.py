"""Circles of a graph."""

from __future__ import annotations

from collections.abc import Sequence


def find_cycle(edges: Sequence[tuple[int, int, int]]) -> int | None:
    """An edge that closes a circle of the given edges, or ``None``."""
    following: dict[int, list[tuple[int, int]]] = {}
    for source, target, number in edges:
        following.setdefault(source, []).append((target, number))
    done: set[int] = set()
    for root in following:
        if root in done:
            continue
        open_nodes = {root}
        stack = [(root, iter(following[root]))]
        while stack:
            node, rest = stack[-1]
            for target, number in rest:
                if target in open_nodes:
                    return number
                if target not in done:
                    open_nodes.add(target)
                    stack.append((target, iter(following.get(target, ()))))
                    break
            else:
                stack.pop()
                open_nodes.discard(node)
                done.add(node)
    return None
