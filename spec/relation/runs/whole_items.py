"""Which item a pass did not ask for since it may not be split."""

from __future__ import annotations

from collections.abc import Sequence

from spec.claims import predicates as claims
from spec.history.admission import by_admission
from spec.history.tokens import tokens_left
from spec.record.config import EngineConfig
from spec.record.steps import PassSeen, ScheduledRequest
from spec.relation.runs.projection import Projection
from spec.rules.encoder_inputs import window_end


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
    start = entry.num_computed_tokens
    chunk = claims.Chunk(start, start + entry.num_scheduled_tokens)
    returned = config.max_num_batched_tokens if step.preempted else 0
    least, most = tokens_left(config, by_admission(step), entry, returned)
    for projection in projections:
        feature = projection.feature
        if not claims.is_at_boundary(feature, chunk) or projection.state.asked:
            continue
        in_window = feature.offset < window_end(chunk.end, 0, config.scheduler_lookahead)
        if in_window and claims.cut_before_whole_item(feature, start, least, most):
            return feature.offset
    return None
