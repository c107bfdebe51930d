"""A pass while it is being scheduled, and the output that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field

from impl.reference.scheduling.output import NewRequestData, SchedulerOutput
from impl.reference.scheduling.scheduled_request import SchedulerRequest
from spec.record.steps import ScheduledRequest


@dataclass
class Pass:
    """A pass while it is being scheduled.

    Attributes:
        tokens: token budget left.
        encoder_rows: encoder budget left (rows).
        chunks: tokens of each request of the batch, in batch order.
        started: requests of the batch that came from the waiting queue.
        inputs: encoder inputs chosen, in order.
        preempted: requests preempted.
        rejected: requests refused for good.
    """

    tokens: int
    encoder_rows: int
    chunks: dict[SchedulerRequest, int] = field(default_factory=dict)
    started: set[SchedulerRequest] = field(default_factory=set)
    inputs: list[tuple[SchedulerRequest, int]] = field(default_factory=list)
    preempted: list[SchedulerRequest] = field(default_factory=list)
    rejected: list[SchedulerRequest] = field(default_factory=list)


def output_of(now: Pass, freed: list[str], ended: list[int]) -> SchedulerOutput:
    """What the worker is sent, from progress as it was before the pass.

    A request that comes from the waiting queue is sent with its raw data, since a worker may have
    forgotten it when it was preempted, and its next turn may have brought new features.

    Args:
        now: the pass.
        freed: hashes whose tensors to drop.
        ended: requests that ended since the output before.
    """
    output = SchedulerOutput(
        encoder_inputs=[(request.index, input_id) for request, input_id in now.inputs],
        free_encoder_mm_hashes=freed,
        finished=ended,
        preempted=[request.index for request in now.preempted],
    )
    for request, num_tokens in now.chunks.items():
        start = request.num_computed_tokens
        num_known_tokens = request.num_tokens + request.num_output_placeholders
        started = request in now.started
        output.scheduled.append(
            ScheduledRequest(
                request.index,
                start,
                num_tokens,
                max(start + num_tokens - num_known_tokens, 0),
                request.num_output_placeholders,
                request.num_tokens,
                started,
            )
        )
        output.total_num_scheduled_tokens += num_tokens
        if started:
            inputs = range(len(request.mm_features))
            output.new_requests.append(NewRequestData(request.index, request.mm_features, inputs))
    return output
