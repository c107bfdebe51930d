"""One symbolic request, book and configuration for the scheduling of encoder inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, TypeAlias

import z3

from proofs.source.ask.features import SymbolicFeatures
from proofs.source.code.encoder_passes import (
    EntryInput,
    SchedulingInput,
    run_scheduling,
)
from proofs.source.code.release import ReleaseSource
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import SymbolicInt
from proofs.symbolic.tree import Tree
from spec.algebra import iff
from spec.functions.observations import SchedulingObservation
from spec.functions.scheduling_cases import Holder

Status: TypeAlias = Literal["absent"] | Holder
"""What the book has of a hash before the first pass."""


@dataclass(frozen=True)
class SchedulingShape:
    """What is enumerated rather than symbolic.

    Attributes:
        identifiers: one letter per feature; equal letters are equal hashes.
        dense: whether the feature's every position takes a row.
        book: a status for each hash in order of appearance.
        oldest: the hashes that nobody holds, in the order in which they would be evicted.
        whole_items: chunking of items is off.
        far: the scheduler's shift is above 1; else 0 or 1.
        lone: nobody else holds anything, and every item fits the cache and the budgets.
        num_passes: passes to run.
    """

    identifiers: str
    dense: tuple[bool, ...]
    book: tuple[Status, ...]
    oldest: str = ""
    whole_items: bool = False
    far: bool = False
    lone: bool = False
    num_passes: int = 1

    @property
    def hashes(self) -> tuple[str, ...]:
        """The different hashes in order of appearance."""
        return tuple(dict.fromkeys(self.identifiers))

    def describe(self) -> str:
        """Words for reports."""
        kinds = ", ".join("dense" if dense else "masked" for dense in self.dense)
        held = ", ".join(
            f"{name} held by {holder}" if holder != "absent" else f"{name} absent"
            for name, holder in zip(self.hashes, self.book, strict=True)
        )
        order = f", evicted in the order {self.oldest}" if len(self.oldest) > 1 else ""
        passes = f", {self.num_passes} passes" if self.num_passes > 1 else ""
        return f"features {self.identifiers}: {kinds}; {held}{order}{passes}"

    @property
    def part(self) -> str:
        """What of the scheduling it shows: each configuration has faults of its own."""
        words = (("alone", self.lone), ("whole", self.whole_items), ("far", self.far))
        return " ".join(["scheduling", *(word for word, applies in words if applies)])


_STATUSES: tuple[Status, ...] = ("absent", "nobody", "another")
_PATTERNS = {1: ("A",), 2: ("AB", "AA"), 3: ("ABC", "AAB", "ABA", "ABB", "AAA")}

_FAR = {1: (False, True), 2: (False, True), 3: (False,)}
"""Shifts above 1, and 0 or 1, by the number of features: three take long, and show no more."""


def _books(
    identifiers: str, statuses: Sequence[Status], *, dense: bool = True
) -> Iterator[SchedulingShape]:
    """A shape for every initial book and configuration.

    Entries that nobody holds are evicted in the order of the prompt, or in the reverse one.
    """
    names = "".join(dict.fromkeys(identifiers))
    for book in product(statuses, repeat=len(names)):
        free = "".join(n for n, status in zip(names, book, strict=True) if status == "nobody")
        for oldest in dict.fromkeys((free, free[::-1])):
            for whole_items, far in product((False, True), _FAR[len(identifiers)]):
                yield SchedulingShape(
                    identifiers, (dense,) * len(identifiers), book, oldest, whole_items, far
                )


def shapes(max_features: int) -> Iterator[SchedulingShape]:
    """One pass on every initial book; masks for one and two features of different hashes.

    Who holds an entry makes no difference to three features that two do not show.
    """
    for count in range(1, max_features + 1):
        statuses = _STATUSES[:3] if count < 3 else _STATUSES[:2]
        for identifiers in _PATTERNS[count]:
            yield from _books(identifiers, statuses)
            if identifiers in ("A", "AB"):
                masked = _books(identifiers, statuses, dense=False)
                yield from (shape for shape in masked if count == 1 or not shape.far)


def lone_shapes(max_features: int) -> Iterator[SchedulingShape]:
    """A request that has the engine for itself, followed over several passes."""
    for count in range(1, max_features + 1):
        for identifiers in _PATTERNS[count]:
            for shape in _books(identifiers, _STATUSES[:2]):
                num_passes = 1 if count == 3 else 2 if count == 2 and shape.far else 3
                yield replace(shape, lone=True, num_passes=num_passes)


class SchedulingScenario:
    """A symbolic request of one shape, explored once; every integer is unbounded."""

    def __init__(self, release: ReleaseSource, shape: SchedulingShape) -> None:
        self.shape = shape
        self.exploration = Exploration()
        integer = self.exploration.integer
        self.features = SymbolicFeatures(self.exploration, shape.identifiers, shape.dense)
        self.prefill, self.computed = integer("prefill_len"), integer("num_computed")
        self.token_budget, self.encoder_budget = integer("token_budget"), integer("encoder_budget")
        self.cache_size, self.shift = integer("cache_size"), integer("scheduler_shift")
        self.drafter = self.exploration.boolean("uses_drafter")
        self._assume_counts()
        self.rows = self.features.rows_by_hash
        self.entries = tuple(self._entries())
        self.rows |= {entry.identifier: entry.num_rows for entry in self.entries}
        self._assume_sizes()
        given = self._input()
        self.tree: Tree[SchedulingObservation] = self.exploration.explore(
            lambda: run_scheduling(release, given)
        )

    def _assume_counts(self) -> None:
        assume = self.exploration.assume
        assume(self.features.end <= self.prefill, self.computed < self.prefill)
        assume(self.computed >= 0, self.token_budget >= 1)
        assume(self.encoder_budget >= 0, self.cache_size >= 0, self.shift >= 0)
        assume(iff(self.drafter, self.shift >= 1))

    def _assume_sizes(self) -> None:
        assume = self.exploration.assume
        assume(self.shift >= 2 if self.shape.far else self.shift <= 1)
        if self.shape.lone:
            assume(self.token_budget > self.shift)
        self.features.assume_contents()
        if self.shape.lone:
            for rows, length in zip(self.features.rows, self.features.lengths, strict=True):
                assume(rows <= self.cache_size, rows <= self.encoder_budget)
                assume(*([length <= self.token_budget] if self.shape.whole_items else []))
        taken = [entry.num_rows for entry in self.entries]
        assume(*(rows >= 0 for rows in taken))
        assume(sum(taken) <= self.cache_size)

    def _entries(self) -> Iterator[EntryInput]:
        """What the book holds: the hashes' entries, and others of any size beside them.

        Any number of other entries that nobody holds, between two of the hashes' in the order of
        eviction, give the same room as one of their total size; a size of 0 stands for none.
        """
        for name, holder in zip(self.shape.hashes, self.shape.book, strict=True):
            if holder != "absent" and holder != "nobody":
                yield EntryInput(name, self.rows[name], holder)
        integer = self.exploration.integer
        if self.shape.lone:
            for name in self.shape.oldest:
                yield EntryInput(name, self.rows[name], "nobody")
            return
        yield EntryInput("held", integer("rows_held_by_others"), "another")
        for index, name in enumerate(self.shape.oldest):
            yield EntryInput(f"old-{index}", integer(f"rows_unreferenced_{index}"), "nobody")
            yield EntryInput(name, self.rows[name], "nobody")
        yield EntryInput("young", integer("rows_unreferenced_last"), "nobody")

    def _input(self) -> SchedulingInput:
        return SchedulingInput(
            self.features.inputs(),
            self.prefill,
            self.computed,
            self.token_budget,
            self.encoder_budget,
            self.cache_size,
            self.shift,
            self.shape.whole_items,
            self.drafter,
            self.entries,
            self.shape.num_passes,
        )

    @property
    def sizes(self) -> list[z3.ArithRef]:
        """The integers of a counterexample, to be made small."""
        return [
            self.token_budget.term,
            self.computed.term,
            *self.features.sizes,
            self.prefill.term,
            self.shift.term,
            self.cache_size.term,
            self.encoder_budget.term,
            *(
                _term(entry.num_rows)
                for entry in self.entries
                if entry.identifier not in self.shape.hashes
            ),
        ]


def _term(value: object) -> z3.ArithRef:
    assert isinstance(value, SymbolicInt)
    return value.term
