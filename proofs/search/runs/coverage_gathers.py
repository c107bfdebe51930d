"""Which boundary relations the gathers of a run met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from spec.record.feature import Feature
from spec.record.prompts import Prompts
from spec.record.scenario import Scenario
from spec.record.steps import PassSeen, ScheduledRequest

RELATIONS: tuple[str, ...] = (
    "item ends before the processed end",
    "item ends at the processed end",
    "item ends after the processed end",
    "item starts before the processed end",
    "item starts at the processed end",
    "item starts after the processed end",
    "rows for the drafter only",
    "rows for the target only",
    "boundary item read",
    "boundary item not resident",
    "gather of several requests",
    "item without rows in the window",
)
"""Relations between an item and a gather that :func:`cover_gathers` counts."""


def cover_gathers(
    step: PassSeen, scenario: Scenario, prompts: Prompts, counts: Counter[str]
) -> None:
    """Count the relations of a pass.

    Args:
        step: the pass.
        scenario: what was chosen.
        prompts: where features lay when the pass was scheduled.
        counts: added to.
    """
    if step.worker is None or scenario.config.is_encoder_decoder:
        return
    resident = {identifier for identifier, _ in step.worker.contents}
    counts["gather of several requests"] += len(step.scheduled) > 1
    for item in step.scheduled:
        features = prompts.features(item.request)
        _cover_target(item, features, counts)
        if step.worker.drafter is not None:
            look_ahead = scenario.config.gather_lookahead
            _cover_drafter(item, features, look_ahead, resident, counts)


def _cover_target(
    item: ScheduledRequest, features: Sequence[Feature], counts: Counter[str]
) -> None:
    start = item.num_computed_tokens
    end = start + item.num_scheduled_tokens
    for feature in features:
        if feature.offset < end and feature.end > start:
            counts["item without rows in the window"] += not feature.has_row_in(start, end)


def _cover_drafter(
    item: ScheduledRequest,
    features: Sequence[Feature],
    look_ahead: int,
    resident: set[str],
    counts: Counter[str],
) -> None:
    start = item.num_computed_tokens
    end = start + item.num_scheduled_tokens
    for feature in features:
        for_target = feature.has_row_in(start, end)
        for_drafter = feature.has_row_in(start + look_ahead, end + look_ahead)
        counts["rows for the target only"] += for_target and not for_drafter
        if not for_drafter:
            continue
        counts["rows for the drafter only"] += not for_target
        counts[f"item ends {_relation(feature.end, end)} the processed end"] += 1
        counts[f"item starts {_relation(feature.offset, end)} the processed end"] += 1
        if feature.offset >= end:
            is_resident = feature.identifier in resident
            counts["boundary item read" if is_resident else "boundary item not resident"] += 1


def _relation(position: int, end: int) -> str:
    if position < end:
        return "before"
    return "at" if position == end else "after"
