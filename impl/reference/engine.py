"""The reference as an engine in the loop: its scheduler, its book, its worker and its updates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from impl.harness.calls import record_book, record_rejections, record_slots
from impl.harness.loop import Contents, Loop, contents_of
from impl.harness.states import Held, States
from impl.reference.features import features_of
from impl.reference.parts import Parts
from impl.reference.scheduling.book import Book
from impl.reference.scheduling.encoder_cache import EncoderCacheManager
from impl.reference.scheduling.kv_blocks import KvBlocks
from impl.reference.scheduling.output import SchedulerOutput
from impl.reference.scheduling.scheduled_request import SchedulerRequest, Turn
from impl.reference.scheduling.updates import RequestInFlight
from impl.target import Runner
from impl.tensors import TensorSettings
from spec.functions.observations import request_name
from spec.record.quick import quick
from spec.record.scenario import Scenario
from spec.record.steps import EngineState, LoopBookState, RequestOutcome, RequestState, WorkerSeen

_engine_state, _request_state = quick(EngineState), quick(RequestState)


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A pass of the reference.

    Attributes:
        index: number of the pass.
        output: what the worker is sent.
        rejected: requests refused for good.
        batch: what its update needs of each request that runs.
    """

    index: int
    output: SchedulerOutput
    rejected: list[int]
    batch: list[RequestInFlight]


class Engine(Loop[Scheduled]):
    """Runs a scenario on the reference.

    Args:
        runner: the worker's order and gathers.
        tensors: device, dtype and hidden size; ``None`` for rows without tensors.
        record: whether calls are kept.
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
        super().__init__(scenario)
        config = scenario.config
        book_class = parts.encoder_decoder_book if config.is_encoder_decoder else parts.book
        self._book: Book = book_class(config.encoder_cache_size)
        kv_blocks = KvBlocks(config.num_kv_blocks, config.block_size, config.num_speculative_tokens)
        self.scheduler = parts.scheduler(config, parts, self._book, kv_blocks)
        if record:
            record_book(self._book, self.log)
            record_rejections(self._book, "has_other_rows", self.log)
            record_slots(kv_blocks, self.log, counted="num_tokens")
        self.updates = parts.updates(self.scheduler, scenario.requests, parts.free_encoder_inputs)
        self.updates.continued = self.log.continued
        self._worker = parts.worker(
            parts,
            runner,
            gather_lookahead=config.gather_lookahead,
            is_encoder_decoder=config.is_encoder_decoder,
            tensors=tensors,
        )
        self._features = partial(features_of, parts.placeholder_range)
        self._requests: dict[int, SchedulerRequest] = {}
        self._states = States(self.log.indices)

    def all_ended(self) -> bool:
        """See :class:`impl.harness.loop.Loop`."""
        return all(request.has_ended for request in self._requests.values())

    def arrive(self, request: int) -> None:
        """See :class:`impl.harness.loop.Loop`."""
        source = self.scenario.requests[request]
        arriving = SchedulerRequest(
            request_name(request),
            (),
            index=request,
            priority=source.priority,
            arrival=len(self._requests),
            turns_left=len(source.continuations),
            is_open=source.close is not None,
            prefix_hits=source.prefix_hits,
        )
        features = self._features(source.features)
        arriving.begin_turn(Turn(source.num_prompt_tokens, features, source.max_tokens))
        self._requests[request] = arriving
        self.scheduler.waiting.add(arriving)

    def go_on(self, request: int) -> None:
        """See :class:`impl.harness.loop.Loop`."""
        source, streaming = self.scenario.requests[request], self._requests[request]
        begun = len(source.continuations) - streaming.turns_left + len(streaming.turns_arrived)
        turn = source.continuations[begun]
        streaming.turns_arrived.append(
            Turn(turn.num_prompt_tokens, self._features(turn.features), turn.max_tokens)
        )
        if streaming.status == "paused":
            self.updates.begin_turn(streaming)

    def close(self, request: int) -> None:
        """See :class:`impl.harness.loop.Loop`."""
        streaming = self._requests[request]
        streaming.is_open = False
        if streaming.status == "paused":
            self.scheduler.end(streaming)

    def abort(self, request: int) -> None:
        """See :class:`impl.harness.loop.Loop`."""
        if not self._requests[request].has_ended:
            self.scheduler.end(self._requests[request])

    def reset(self) -> None:
        """See :class:`impl.harness.loop.Loop`."""
        self._book.reset()
        self._worker.reset()

    def schedule(self, index: int) -> Scheduled:
        """See :class:`impl.harness.loop.Loop`."""
        output, rejected = self.scheduler.schedule()
        batch = []
        for entry in output.scheduled:
            request = self._requests[entry.request]
            end = entry.num_computed_tokens + entry.num_scheduled_tokens
            samples = end >= entry.prefill_len + entry.num_output_placeholders
            batch.append(
                RequestInFlight(
                    request,
                    entry.num_scheduled_tokens,
                    entry.num_draft_tokens,
                    samples,
                    request.epoch,
                )
            )
        return Scheduled(index, output, rejected, batch)

    def contents(self, scheduled: Scheduled) -> Contents:
        """See :class:`impl.harness.loop.Loop`."""
        output = scheduled.output
        return contents_of(
            tuple(output.scheduled),
            tuple(output.encoder_inputs),
            tuple(output.free_encoder_mm_hashes),
            tuple(output.preempted),
            tuple(scheduled.rejected),
        )

    def execute(self, scheduled: Scheduled) -> WorkerSeen:
        """See :class:`impl.harness.loop.Loop`."""
        return self._worker.execute(scheduled.output)

    def run(self, scheduled: Scheduled) -> None:
        """See :class:`impl.harness.loop.Loop`."""
        self._worker.advance(scheduled.output)

    def update(self, scheduled: Scheduled) -> Iterator[RequestOutcome]:
        """See :class:`impl.harness.loop.Loop`."""
        return self.updates.update(scheduled.index, scheduled.batch)

    def state(self) -> EngineState:
        """See :class:`impl.harness.loop.Loop`."""
        held = [
            (
                request.index,
                (
                    request.status,
                    request.num_computed_tokens,
                    request.num_output_placeholders,
                    request.num_draft_tokens,
                    request.num_tokens,
                    request.num_blocks,
                ),
            )
            for request in self._requests.values()
        ]
        return _engine_state(
            self._states.requests(held, _state_of),
            tuple([request.index for request in self.scheduler.waiting]),
            tuple([request.index for request in self.scheduler.running]),
            self._book_state(),
        )

    def _book_state(self) -> LoopBookState:
        book = self._book
        if not isinstance(book, EncoderCacheManager):
            return self._states.book({}, (), book.num_free_slots, None)
        entries = {name: list(holders) for name, holders in book.references.items()}
        return self._states.book(
            entries, book.freeable, book.num_free_slots, book.num_freeable_slots
        )


def _state_of(index: int, held: Held) -> RequestState:
    return _request_state(index, *held)
