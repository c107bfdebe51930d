"""One symbolic request that has an engine for itself, from its arrival over a number of passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import z3

from proofs.source.ask.features import SymbolicFeatures
from proofs.source.ask.question import number_in
from proofs.source.code.run_passes import run_alone
from proofs.source.code.run_setup import RunCode, RunInput
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import AnyInt, SymbolicInt
from proofs.symbolic.tree import Tree
from spec.algebra import BoolTerm
from spec.record.config import EngineConfig
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import Step

PATH_BUDGET = 3_000
"""Paths of one run; a run that has more is listed as unfinished, on every machine alike."""

FEW_PASSES, MOST_PASSES = 2, 3
"""Passes of the runs that are always asked about, and of those that are asked about on request."""

_WORDS = ("", "drafted", "far")
"""Runs by the scheduler's shift: without a drafter, with one, with one of two modules."""


@dataclass(frozen=True)
class RunShape:
    """What is enumerated rather than symbolic.

    Attributes:
        identifiers: one letter per feature; equal letters are equal hashes.
        shift: the scheduler's shift, which is also the number of drafts.
        whole_items: chunking of items is off.
        capped: a threshold limits the chunks; else none does.
        num_passes: passes to run.
        dense: whether every position of a feature takes a row.
    """

    identifiers: str
    shift: int = 0
    whole_items: bool = False
    capped: bool = False
    num_passes: int = FEW_PASSES
    dense: bool = True

    @property
    def part(self) -> str:
        """What of the runs it shows: each configuration has faults of its own."""
        words = (
            ("long", self.num_passes > FEW_PASSES),
            ("runs", True),
            (_WORDS[self.shift], self.shift > 0),
            ("whole", self.whole_items),
            ("capped", self.capped),
        )
        return " ".join(word for word, applies in words if applies)

    def describe(self) -> str:
        """Words for reports."""
        kind = "dense" if self.dense else "masked"
        return f"features {self.identifiers}: {kind}; an empty book; {self.num_passes} passes"


def run_shapes(max_features: int, num_passes: int, shifts: Sequence[int]) -> Iterator[RunShape]:
    """Every configuration of runs; masks and a threshold on chunks with one feature."""
    names = [name for name in ("A", "AB", "AA") if len(name) <= max_features]
    for shift, whole in product(shifts, (False, True)):
        for name in names:
            yield RunShape(name, shift, whole, num_passes=num_passes)
        yield RunShape("A", shift, whole, capped=True, num_passes=num_passes)
        yield RunShape("A", shift, whole, num_passes=num_passes, dense=False)


@dataclass(frozen=True)
class FeatureInRange:
    """Whether a feature has a position, and a row, in a range; its ends keep their identifiers."""

    start: AnyInt
    end: AnyInt
    meets: BoolTerm
    reads: BoolTerm


class RunScenario:
    """A symbolic run of one shape, explored once; every integer is unbounded."""

    def __init__(self, code: RunCode, shape: RunShape) -> None:
        self.shape = shape
        self.ranges: dict[tuple[int, int, int], FeatureInRange] = {}
        self.exploration = Exploration(path_budget=PATH_BUDGET)
        integer = self.exploration.integer
        count = len(shape.identifiers)
        self.features = SymbolicFeatures(self.exploration, shape.identifiers, [shape.dense] * count)
        self.prompt, self.max_tokens = integer("prompt_len"), integer("max_tokens")
        self.token_budget, self.encoder_budget = integer("token_budget"), integer("encoder_budget")
        self.cache_size = integer("cache_size")
        self.threshold = integer("threshold") if shape.capped else None
        self.accepted = [
            integer(f"accepted_{i}") for i in range(shape.num_passes if shape.shift else 0)
        ]
        self.rows = self.features.rows_by_hash
        self._assume_sizes()
        given = self._input()
        self.tree: Tree[tuple[Step, ...]] = self.exploration.explore(
            lambda: tuple(first_passes(run_alone(code, given), shape.num_passes))
        )

    def _assume_sizes(self) -> None:
        assume = self.exploration.assume
        assume(self.features.end <= self.prompt, self.max_tokens >= 1)
        assume(self.token_budget >= 1 + self.shape.shift)
        self.features.assume_contents()
        for rows, length in zip(self.features.rows, self.features.lengths, strict=True):
            assume(rows <= self.cache_size, rows <= self.encoder_budget)
            if self.shape.whole_items:
                assume(length <= self.token_budget)
        if self.threshold is not None:
            assume(self.threshold >= 1)
        assume(*(accepted >= 0 for accepted in self.accepted))

    def _input(self) -> RunInput:
        return RunInput(
            self.features.inputs(),
            self.prompt,
            self.max_tokens,
            self.token_budget,
            self.encoder_budget,
            self.cache_size,
            0 if self.threshold is None else self.threshold,
            self.shape.shift,
            self.shape.shift,
            tuple(self.accepted),
            self.shape.whole_items,
        )

    @property
    def sizes(self) -> list[z3.ArithRef]:
        """The integers of a counterexample, to be made small."""
        values = [
            self.prompt,
            self.cache_size,
            self.encoder_budget,
            self.max_tokens,
            *self.accepted,
        ]
        if self.threshold is not None:
            values.append(self.threshold)
        return [
            self.token_budget.term,
            *self.features.sizes,
            *(value.term for value in values),
        ]

    def in_model(self, model: z3.ModelRef) -> Scenario:
        """The scenario of the loop that a model describes."""

        def number(value: SymbolicInt) -> int:
            return number_in(model, value.term)

        features = self.features.in_model(model)
        prompt, max_tokens, shift = number(self.prompt), number(self.max_tokens), self.shape.shift
        config = EngineConfig(
            max_num_batched_tokens=number(self.token_budget),
            encoder_compute_budget=number(self.encoder_budget),
            encoder_cache_size=number(self.cache_size),
            num_kv_blocks=prompt + max_tokens + shift,
            max_num_seqs=1,
            scheduler_lookahead=shift,
            gather_lookahead=min(shift, 1),
            num_speculative_tokens=shift,
            whole_items=self.shape.whole_items,
            long_prefill_token_threshold=0 if self.threshold is None else number(self.threshold),
        )
        accepted = tuple(number(value) for value in self.accepted)
        request = ScenarioRequest(prompt, features, max_tokens=max_tokens, accepted_drafts=accepted)
        return Scenario(config, (request,))


def first_passes(steps: Iterator[Step], num_passes: int) -> Iterator[Step]:
    """The steps of a run up to the update of its last pass."""
    count = 0
    for step in steps:
        count += step.kind == "pass"
        yield step
        # Nothing further may run: a pass that is not looked at would only fork paths.
        if count == num_passes and not (step.kind == "pass" and step.scheduled):
            return
