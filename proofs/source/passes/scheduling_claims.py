"""What every pass must have done, claim by claim, as conditions on symbolic integers."""

from __future__ import annotations

from collections.abc import Iterator

import z3

from proofs.source.passes.scheduling_scenario import SchedulingScenario, SchedulingShape
from proofs.symbolic.integers import term
from spec.functions.monitor_scheduling import DRAFT_LOOKAHEAD
from spec.functions.observations import SchedulingObservation, SchedulingPass
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


def holds(
    claim: str, scenario: SchedulingScenario, outcome: SchedulingObservation
) -> z3.BoolRef | bool:
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
    true = z3.BoolVal(True, scenario.exploration.context)
    return z3.And(
        true,
        *(
            condition
            for seen in outcome.passes
            for condition in rules[claim](scenario, _Pass(scenario, seen))
        ),
    )


class _Pass:
    """One pass in terms."""

    def __init__(self, scenario: SchedulingScenario, seen: SchedulingPass) -> None:
        context = scenario.exploration.context
        self.seen = seen
        self.start = term(seen.num_computed_tokens, context)
        self.asked = term(seen.num_asked_tokens, context)
        self.scheduled = term(seen.num_scheduled_tokens, context)
        self.end = self.start + self.scheduled
        self.runs = self.scheduled >= 1
        self.present = {identifier for identifier, _ in seen.book.references}

    def reads(
        self, scenario: SchedulingScenario, index: int, start: z3.ArithRef, end: z3.ArithRef
    ) -> z3.BoolRef:
        """Whether a row of the feature lies in ``[start, end)``."""
        offset, length = scenario.offsets[index].term, scenario.lengths[index].term
        bounds = geometry.slice_bounds(offset, length, start, end)
        low, high = geometry.row_range(scenario.masks[index].rows_before, *bounds)
        return z3.And(geometry.meets(offset, length, start, end), low < high)

    def is_present(self, scenario: SchedulingScenario, index: int) -> bool:
        """Whether the book has the feature's entry at the end of the pass."""
        return scenario.shape.identifiers[index] in self.present


def _missing(scenario: SchedulingScenario, a_pass: _Pass) -> list[int]:
    count = len(scenario.shape.identifiers)
    return [index for index in range(count) if not a_pass.is_present(scenario, index)]


def _target_resident(scenario: SchedulingScenario, a_pass: _Pass) -> Iterator[z3.BoolRef]:
    for index in _missing(scenario, a_pass):
        read = a_pass.reads(scenario, index, a_pass.start, a_pass.end)
        yield z3.Not(z3.And(a_pass.runs, read))


def _drafter_resident(scenario: SchedulingScenario, a_pass: _Pass) -> Iterator[z3.BoolRef]:
    for index in _missing(scenario, a_pass):
        read = a_pass.reads(
            scenario, index, a_pass.start + DRAFT_LOOKAHEAD, a_pass.end + DRAFT_LOOKAHEAD
        )
        at_boundary = geometry.is_boundary(
            scenario.offsets[index].term, a_pass.start, a_pass.scheduled
        )
        looks_ahead = scenario.shift.term >= DRAFT_LOOKAHEAD
        yield z3.Or(z3.Not(z3.And(a_pass.runs, looks_ahead, read)), at_boundary)


def _need_agrees(scenario: SchedulingScenario, a_pass: _Pass) -> Iterator[z3.BoolRef]:
    identifiers, seen = scenario.shape.identifiers, a_pass.seen
    for index, identifier in enumerate(identifiers):
        repeated = any(identifiers[i] == identifier for i in seen.chosen if i < index)
        asked = (*seen.hits, *seen.chosen, *seen.duplicates, *seen.refused)
        if repeated or index in asked:
            continue
        ahead = z3.If(scenario.shift.term >= DRAFT_LOOKAHEAD, DRAFT_LOOKAHEAD, 0)
        read = a_pass.reads(scenario, index, a_pass.start, a_pass.end + ahead)
        yield z3.Or(
            z3.Not(z3.And(a_pass.runs, read)),
            _is_cut_whole(scenario, a_pass, index),
        )


def _is_cut_whole(scenario: SchedulingScenario, a_pass: _Pass, index: int) -> z3.BoolRef:
    """Whether the tokens asked for would have split the item, with chunking of items off."""
    if not scenario.shape.whole_items:
        return z3.BoolVal(False, scenario.exploration.context)
    offset, length = scenario.offsets[index].term, scenario.lengths[index].term
    end = a_pass.start + a_pass.asked
    return z3.And(
        a_pass.start <= offset,
        offset < end + scenario.shift.term,
        end < offset + length,
    )


def _item_whole(scenario: SchedulingScenario, a_pass: _Pass) -> Iterator[z3.BoolRef]:
    if not scenario.shape.whole_items:
        return
    for offset, length in zip(scenario.offsets, scenario.lengths, strict=True):
        starts_inside = z3.And(a_pass.start <= offset.term, offset.term < a_pass.end)
        whole = offset.term + length.term <= a_pass.end
        yield z3.Or(z3.Not(z3.And(a_pass.runs, starts_inside)), whole)


def _slots_conserved(scenario: SchedulingScenario, a_pass: _Pass) -> Iterator[z3.BoolRef]:
    context, book = scenario.exploration.context, a_pass.seen.book
    size = scenario.cache_size.term
    zero = z3.IntVal(0, context)
    present = sum((scenario.rows[name] for name, _ in book.references), start=zero)
    held = sum((scenario.rows[name] for name, who in book.references if who), start=zero)
    yield term(book.num_free_slots, context) == size - present
    if book.num_freeable_slots is not None:
        yield term(book.num_freeable_slots, context) == size - held
    yield present <= size


def _gives_what_it_can(_: SchedulingScenario, a_pass: _Pass) -> Iterator[z3.BoolRef]:
    yield a_pass.scheduled >= 0
    yield a_pass.scheduled <= a_pass.asked


def _no_stall(_: SchedulingScenario, a_pass: _Pass) -> Iterator[z3.BoolRef]:
    yield a_pass.runs
