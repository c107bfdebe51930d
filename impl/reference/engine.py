"""The loop: events, one pass at a time, the worker, and updates one or more passes later."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial

from impl.reference.features import features_of
from impl.reference.parts import Parts
from impl.reference.recording import CallLog, RecordingBook, RecordingKvBlocks, engine_state
from impl.reference.scheduling.book import Book
from impl.reference.scheduling.kv_blocks import KvBlocks
from impl.reference.scheduling.output import SchedulerOutput
from impl.reference.scheduling.scheduled_request import SchedulerRequest, Turn
from impl.reference.scheduling.updates import InFlight
from impl.target import Runner
from impl.tensors import TensorSettings
from spec.functions.observations import request_name
from spec.record.events import events_by_pass
from spec.record.quick import quick
from spec.record.scenario import Scenario
from spec.record.steps import EngineState, ErrorSeen, Event, EventSeen, PassSeen, Step, UpdateSeen

_event_seen, _pass_seen, _update_seen = quick(EventSeen), quick(PassSeen), quick(UpdateSeen)


class Engine:
    """Runs a scenario, recording each step or not.

    Synchronously, a pass is scheduled, executed and updated before the next one. Asynchronously,
    ``async_depth`` further passes are scheduled before a pass is updated; the worker executes
    outputs in order and learns of everything through them, so that running it at schedule time
    shows what it would show later (assumption ``outputs-in-order``).

    Args:
        scenario: a valid scenario.
        parts: the implementation's parts.
        runner: the worker's order and gathers.
        tensors: device, dtype and hidden size; ``None`` for rows without tensors.
        record: whether calls are kept, as :meth:`steps` needs.
    """

    def __init__(
        self,
        scenario: Scenario,
        parts: Parts,
        runner: Runner,
        tensors: TensorSettings | None = None,
        *,
        record: bool = False,
    ) -> None:
        config = scenario.config
        self._scenario = scenario
        self._config = config
        self._log = CallLog({request_name(i): i for i in range(len(scenario.requests))})
        book_class = parts.encoder_decoder_book if config.is_encoder_decoder else parts.book
        self._book: Book = book_class(config.encoder_cache_size)
        pool = (config.num_kv_blocks, config.block_size, config.num_speculative_tokens)
        if record:
            kv_blocks = RecordingKvBlocks(*pool)
            kv_blocks.log = self._log
            self.scheduler = parts.scheduler(
                config, parts, RecordingBook(self._book, self._log), kv_blocks
            )
        else:
            self.scheduler = parts.scheduler(config, parts, self._book, KvBlocks(*pool))
        self.updates = parts.updates(self.scheduler, scenario.requests, parts.free_encoder_inputs)
        self._worker = parts.worker(
            parts,
            runner,
            gather_lookahead=config.gather_lookahead,
            is_encoder_decoder=config.is_encoder_decoder,
            tensors=tensors,
        )
        self._features = partial(features_of, parts.placeholder_range)
        self._requests: dict[int, SchedulerRequest] = {}
        self._in_flight: deque[tuple[int, list[InFlight]]] = deque()
        self._events = events_by_pass(scenario)
        self._last_event = max(self._events, default=-1)
        self._next_pass = 0

    def at_rest(self) -> bool:
        """Whether every request has ended and nothing is in flight or expected."""
        return (
            self._next_pass > self._last_event
            and not self._in_flight
            and all(request.has_ended for request in self._requests.values())
        )

    def advance(self) -> bool:
        """Run one pass with its events and update, without recording; whether more can follow."""
        if self.at_rest():
            return False
        index = self._next_pass
        for event, request in self._events.get(index, ()):
            self._apply(event, request)
        output, _ = self._schedule()
        self._worker.advance(output)
        due = self._due(output)
        if due is not None:
            for _ in self.updates.update(*due):
                pass
            self.updates.continued.clear()
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
                update = self._record_update(*due)
                yield update
                if update.error is not None:
                    return

    def _record_event(self, index: int, event: Event, request: int) -> EventSeen:
        error = None
        try:
            self._apply(event, request)
        except Exception as raised:
            error = _seen(raised)
        calls = self._log.take()
        return _event_seen(index, event, request, calls, self._continued(), self._state(), error)

    def _record_pass(self, index: int) -> tuple[PassSeen, tuple[int, list[InFlight]] | None]:
        try:
            output, rejected = self._schedule()
        except Exception as error:
            calls, state, seen = self._log.take(), self._state(), _seen(error)
            failed = PassSeen(index, calls, (), (), (), (), (), state, None, seen)
            return failed, None
        calls = self._log.take()
        state = self._state()
        seen_pass = _pass_seen(
            index,
            calls,
            tuple(output.scheduled),
            tuple(output.encoder_inputs),
            tuple(output.free_encoder_mm_hashes),
            tuple(output.preempted),
            tuple(rejected),
            state,
            self._worker.execute(output),
        )
        return seen_pass, self._due(output)

    def _record_update(self, index: int, batch: list[InFlight]) -> UpdateSeen:
        outcomes = []
        error = None
        try:
            for outcome in self.updates.update(index, batch):
                outcomes.append(outcome)
        except Exception as raised:
            error = _seen(raised)
        calls = self._log.take()
        return _update_seen(index, tuple(outcomes), calls, self._continued(), self._state(), error)

    def _schedule(self) -> tuple[SchedulerOutput, list[int]]:
        output, rejected = self.scheduler.schedule()
        if output.scheduled:
            batch = []
            for entry in output.scheduled:
                request = self._requests[entry.request]
                end = entry.num_computed_tokens + entry.num_scheduled_tokens
                samples = end >= entry.prefill_len + entry.num_output_placeholders
                batch.append(
                    InFlight(
                        request,
                        entry.num_scheduled_tokens,
                        entry.num_draft_tokens,
                        samples,
                        request.epoch,
                    )
                )
            self._in_flight.append((self._next_pass, batch))
        self._next_pass += 1
        return output, rejected

    def _due(self, output: SchedulerOutput) -> tuple[int, list[InFlight]] | None:
        """The pass to update now: the oldest when enough follow it, or when nothing else runs."""
        if len(self._in_flight) > self._config.async_depth:
            return self._in_flight.popleft()
        if not output.scheduled and self._in_flight:
            return self._in_flight.popleft()
        return None

    def _apply(self, event: Event, index: int) -> None:
        match event:
            case "arrival":
                self._arrive(index)
            case "continuation":
                self._continue(self._requests[index])
            case "abort":
                request = self._requests[index]
                if not request.has_ended:
                    self.scheduler.end(request)
            case "reset":
                self.scheduler.book.reset()
                self._worker.reset()

    def _arrive(self, index: int) -> None:
        source = self._scenario.requests[index]
        request = SchedulerRequest(
            request_name(index),
            (),
            index=index,
            priority=source.priority,
            arrival=len(self._requests),
            turns_left=len(source.continuations),
            prefix_hits=source.prefix_hits,
        )
        features = self._features(source.features)
        request.begin_turn(Turn(source.num_prompt_tokens, features, source.max_tokens))
        self._requests[index] = request
        self.scheduler.waiting.add(request)

    def _continue(self, request: SchedulerRequest) -> None:
        source = self._scenario.requests[request.index]
        begun = len(source.continuations) - request.turns_left + len(request.turns_arrived)
        turn = source.continuations[begun]
        request.turns_arrived.append(
            Turn(turn.num_prompt_tokens, self._features(turn.features), turn.max_tokens)
        )
        if request.status == "paused":
            self.updates.begin_turn(request)

    def _continued(self) -> tuple[tuple[int, int], ...]:
        continued = tuple(self.updates.continued)
        self.updates.continued.clear()
        return continued

    def _state(self) -> EngineState:
        return engine_state(self.scheduler, self._requests.values(), self._book, self._log)


def _seen(error: Exception) -> ErrorSeen:
    return ErrorSeen(type(error).__name__, str(error))
