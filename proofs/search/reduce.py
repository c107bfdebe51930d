"""Make one thing smaller, step by step, while it keeps meeting a condition. No draw, no clock.

What a smaller thing is, which ones to try and which of them are legal differs between a single case
and a whole run, and is given.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

ThingT = TypeVar("ThingT", bound=Hashable)


def reduce(
    thing: ThingT,
    condition: Callable[[ThingT], bool],
    *,
    candidates: Callable[[ThingT], Iterator[ThingT]],
    size: Callable[[ThingT], Any],
    is_allowed: Callable[[ThingT], bool],
    may_try: Callable[[], bool],
) -> ThingT:
    """The smallest that is reached by one simplification after the other.

    After each success the candidates begin anew, so that the boldest are always tried first. The
    condition is asked about each candidate once.

    Args:
        thing: meets the condition.
        condition: what every step must still meet; asking it runs the target.
        candidates: simplifications, the boldest first; not all need be smaller or allowed.
        size: a total order; only what is smaller is tried.
        is_allowed: whether a candidate may be given to the target.
        may_try: asked before each try. When it says no, the smallest so far is returned.
    """
    asked = {thing}
    improved = True
    while improved:
        improved = False
        current = size(thing)
        for candidate in candidates(thing):
            if candidate in asked:
                continue
            asked.add(candidate)
            if size(candidate) >= current or not is_allowed(candidate):
                continue
            if not may_try():
                return thing
            if condition(candidate):
                thing, improved = candidate, True
                break
    return thing


def at_most(tries: int, may_try: Callable[[], bool] = lambda: True) -> Callable[[], bool]:
    """A ``may_try`` that says no after so many tries, or when another one does."""
    left = iter(range(tries))
    return lambda: may_try() and next(left, None) is not None
