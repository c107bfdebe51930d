"""The loop around a real scheduler, in the order of the engine core."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from impl.vllm.runs.recording import CallLog, StateReader, record_calls
from impl.vllm.runs.requests import RequestBuilder
from impl.vllm.runs.results import Results
from impl.vllm.runs.updates import InFlight, Updates
from impl.vllm.runs.worker import Worker
from impl.vllm.runs.world import World
from spec.functions.observations import request_name
from spec.record.events import events_by_pass
from spec.record.quick import quick
from spec.record.scenario import Scenario
from spec.record.steps import (
    EngineState,
    ErrorSeen,
    Event,
    EventSeen,
    Outcome,
    PassSeen,
    ScheduledRequest,
    Step,
    UpdateSeen,
)

_pass_seen, _update_seen = quick(PassSeen), quick(UpdateSeen)
_scheduled_request = quick(ScheduledRequest)


class VllmEngine:
    """Runs a scenario on a real scheduler.

    Synchronously, a pass is scheduled, executed and updated before the next one. Asynchronously,
    ``async_depth`` further passes are scheduled before a pass is updated, as the engine core's
    queue of batches orders it; the worker executes outputs in order, at schedule time.

    Args:
        scenario: a valid scenario.
        scheduler: the real scheduler, new.
        worker: applies its outputs.
        builder: makes requests.
        results: makes what the scheduler is updated with.
        record: whether calls are kept, as :meth:`steps` needs.
    """

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
        self._scenario = scenario
        self._scheduler = scheduler
        self._worker = worker
        self._builder = builder
        self._results = results
        indices = {request_name(i): i for i in range(len(scenario.requests))}
        self._indices = indices
        self._log = CallLog(indices)
        self._world = World(scenario, indices)
        self._updates = Updates(scenario, scheduler, results, self._world)
        if scheduler.connector is not None:
            scheduler.connector.hooks = self._world.hooks()
        if record:
            record_calls(scheduler, self._log)
        self._reader = StateReader(scheduler, results.statuses, indices)
        self._requests: dict[int, Any] = {}
        self._turns = [0] * len(scenario.requests)
        self._rejected: dict[int, None] = {}
        self._in_flight: deque[InFlight] = deque()
        self._events = events_by_pass(scenario)
        self._last_event = max(self._events, default=-1)
        self._next_pass = 0
        self._num_arrivals = 0

    def at_rest(self) -> bool:
        """Whether every request has ended and nothing is in flight or expected."""
        return (
            self._next_pass > self._last_event
            and not any(pending.batch for pending in self._in_flight)
            and not self._scheduler.requests
        )

    def advance(self) -> bool:
        """Run one pass with its events and update, without recording; whether more can follow."""
        if self.at_rest():
            return False
        for event, request in self._events.get(self._next_pass, ()):
            self._apply(event, request)
        pending = self._schedule()
        self._worker.advance(pending.output)
        due = self._due(pending)
        if due is not None:
            for _ in self._updates.update(due):
                pass
        return True

    def steps(self) -> Iterator[Step]:
        """Run and record until the engine is at rest, or the scheduler raised."""
        while not self.at_rest():
            index = self._next_pass
            for event, request in self._events.get(index, ()):
                happened = self._record_event(index, event, request)
                yield happened
                if happened.error is not None:
                    return
            seen, due = self._record_pass(index)
            yield seen
            if seen.error is not None:
                return
            if due is not None:
                update = self._record_update(due)
                if due.batch or update.calls or update.error:
                    yield update
                if update.error is not None:
                    return

    def _record_event(self, index: int, event: Event, request: int) -> EventSeen:
        error = None
        try:
            self._apply(event, request)
        except Exception as raised:
            error = _seen(raised)
        calls, continued = self._log.take(), self._log.take_continued()
        return EventSeen(index, event, request, calls, continued, self._state(), error)

    def _record_pass(self, index: int) -> tuple[PassSeen, InFlight | None]:
        num_rejected = len(self._rejected)
        try:
            pending = self._schedule()
        except Exception as error:
            calls, state, seen = self._log.take(), self._state(), _seen(error)
            return PassSeen(index, calls, (), (), (), (), (), state, None, seen), None
        calls, state, output = self._log.take(), self._state(), pending.output
        inputs = [
            (self._indices[name], feature)
            for name, features in output.scheduled_encoder_inputs.items()
            for feature in features
        ]
        seen_pass = _pass_seen(
            index,
            calls,
            pending.batch,
            tuple(inputs),
            tuple(output.free_encoder_mm_hashes),
            self._preempted,
            tuple([*self._rejected][num_rejected:]),
            state,
            self._worker.execute(output),
        )
        return seen_pass, self._due(pending)

    def _record_update(self, due: InFlight) -> UpdateSeen:
        outcomes: list[Outcome] = []
        error = None
        try:
            outcomes = self._updates.update(due)
        except Exception as raised:
            error = _seen(raised)
        calls, continued = self._log.take(), self._log.take_continued()
        return _update_seen(due.index, tuple(outcomes), calls, continued, self._state(), error)

    def _schedule(self) -> InFlight:
        scheduler = self._scheduler
        before = {r.request_id: r.num_output_placeholders for r in scheduler.running}
        self._world.take_loads()
        index = self._next_pass
        self._next_pass += 1
        output = scheduler.schedule()
        still = {r.request_id for r in scheduler.running}
        self._preempted = tuple([self._indices[name] for name in before if name not in still])
        for name in getattr(scheduler, "encoder_cache_mismatch_reqs", ()):
            self._rejected[self._indices[name]] = None
        progress = {new.req_id: new.num_computed_tokens for new in output.scheduled_new_reqs}
        known = output.scheduled_cached_reqs
        progress.update(zip(known.req_ids, known.num_computed_tokens, strict=True))
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
        pending = InFlight(index, output, batch, self._requests, loaded)
        self._in_flight.append(pending)
        return pending

    def _due(self, pending: InFlight) -> InFlight | None:
        """The pass to update now: the oldest when enough follow it, or when nothing else runs."""
        if len(self._in_flight) > self._scenario.config.async_depth or not pending.batch:
            return self._in_flight.popleft()
        return None

    def _apply(self, event: Event, index: int) -> None:
        scheduler = self._scheduler
        match event:
            case "arrival":
                source = self._scenario.requests[index]
                request = self._builder.first_turn(index, source, self._arrive())
                self._requests[index] = request
                scheduler.add_request(request)
            case "continuation":
                self._continue(index)
            case "abort":
                scheduler.finish_requests(request_name(index), self._results.aborted)
            case "reset":
                scheduler.reset_encoder_cache()
                self._worker.reset()

    def _continue(self, index: int) -> None:
        """Hand over the next input, and after the last one the end of the stream."""
        source = self._scenario.requests[index]
        turn = self._turns[index]
        self._turns[index] += 1
        if request_name(index) not in self._scheduler.requests:
            # It was aborted or refused: the engine's front end sends nothing more.
            return
        update = self._builder.next_turn(index, source, source.continuations[turn], self._arrive())
        self._scheduler.add_request(update)
        if turn + 1 == len(source.continuations):
            self._scheduler.add_request(self._builder.end_of_stream(index, self._arrive()))

    def _arrive(self) -> int:
        self._num_arrivals += 1
        return self._num_arrivals

    def _state(self) -> EngineState:
        return self._reader.read(self._requests, self._rejected)


def _seen(error: Exception) -> ErrorSeen:
    return ErrorSeen(type(error).__name__, str(error))
