"""The update of a pass: what the world answers it, and what becomes of its requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from impl.vllm.runs.requests import TOKEN
from impl.vllm.runs.results import Results
from impl.vllm.runs.world import World
from spec.functions.observations import request_name
from spec.record.quick import quick
from spec.record.scenario import Scenario
from spec.record.steps import RequestOutcome, ScheduledRequest

_outcome = quick(RequestOutcome)


@dataclass(frozen=True)
class VllmPass:
    """A pass that is not yet updated.

    Attributes:
        index: number of the pass.
        output: what the scheduler put out.
        batch: the same, as it is recorded.
        requests: the real request of each index of the batch.
        loaded: tokens that were loaded from outside in this pass, by request.
        preempted: requests preempted in it.
        rejected: requests refused for good in it.
    """

    index: int
    output: Any
    batch: tuple[ScheduledRequest, ...]
    requests: Mapping[int, Any]
    loaded: Mapping[int, int]
    preempted: tuple[int, ...]
    rejected: tuple[int, ...]


class Updates:
    """Gives the results of passes to a real scheduler, in the order in which they were scheduled.

    Args:
        results: makes what it is updated with.
        world: answers on drafts and loads.
    """

    def __init__(self, scenario: Scenario, scheduler: Any, results: Results, world: World) -> None:
        self._scenario = scenario
        self._scheduler = scheduler
        self._results = results
        self._world = world
        config = scenario.config
        self._num_drafts = 0 if config.async_depth else config.num_speculative_tokens

    def update(self, due: VllmPass) -> list[RequestOutcome]:
        """Update a pass, then hand over drafts where they do not stay on the worker.

        Returns:
            What became of each request of the pass, in the order of the batch.
        """
        scheduler = self._scheduler
        sampled: list[int] = []
        progress_before: list[int] = []
        thrown_away = {entry.request for entry in due.batch if self._throws_away(entry.request)}
        for entry in due.batch:
            end = entry.num_computed_tokens + entry.num_scheduled_tokens
            count = 0
            if end >= entry.prefill_len + entry.num_output_placeholders:
                count = 1
                # Drafts of a request that only starts are padding: the worker has none for it.
                if entry.num_draft_tokens and not entry.started:
                    count += self._world.accepted(entry.request, entry.num_draft_tokens)
            sampled.append(count)
            progress_before.append(due.requests[entry.request].num_computed_tokens)
        failed = self._failed(due)
        names = [request_name(entry.request) for entry in due.batch]
        result = self._results.of_step(
            names, [[TOKEN] * count for count in sampled], self._invalid_blocks(failed)
        )
        outputs = scheduler.update_from_output(due.output, result)
        emitted = {
            output.request_id: len(output.new_token_ids)
            for outputs_of_client in outputs.values()
            for output in outputs_of_client.outputs
        }
        outcomes = []
        for entry, name, count, before in zip(
            due.batch, names, sampled, progress_before, strict=True
        ):
            num_emitted = emitted.get(name, 0)
            left = failed.get(entry.request)
            progress = due.requests[entry.request].num_computed_tokens
            if left is not None and progress < before and not num_emitted:
                outcomes.append(_outcome(entry.request, 0, 0, dropped=True, rewound=progress))
                continue
            if entry.request in thrown_away or (count and not num_emitted):
                outcomes.append(_outcome(entry.request, 0, 0, dropped=True))
                continue
            if entry.num_draft_tokens and count and not entry.started:
                self._world.verify(entry.request)
            outcomes.append(_outcome(entry.request, max(count - 1, 0), num_emitted))
        if self._num_drafts and due.batch and not getattr(due.output, "skip_drafts", False):
            drafts = self._results.drafts(names, self._num_drafts)
            scheduler.update_draft_token_ids(drafts)
        return outcomes

    def _throws_away(self, index: int) -> bool:
        """Whether the scheduler will not look at the request's next output."""
        request = self._scheduler.requests.get(request_name(index))
        if request is None or request.is_finished():
            return True
        stale: int = getattr(request, "num_stale_output_tokens", 0)
        return stale > 0 and bool(getattr(request, "drop_stale_output", True))

    def _failed(self, due: VllmPass) -> dict[int, int]:
        """Loads of the pass that failed: what is left of each request's progress."""
        failed = {}
        for request, tokens in due.loaded.items():
            left = self._world.failed_load(due.index, request, tokens)
            if left is not None and request_name(request) in self._scheduler.requests:
                failed[request] = left
        return failed

    def _invalid_blocks(self, failed: Mapping[int, int]) -> set[int]:
        blocks = set()
        for request, left in failed.items():
            held = self._scheduler.kv_cache_manager.get_block_ids(request_name(request))[0]
            first = left // self._scenario.config.block_size
            blocks.update(held[first : first + 1])
        return blocks
