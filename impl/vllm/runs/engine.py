"""A real scheduler as an engine in the loop."""

from __future__ import annotations

from typing import Any

from impl.harness.loop import Contents, Loop, contents_of
from impl.vllm.functions.objects import observed
from impl.vllm.runs.recording import StateReader, record_calls
from impl.vllm.runs.requests import RequestBuilder
from impl.vllm.runs.results import Results
from impl.vllm.runs.updates import Updates, VllmPass
from impl.vllm.runs.worker import Worker
from impl.vllm.runs.world import World
from spec.functions.observations import request_name
from spec.record.quick import quick
from spec.record.scenario import Scenario
from spec.record.steps import EngineState, ErrorSeen, RequestOutcome, ScheduledRequest, WorkerSeen

_scheduled_request = quick(ScheduledRequest)


class VllmEngine(Loop[VllmPass]):
    """Runs a scenario on a real scheduler.

    Args:
        worker: applies its outputs.
        builder: makes requests.
        results: makes what the scheduler is updated with.
        record: whether calls are kept.

    Raises:
        AdapterError: the scheduler's parts lack a method that is recorded.
    """

    updates_empty_passes = True

    def __init__(
        self,
        scenario: Scenario,
        scheduler: Any,
        worker: Worker,
        builder: RequestBuilder,
        results: Results,
        *,
        record: bool = True,
    ) -> None:
        super().__init__(scenario)
        self._scheduler = scheduler
        self._worker = worker
        self._builder = builder
        self._results = results
        self._indices = self.log.indices
        self._world = World(scenario, self._indices)
        self._updates = Updates(scenario, scheduler, results, self._world)
        if scheduler.connector is not None:
            scheduler.connector.hooks = self._world.hooks()
        if record:
            record_calls(scheduler, self.log)
        self._reader = StateReader(
            scheduler,
            results.statuses,
            self._indices,
            is_encoder_decoder=scenario.config.is_encoder_decoder,
        )
        self._requests: dict[int, Any] = {}
        self._turns = [0] * len(scenario.requests)
        self._rejected: dict[int, None] = {}
        self._num_arrivals = 0

    def error(self, raised: Exception) -> ErrorSeen:
        """See :class:`impl.harness.loop.Loop`."""
        return observed(raised)

    def all_ended(self) -> bool:
        """See :class:`impl.harness.loop.Loop`."""
        return not self._scheduler.requests

    def arrive(self, request: int) -> None:
        """See :class:`impl.harness.loop.Loop`."""
        source = self.scenario.requests[request]
        self._requests[request] = self._builder.first_turn(request, source, self._next_arrival())
        self._scheduler.add_request(self._requests[request])

    def go_on(self, request: int) -> None:
        """Hand over the next input, and after the last one the end of the stream, if then."""
        source = self.scenario.requests[request]
        turn = self._turns[request]
        self._turns[request] += 1
        if request_name(request) not in self._scheduler.requests:
            # It was aborted or refused: the engine's front end sends nothing more.
            return
        update = self._builder.next_turn(
            request, source, source.continuations[turn], self._next_arrival()
        )
        self._scheduler.add_request(update)
        if turn + 1 == len(source.continuations) and source.close is None:
            self.close(request)

    def close(self, request: int) -> None:
        """See :class:`impl.harness.loop.Loop`."""
        if request_name(request) in self._scheduler.requests:
            self._scheduler.add_request(self._builder.end_of_stream(request, self._next_arrival()))

    def _next_arrival(self) -> int:
        self._num_arrivals += 1
        return self._num_arrivals

    def abort(self, request: int) -> None:
        """See :class:`impl.harness.loop.Loop`."""
        self._scheduler.finish_requests(request_name(request), self._results.aborted)

    def reset(self) -> None:
        """See :class:`impl.harness.loop.Loop`."""
        self._scheduler.reset_encoder_cache()
        self._worker.reset()

    def schedule(self, index: int) -> VllmPass:
        """See :class:`impl.harness.loop.Loop`."""
        scheduler = self._scheduler
        before = {r.request_id: r.num_output_placeholders for r in scheduler.running}
        self._world.take_loads()
        output = scheduler.schedule()
        still = {r.request_id for r in scheduler.running}
        preempted = tuple([self._indices[name] for name in before if name not in still])
        num_rejected = len(self._rejected)
        for name in getattr(scheduler, "encoder_cache_mismatch_reqs", ()):
            self._rejected[self._indices[name]] = None
        progress = {new.req_id: new.num_computed_tokens for new in output.scheduled_new_reqs}
        cached_reqs = output.scheduled_cached_reqs
        progress.update(zip(cached_reqs.req_ids, cached_reqs.num_computed_tokens, strict=True))
        drafts = output.scheduled_spec_decode_tokens
        batch = tuple(
            [
                _scheduled_request(
                    self._indices[name],
                    progress[name],
                    num_tokens,
                    len(drafts.get(name, ())),
                    before.get(name, 0),
                    scheduler.requests[name].num_tokens,
                    name not in before,
                )
                for name, num_tokens in output.num_scheduled_tokens.items()
            ]
        )
        loaded = self._world.take_loads()
        rejected = tuple([*self._rejected][num_rejected:])
        return VllmPass(index, output, batch, self._requests, loaded, preempted, rejected)

    def contents(self, scheduled: VllmPass) -> Contents:
        """See :class:`impl.harness.loop.Loop`."""
        output = scheduled.output
        inputs = [
            (self._indices[name], feature)
            for name, features in output.scheduled_encoder_inputs.items()
            for feature in features
        ]
        return contents_of(
            scheduled.batch,
            tuple(inputs),
            tuple(output.free_encoder_mm_hashes),
            scheduled.preempted,
            scheduled.rejected,
        )

    def execute(self, scheduled: VllmPass) -> WorkerSeen:
        """See :class:`impl.harness.loop.Loop`."""
        return self._worker.execute(scheduled.output)

    def run(self, scheduled: VllmPass) -> None:
        """See :class:`impl.harness.loop.Loop`."""
        self._worker.advance(scheduled.output)

    def update(self, scheduled: VllmPass) -> list[RequestOutcome]:
        """See :class:`impl.harness.loop.Loop`."""
        return self._updates.update(scheduled)

    def state(self) -> EngineState:
        """See :class:`impl.harness.loop.Loop`."""
        return self._reader.read(self._requests, self._rejected)
