"""What is explored: small sets of requests, and configurations as a covering array.

A *layout* is a set of requests with their features; a *row* has a value for each axis of the
configuration. A layout and a row make a *case*: requests, an engine's settings, and what may be
chosen within a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TypeAlias, overload

from proofs.explore.case import Case, make_case, rows
from spec.errors import InputError
from spec.record.feature import Feature

Shape: TypeAlias = tuple[int, ...]
"""How many features each request has."""


@dataclass(frozen=True)
class Part:
    """Layouts of one shape.

    Attributes:
        shape: how many features each request has.
        num_rows: under about how many rows each layout is explored; 0 for all.
        only_tight: whether there are only layouts of one-token items without text between them.
    """

    shape: Shape
    num_rows: int = 0
    only_tight: bool = False


@dataclass(frozen=True)
class Scope:
    """What is explored.

    Attributes:
        parts: the layouts, by shape. Those of one-token items without text are explored under all
            rows: they show most.
        lengths: of features (tokens).
        gaps: text before a feature (tokens).
        tails: text after the last feature (tokens).
    """

    name: str
    parts: tuple[Part, ...]
    lengths: tuple[int, ...] = (1, 2)
    gaps: tuple[int, ...] = (0, 1)
    tails: tuple[int, ...] = (0, 1)


SCOPES = {
    scope.name: scope
    for scope in (
        Scope("small", (Part((1,)), Part((2,), 12), Part((1, 1), 2), Part((2, 2), 0, True))),
        Scope("default", (Part((1,)), Part((2,)), Part((1, 1), 12), Part((2, 2), 1))),
        Scope("full", (Part((1,)), Part((2,)), Part((1, 1)), Part((1, 2), 12), Part((2, 2)))),
    )
}


def scope_named(name: str) -> Scope:
    """The scope of the given name.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    scope = SCOPES.get(name)
    if scope is None:
        raise InputError(f"unknown scope {name!r}; known: {', '.join(sorted(SCOPES))}")
    return scope


@dataclass(frozen=True)
class Layouts:
    """All layouts of one shape, as numbers ``0 .. count - 1``."""

    scope: Scope
    shape: Shape

    def __iter__(self) -> Iterator[tuple[tuple[Feature, ...], ...]]:
        """Each layout: the features of each request, hashes up to renaming."""
        for prompts in product(*[_prompts(self.scope, count) for count in self.shape]):
            lengths = [length for prompt in prompts for _, length in prompt]
            for hashes in _partitions(lengths):
                names = iter(hashes)
                yield tuple(
                    tuple(Feature(o, n, chr(ord("A") + next(names))) for o, n in prompt)
                    for prompt in prompts
                )


def _prompts(scope: Scope, count: int) -> list[tuple[tuple[int, int], ...]]:
    """Offset and length of each feature of one request."""
    found = []
    for gaps in product(scope.gaps, repeat=count):
        for lengths in product(scope.lengths, repeat=count):
            at, places = 0, []
            for gap, length in zip(gaps, lengths, strict=True):
                places.append((at + gap, length))
                at += gap + length
            found.append(tuple(places))
    return found


def _partitions(lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Hashes of features of the given lengths, up to renaming; one hash has one length."""

    def grow(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        at = len(chosen)
        if at == len(lengths):
            yield chosen
            return
        for name in range(max(chosen, default=-1) + 2):
            if all(lengths[i] == lengths[at] for i, item in enumerate(chosen) if item == name):
                yield from grow((*chosen, name))

    return grow(())


class Cases(Sequence[Case]):
    """Every case of a scope, in an order that never changes.

    A shape that is explored under a part of the rows meets every so many of them, beginning with
    another one for each layout.
    """

    def __init__(self, scope: Scope) -> None:
        self._table = rows()
        self._layouts: list[tuple[tuple[tuple[Feature, ...], ...], tuple[int, ...]]] = []
        self._keys: list[tuple[int, int]] = []
        for part in scope.parts:
            stride = max(1, len(self._table) // part.num_rows) if part.num_rows else 1
            for features in Layouts(scope, part.shape):
                for tails in product(scope.tails, repeat=len(part.shape)):
                    is_tight = _is_tight(features, tails)
                    if part.only_tight and not is_tight:
                        continue
                    number = len(self._layouts)
                    self._layouts.append((features, tails))
                    step = 1 if is_tight else stride
                    numbers = range(number % step, len(self._table), step)
                    self._keys += [(number, row) for row in numbers]

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> list[Case]: ...
    def __getitem__(self, index: int | slice) -> Case | list[Case]:
        """A case, or some."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        layout, row = self._keys[index]
        return make_case(row, self._table[row], *self._layouts[layout])

    @property
    def num_layouts(self) -> int:
        """How many layouts there are."""
        return len(self._layouts)


def _is_tight(features: Sequence[tuple[Feature, ...]], tails: Sequence[int]) -> bool:
    """Whether all items have one token, and there is no text."""
    return not any(tails) and all(
        feature.length == 1 and feature.offset == place
        for own in features
        for place, feature in enumerate(own)
    )


@cache
def cases(scope: Scope) -> Cases:
    """Every case of a scope."""
    return Cases(scope)
