"""The steps of one path of a symbolic run, each with what came before it.

What is enumerated on a path, such as which entries the book has, is plain here; positions and sizes
are symbolic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from proofs.source.passes.run_scenario import FeatureInRange, RunScenario
from proofs.symbolic.integers import AnyInt
from spec.algebra import BoolTerm, and_, or_
from spec.claims.predicates import Chunk
from spec.record.steps import EngineState, PassSeen, ScheduledRequest, Step
from spec.rules import geometry


class FeatureOfRun:
    """One feature of a symbolic run, as claims look at it."""

    def __init__(self, scenario: RunScenario, index: int) -> None:
        self._scenario = scenario
        self.index = index
        self.name = scenario.shape.identifiers[index]
        self.offset: AnyInt = scenario.features.offsets[index]
        self.length: AnyInt = scenario.features.lengths[index]
        self.end = self.offset + self.length

    def meets(self, start: AnyInt, end: AnyInt) -> BoolTerm:
        """Whether the feature has a position in the range, which is not empty."""
        return self._range(start, end).meets

    def has_row_in(self, start: AnyInt, end: AnyInt) -> BoolTerm:
        """Whether a position of the range, which is not empty, takes a row."""
        return self._range(start, end).reads

    def _range(self, start: AnyInt, end: AnyInt) -> FeatureInRange:
        """The feature in a range; paths have many ranges in common, and each is built once."""
        ranges = self._scenario.ranges
        key = self.index, id(start), id(end)
        if key not in ranges:
            meets = geometry.meets(self.offset, self.length, start, end)
            reads = meets
            if not self._scenario.shape.dense:
                bounds = geometry.slice_bounds(self.offset, self.length, start, end)
                rows_before = self._scenario.features.masks[self.index].rows_before
                low, high = geometry.row_range(rows_before, *bounds)
                reads = and_(meets, low < high)
            ranges[key] = FeatureInRange(start, end, meets, reads)
        return ranges[key]


@dataclass
class Moment:
    """A step of one path, with what came before it.

    Attributes:
        previous: the moment before; ``None`` for the arrival.
        rounds: the states at the ends of the rounds so far, the arrival's first, each with whether
            its pass ran tokens; empty within a round.
    """

    scenario: RunScenario
    features: list[FeatureOfRun]
    step: Step
    previous: Moment | None = None
    rounds: tuple[tuple[EngineState, bool], ...] = ()

    @property
    def before(self) -> EngineState | None:
        """The state before the step."""
        return None if self.previous is None else self.previous.step.state

    @cached_property
    def asked(self) -> dict[int, str]:
        """What became of each feature that a pass asked the book for."""
        return _asked(self.step) if self.step.kind == "pass" else {}

    @cached_property
    def taken(self) -> list[BoolTerm]:
        """For each feature, whether the request took it and has a row of it left to read."""
        return list(_taken(self))

    @cached_property
    def entries(self) -> dict[str, bool]:
        """The book's entries after the step, and whether the request holds each."""
        return {name: bool(holders) for name, holders in self.step.state.book.references}

    @cached_property
    def entries_before(self) -> dict[str, bool]:
        """The same before the step."""
        references = () if self.before is None else self.before.book.references
        return {name: bool(holders) for name, holders in references}

    @property
    def status(self) -> str:
        """The request's status after the step."""
        return self.step.state.requests[0].status

    @cached_property
    def chunk(self) -> Chunk | None:
        """What a pass runs; the drafter reads one token ahead, whatever the scheduler's shift."""
        if not self.scheduled:
            return None
        (entry,) = self.scheduled
        start = entry.num_computed_tokens
        end = start + entry.num_scheduled_tokens
        return Chunk(start, end, 1 if self.scenario.shape.shift else 0)

    @cached_property
    def progress(self) -> AnyInt:
        """What the request's progress can fall back to: drafts in flight may be rejected."""
        computed = self.step.state.requests[0].num_computed_tokens
        return computed - sum(entry.num_draft_tokens for entry in self.scheduled)

    @property
    def is_pass(self) -> bool:
        """Whether the step is a pass."""
        return self.step.kind == "pass"

    @property
    def scheduled(self) -> tuple[ScheduledRequest, ...]:
        """What a pass runs: the request, or nothing."""
        return self.step.scheduled if self.step.kind == "pass" else ()


def moments(scenario: RunScenario, steps: tuple[Step, ...]) -> list[Moment]:
    """The steps of a path with what came before each."""
    features = [FeatureOfRun(scenario, index) for index in range(len(scenario.features.lengths))]
    found: list[Moment] = []
    rounds: tuple[tuple[EngineState, bool], ...] = ()
    for step in steps:
        moment = Moment(scenario, features, step, found[-1] if found else None)
        if not moment.scheduled:
            rounds = (*rounds, (step.state, bool(found and found[-1].scheduled)))
            moment.rounds = rounds
        found.append(moment)
    return found


def _asked(step: PassSeen) -> dict[int, str]:
    """What became of each feature that the book was asked for in a pass."""
    asked: dict[int, str] = {}
    for call in step.calls:
        if call.method == "check_and_update_cache" and call.answer:
            asked[call.feature] = "hit"
        elif call.method == "can_allocate" and call.answer is False:
            asked.setdefault(call.feature, "refused")
        elif call.method == "allocate":
            asked[call.feature] = "allocated"
    return asked


def _taken(moment: Moment) -> Iterator[BoolTerm]:
    """For each feature, whether it is taken after the step and has a row left to read."""
    if moment.status != "running":
        yield from (False for _ in moment.features)
        return
    starts = any(entry.started for entry in moment.scheduled)
    before_step = None if starts else moment.previous
    for feature in moment.features:
        before = False if before_step is None else before_step.taken[feature.index]
        taken = or_(before, _takes(moment, feature))
        yield and_(taken, is_still_read(moment, feature))


def is_still_read(moment: Moment, feature: FeatureOfRun) -> BoolTerm:
    """Whether the feature has a row at or past lowest progress."""
    is_ahead = moment.progress < feature.end
    return and_(is_ahead, feature.has_row_in(moment.progress, feature.end))


def _takes(moment: Moment, feature: FeatureOfRun) -> BoolTerm:
    if moment.asked.get(feature.index) in ("hit", "allocated"):
        return True
    return is_duplicate(moment, feature)


def is_duplicate(moment: Moment, feature: FeatureOfRun) -> BoolTerm:
    """Whether the pass met the feature's hash after it had allocated it for another one."""
    chunk = moment.chunk
    own = {moment.features[i].name for i, how in moment.asked.items() if how == "allocated"}
    if chunk is None or feature.index in moment.asked or feature.name not in own:
        return False
    return feature.meets(chunk.start, chunk.end + moment.scenario.shape.shift)
