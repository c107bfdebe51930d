"""Which item a pass did not ask for since it may not be split."""

from __future__ import annotations

from collections.abc import Sequence

from spec.record.config import EngineConfig
from spec.record.steps import PassSeen, ScheduledRequest
from spec.relation.runs.projection import Projection


def whole_item_ahead(
    config: EngineConfig,
    step: PassSeen,
    entry: ScheduledRequest,
    projections: Sequence[Projection],
) -> int | None:
    """Offset of the item past the chunk that was not asked for since it may not be split.

    Only one that the chunk could have split before it was cut, with the tokens that the pass
    had left: any other has to be asked for.
    """
    if not config.whole_items:
        return None
    most = config.max_num_batched_tokens
    for other in step.scheduled:
        if other is entry:
            break
        most -= other.num_scheduled_tokens
    if config.long_prefill_token_threshold:
        most = min(most, config.long_prefill_token_threshold)
    start = entry.num_computed_tokens
    end = start + entry.num_scheduled_tokens
    window_end = min(end + config.scheduler_lookahead, start + most)
    for projection in projections:
        feature = projection.feature
        if end <= feature.offset < window_end and not projection.state.asked:
            return feature.offset
    return None
