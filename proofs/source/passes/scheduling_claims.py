"""What every pass must have done, claim by claim, as conditions on symbolic integers."""

from __future__ import annotations

from collections.abc import Iterator

from proofs.source.passes.scheduling_scenario import SchedulingScenario, SchedulingShape
from proofs.symbolic.integers import AnyInt
from spec.algebra import BoolTerm, and_, implies, ite, or_
from spec.claims import predicates as claims
from spec.functions.observations import SchedulingObservation, SchedulingPass
from spec.monitor.functions.scheduled_passes import DRAFT_LOOKAHEAD
from spec.rules import geometry

_ON_ROWS = ("target-resident", "drafter-resident-or-boundary", "need-agrees", "no-error")
_ON_TOKENS_AND_SLOTS = ("slots-conserved",)
_WHEN_WHOLE = ("item-whole",)
_WHEN_ALONE = ("no-stall",)

CLAIMS = (*_ON_ROWS, *_ON_TOKENS_AND_SLOTS, *_WHEN_WHOLE, *_WHEN_ALONE)
"""Every claim on scheduling, in the order in which they are reported."""


def claims_of(shape: SchedulingShape) -> tuple[str, ...]:
    """Claims that are asked on a shape; a mask matters to those on rows in a window only."""
    if shape.lone:
        return _WHEN_ALONE
    if not all(shape.dense):
        return _ON_ROWS
    return _ON_ROWS + _ON_TOKENS_AND_SLOTS + (_WHEN_WHOLE if shape.whole_items else ())


def holds(claim: str, scenario: SchedulingScenario, outcome: SchedulingObservation) -> BoolTerm:
    """The condition under which every pass of one path satisfies a claim."""
    if claim == "no-error" and outcome.error is not None:
        return False
    rules = {
        "no-error": _gives_what_it_can,
        "target-resident": _target_resident,
        "drafter-resident-or-boundary": _drafter_resident,
        "need-agrees": _need_agrees,
        "item-whole": _item_whole,
        "slots-conserved": _slots_conserved,
        "no-stall": _no_stall,
    }
    return and_(
        *(condition for seen in outcome.passes for condition in rules[claim](scenario, _Pass(seen)))
    )


class _Pass:
    """One pass in terms."""

    def __init__(self, seen: SchedulingPass) -> None:
        self.seen = seen
        self.start = seen.num_computed_tokens
        self.asked = seen.num_asked_tokens
        self.scheduled = seen.num_scheduled_tokens
        self.end = self.start + self.scheduled
        self.runs = self.scheduled >= 1
        self.chunk = claims.Chunk(self.start, self.end, DRAFT_LOOKAHEAD)
        self.present = {identifier for identifier, _ in seen.book.references}

    def has(self, feature: _Feature) -> bool:
        """Whether the book has the feature's entry at the end of the pass."""
        return feature.identifier in self.present


class _Feature:
    """One feature in terms, as claims look at it."""

    def __init__(self, scenario: SchedulingScenario, index: int) -> None:
        self.identifier = scenario.shape.identifiers[index]
        self.offset: AnyInt = scenario.features.offsets[index]
        self._length: AnyInt = scenario.features.lengths[index]
        self.end: AnyInt = self.offset + self._length
        self._rows_before = scenario.features.masks[index].rows_before

    def has_row_in(self, start: AnyInt, end: AnyInt) -> BoolTerm:
        """Whether a row of the feature lies in ``[start, end)``."""
        bounds = geometry.slice_bounds(self.offset, self._length, start, end)
        low, high = geometry.row_range(self._rows_before, *bounds)
        return and_(geometry.meets(self.offset, self._length, start, end), low < high)


def _features(scenario: SchedulingScenario) -> list[_Feature]:
    return [_Feature(scenario, index) for index in range(len(scenario.shape.identifiers))]


def _target_resident(scenario: SchedulingScenario, a_pass: _Pass) -> Iterator[BoolTerm]:
    for feature in _features(scenario):
        resident = claims.target_resident(feature, a_pass.chunk, a_pass.has(feature))
        yield implies(a_pass.runs, resident)


def _drafter_resident(scenario: SchedulingScenario, a_pass: _Pass) -> Iterator[BoolTerm]:
    looks_ahead = scenario.shift >= DRAFT_LOOKAHEAD
    for feature in _features(scenario):
        resident = a_pass.has(feature)
        safe = claims.drafter_resident_or_boundary(feature, a_pass.chunk, resident)
        yield implies(and_(a_pass.runs, looks_ahead), safe)


def _need_agrees(scenario: SchedulingScenario, a_pass: _Pass) -> Iterator[BoolTerm]:
    identifiers, seen = scenario.shape.identifiers, a_pass.seen
    look_ahead = ite(scenario.shift >= DRAFT_LOOKAHEAD, DRAFT_LOOKAHEAD, 0)
    chunk = a_pass.chunk._replace(look_ahead=look_ahead)
    # The pass had the tokens that were asked for, and what the scheduler looks ahead.
    least, most = a_pass.asked, a_pass.asked + scenario.shift
    search_ended: BoolTerm = False
    for index, feature in enumerate(_features(scenario)):
        repeated = any(identifiers[i] == feature.identifier for i in seen.chosen if i < index)
        asked = (*seen.hits, *seen.chosen, *seen.duplicates, *seen.refused)
        if scenario.shape.whole_items:
            cut = claims.cut_before_whole_item(feature, a_pass.start, least, most)
            search_ended = or_(search_ended, and_(claims.is_at_boundary(feature, chunk), cut))
        agrees = claims.need_agrees(feature, chunk, repeated or index in asked, search_ended)
        yield implies(a_pass.runs, agrees)


def _item_whole(scenario: SchedulingScenario, a_pass: _Pass) -> Iterator[BoolTerm]:
    if scenario.shape.whole_items:
        for feature in _features(scenario):
            yield implies(a_pass.runs, claims.item_whole(feature, a_pass.chunk))


def _slots_conserved(scenario: SchedulingScenario, a_pass: _Pass) -> Iterator[BoolTerm]:
    book, size = a_pass.seen.book, scenario.cache_size
    present = sum((scenario.rows[name] for name, _ in book.references))
    held = sum((scenario.rows[name] for name, holders in book.references if holders))
    free: AnyInt = book.num_free_slots
    freeable: AnyInt = size - held
    if book.num_freeable_slots is not None:
        freeable = book.num_freeable_slots
    yield claims.slots_conserved(free, freeable, present, held, size)


def _gives_what_it_can(_: SchedulingScenario, a_pass: _Pass) -> Iterator[BoolTerm]:
    yield a_pass.scheduled >= 0
    yield a_pass.scheduled <= a_pass.asked


def _no_stall(_: SchedulingScenario, a_pass: _Pass) -> Iterator[BoolTerm]:
    yield a_pass.runs
