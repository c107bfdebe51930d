"""Tokens that a pass had left for a chunk when it was cut, as far as the pass shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spec.record.config import EngineConfig
from spec.record.steps import PassSeen, ScheduledRequest


def tokens_left(
    config: EngineConfig,
    batch: Sequence[ScheduledRequest],
    entry: ScheduledRequest,
    returned: int,
) -> tuple[int, int]:
    """The fewest and the most tokens that the pass may have had left for one of its requests.

    Args:
        config: the engine's settings.
        batch: what the pass runs, in the order of admission.
        entry: one of its requests.
        returned: at most how many tokens came back in the pass from requests preempted in it; they
            may have come before the chunk was cut, or after.
    """
    before = others = 0
    is_before = True
    for other in batch:
        if other is entry:
            is_before = False
        else:
            others += other.num_scheduled_tokens
            before += other.num_scheduled_tokens if is_before else 0
    least = config.max_num_batched_tokens - others - returned
    most = config.max_num_batched_tokens - before
    threshold = config.long_prefill_token_threshold
    return (min(least, threshold), min(most, threshold)) if threshold else (least, most)


def tokens_of_victims(step: PassSeen, progress: Mapping[int, int]) -> int:
    """At most how many tokens came back in a pass from victims that were to run in it.

    Args:
        step: the pass, with its calls.
        progress: progress of each request before it (tokens).
    """
    granted = {
        call.request: call.budget
        for call in step.calls
        if call.method == "allocate_slots" and call.answer and call.request in step.preempted
    }
    return sum(end - progress.get(request, 0) for request, end in granted.items())
