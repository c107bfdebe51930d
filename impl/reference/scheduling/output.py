"""What the scheduler sends to the worker in one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from impl.reference.scheduling.request import MultiModalFeature
from spec.record.steps import ScheduledRequest


@dataclass(frozen=True)
class NewRequestData:
    """A request that the worker does not know, or knows no longer, or whose next turn begins.

    Attributes:
        raw_inputs: indices of the features whose raw data is sent along.
    """

    request: int
    mm_features: Sequence[MultiModalFeature]
    raw_inputs: Sequence[int]


@dataclass
class SchedulerOutput:
    """One step's work.

    Attributes:
        scheduled: the batch, requests in its order.
        new_requests: data of requests that come from the waiting queue.
        encoder_inputs: inputs ``(request, feature)`` to run the encoder on, in order.
        free_encoder_mm_hashes: hashes whose tensors to drop.
        finished: requests that ended since the output before.
        preempted: requests preempted in this pass.
        total_num_scheduled_tokens: tokens of the batch.
    """

    scheduled: list[ScheduledRequest] = field(default_factory=list)
    new_requests: list[NewRequestData] = field(default_factory=list)
    encoder_inputs: list[tuple[int, int]] = field(default_factory=list)
    free_encoder_mm_hashes: list[str] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)
    preempted: list[int] = field(default_factory=list)
    total_num_scheduled_tokens: int = 0
