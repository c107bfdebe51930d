"""Two runs of one scenario, side by side: where they part, and which claims each breaks."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal

from proofs.describe.shape import shape
from proofs.report.text.plain import shortened
from spec.errors import InputError
from spec.monitor.monitor import check_trace
from spec.record.compare import Difference, first_difference
from spec.record.run_findings import LoopFinding
from spec.record.steps import Step, Trace

MOST_ROWS = 40
"""Steps that are told in words; those around the first difference are kept."""

_BEFORE = 8


@dataclass(frozen=True)
class Side:
    """One of the runs, and what it contradicts; judged here, whatever its file says."""

    trace: Trace
    findings: tuple[LoopFinding, ...]

    @property
    def name(self) -> str:
        """Target and runner."""
        return f"{self.trace.target} {self.trace.runner}"


Relation = Literal["same", "first difference", "after it"]


@dataclass(frozen=True)
class Pair:
    """A step of each run, by its index; ``None`` where one of them has no such step."""

    first: int | None
    second: int | None
    relation: Relation


@dataclass(frozen=True)
class Compared:
    """Two runs of one scenario.

    Attributes:
        first: the run before, or on the first target.
        second: the other one.
        difference: where the second first differs; ``None`` where it never does.
        pairs: all steps, side by side.
    """

    first: Side
    second: Side
    difference: Difference | None
    pairs: tuple[Pair, ...]

    @property
    def fixed(self) -> tuple[LoopFinding, ...]:
        """What only the first run breaks."""
        return _only(self.first, self.second)

    @property
    def new(self) -> tuple[LoopFinding, ...]:
        """What only the second run breaks."""
        return _only(self.second, self.first)

    @property
    def still(self) -> tuple[LoopFinding, ...]:
        """What both break, as the second shows it."""
        in_first = {_key(finding) for finding in self.first.findings}
        return _distinct(f for f in self.second.findings if _key(f) in in_first)

    @property
    def sentence(self) -> str:
        """What became of the claims, in one sentence."""
        return self.sentence_within()

    def sentence_within(self, longest: int = sys.maxsize) -> str:
        """What became of the claims, in one sentence.

        Args:
            longest: characters of the name of a side.
        """
        first, second = (shortened(run.name, longest) for run in (self.first, self.second))
        parts = []
        if self.fixed:
            # Of a run that was given up nobody knows what it would have shown.
            cut = self.second.trace.ending in ("limit", "stopped")
            keeps = "keeps, as far as it ran," if cut else "keeps"
            parts.append(f"{second} {keeps} {_claims(self.fixed)}, which {first} breaks")
        if self.new:
            parts.append(f"{second} breaks {_claims(self.new)}, which {first} keeps")
        if self.still:
            parts.append(f"both break {_claims(self.still)}")
        return "; ".join(parts) or "neither run breaks a claim"


def compare(first: Trace, second: Trace) -> Compared:
    """Put two runs side by side, and judge both.

    Raises:
        InputError: they are runs of two scenarios.
    """
    if first.scenario != second.scenario:
        raise InputError(
            f"{first.target} and {second.target} ran two scenarios: "
            f"{_what_differs(first, second)}; only runs of one scenario can be compared. "
            "`residency replay SCENARIO --trace FILE` makes one"
        )
    difference = _difference(first, second)
    return Compared(
        _judged(first),
        _judged(second),
        difference,
        _pairs(first.steps, second.steps, difference),
    )


def _judged(trace: Trace) -> Side:
    """A run and what it breaks, with the scenario's shape, as a replay has it."""
    tags = shape(trace.scenario)
    return Side(trace, tuple(replace(found, shape=tags) for found in check_trace(trace)))


def shown_pairs(compared: Compared) -> tuple[int, tuple[Pair, ...], int]:
    """Steps left out before, the pairs around the first difference, and steps left out after."""
    pairs = compared.pairs
    parting = next((i for i, p in enumerate(pairs) if p.relation == "first difference"), len(pairs))
    start = max(0, min(parting - _BEFORE, len(pairs) - MOST_ROWS))
    shown = pairs[start : start + MOST_ROWS]
    return start, shown, len(pairs) - start - len(shown)


def _what_differs(first: Trace, second: Trace) -> str:
    scenario, other = first.scenario, second.scenario
    if scenario.config != other.config:
        names = [
            name
            for name in scenario.config.__dataclass_fields__
            if getattr(scenario.config, name) != getattr(other.config, name)
        ]
        return f"they differ in {', '.join(names)}"
    if len(scenario.requests) != len(other.requests):
        return f"one has {len(scenario.requests)} requests, the other {len(other.requests)}"
    for index, (left, right) in enumerate(zip(scenario.requests, other.requests, strict=True)):
        if left != right:
            return f"they differ in request {index}"
    return "they differ in the resets of the cache"


def _difference(first: Trace, second: Trace) -> Difference | None:
    """Where they part; a run that was stopped or given up says nothing of what follows."""
    before, after = first.steps, second.steps
    if first.ending in ("limit", "stopped"):
        after = after[: len(before)]
    if second.ending in ("limit", "stopped"):
        before = before[: len(after)]
    return first_difference(before, after)


def _pairs(
    first: Sequence[Step], second: Sequence[Step], difference: Difference | None
) -> tuple[Pair, ...]:
    parting = min(len(first), len(second)) if difference is None else difference.step
    pairs = [Pair(index, index, "same") for index in range(parting)]
    if difference is None:
        return tuple(pairs)
    for left, right in _aligned(first[parting:], second[parting:]):
        pairs.append(
            Pair(
                None if left is None else left + parting,
                None if right is None else right + parting,
                "after it" if len(pairs) > parting else "first difference",
            )
        )
    return tuple(pairs)


def _aligned(first: Sequence[Step], second: Sequence[Step]) -> list[tuple[int | None, int | None]]:
    """Steps that are the same moment beside each other: a pass by a pass of the same number."""
    pairs: list[tuple[int | None, int | None]] = []
    matcher = SequenceMatcher(None, [*map(_moment, first)], [*map(_moment, second)], autojunk=False)
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        left, right = range(start, end), range(other_start, other_end)
        if kind == "equal":
            pairs += zip(left, right, strict=True)
        else:
            pairs += [(index, None) for index in left]
            pairs += [(None, index) for index in right]
    return pairs


def _moment(step: Step) -> Hashable:
    if step.kind == "event":
        return step.kind, step.before, step.event, step.request
    return step.kind, step.index


def _key(finding: LoopFinding) -> tuple[str, str]:
    return finding.claim, finding.mechanism


def _only(side: Side, other: Side) -> tuple[LoopFinding, ...]:
    in_other = {_key(finding) for finding in other.findings}
    return _distinct(f for f in side.findings if _key(f) not in in_other)


def _distinct(findings: Iterable[LoopFinding]) -> tuple[LoopFinding, ...]:
    return tuple({_key(finding): finding for finding in reversed([*findings])}.values())[::-1]


def _claims(findings: Sequence[LoopFinding]) -> str:
    return ", ".join(dict.fromkeys(finding.claim for finding in findings))
