"""The scheduling of encoder inputs of a release, on every initial book and over short runs.

One pass is proved for every book that up to three features and any other entries can make. A
request that has the engine for itself is followed over several passes from a book in which nobody
holds anything, so that its references are those that a run leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import z3

from proofs.source.ask.piece import Piece, Question, settle, unmodelled
from proofs.source.ask.question import number_in
from proofs.source.code.encoder_passes import has_reservation, require_known_calls
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import SourceTarget
from proofs.source.passes import scheduling_claims
from proofs.source.passes.scheduling_scenario import (
    SchedulingScenario,
    SchedulingShape,
    lone_shapes,
    shapes,
)
from proofs.symbolic.integers import AnyInt, NotModelled, SymbolicInt
from spec.functions.cases import AnyCase
from spec.functions.findings import Finding
from spec.functions.scheduling_cases import BookEntry, SchedulingCase
from spec.monitor.functions.scheduled_passes import check_scheduling

_ASSUMPTIONS = ("features-sorted-disjoint", "features-not-empty", "hash-is-content")
_ALONE = ("everything-fits-alone", "budgets-fixed")


def scheduling_shapes(release: ReleaseSource, max_features: int) -> Iterator[SchedulingShape]:
    """Every shape that the release can come to; shifts above 1 where it has the reservation."""
    for shape in (*shapes(max_features), *lone_shapes(max_features)):
        if not shape.far or has_reservation(release):
            yield shape


def scheduling_questions(shape: SchedulingShape) -> list[Question]:
    """Every claim on the passes of one shape."""
    # A claim that most releases break is asked by itself: one question settles all the others.
    # And an item at the chunk's start hides what becomes of the items behind it.
    assumptions = (*_ASSUMPTIONS, *(_ALONE if shape.lone else ()))
    claims = scheduling_claims.claims_of(shape)
    asked = [(claim_id, shape.part) for claim_id in claims if claim_id != _BY_ITSELF]
    if _BY_ITSELF in claims:
        asked += [(_BY_ITSELF, shape.part), (_BY_ITSELF, f"{shape.part} ahead")]
    return [Question(claim_id, part, shape.describe(), assumptions) for claim_id, part in asked]


_BY_ITSELF = "item-whole"


def scheduling_pieces(release: ReleaseSource, name: str, shape: SchedulingShape) -> list[Piece]:
    """What :func:`scheduling_questions` asks, on every path."""
    questions = scheduling_questions(shape)
    try:
        require_known_calls(release)
        scenario = SchedulingScenario(release, shape)
    except NotModelled as reason:
        return [unmodelled(question, reason) for question in questions]
    target = SourceTarget(release, name)

    def replay(part: str, model: z3.ModelRef, claim_id: str) -> tuple[AnyCase, Sequence[Finding]]:
        whole = _case(scenario, model)
        for num_passes in range(1, whole.num_passes + 1):
            case = replace(whole, num_passes=num_passes)
            found = check_scheduling(case, target.scheduling(case), f"{name} {part}")
            if any(finding.claim == claim_id for finding in found):
                return case, found
        return whole, ()

    def settled(
        asked: Sequence[Question], part: str, also: Sequence[z3.BoolRef] = ()
    ) -> list[Piece]:
        return settle(
            [(q, partial(scheduling_claims.holds, q.claim, scenario)) for q in asked],
            scenario.exploration,
            scenario.tree,
            sizes=scenario.sizes,
            replay=partial(replay, part),
            also=also,
        )

    pieces = settled([q for q in questions if q.claim != _BY_ITSELF], shape.part)
    whole = [question for question in questions if question.claim == _BY_ITSELF]
    if whole:
        alone, ahead = whole
        before_items = [
            scenario.computed.term != offset.term for offset in scenario.features.offsets
        ]
        pieces += settled([alone], alone.part) + settled([ahead], ahead.part, before_items)
    return pieces


def _case(scenario: SchedulingScenario, model: z3.ModelRef) -> SchedulingCase:
    def number(value: AnyInt) -> int:
        return number_in(model, value.term) if isinstance(value, SymbolicInt) else value

    entries = (
        BookEntry(entry.identifier, number(scenario.rows[entry.identifier]), entry.holder)
        for entry in scenario.entries
    )
    return SchedulingCase(
        scenario.features.in_model(model),
        number(scenario.prefill),
        number(scenario.computed),
        number(scenario.token_budget),
        number(scenario.encoder_budget),
        number(scenario.cache_size),
        number(scenario.shift),
        scenario.shape.whole_items,
        tuple(entry for entry in entries if entry.num_rows),
        scenario.shape.num_passes,
    )
