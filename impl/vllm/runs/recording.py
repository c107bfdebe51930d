"""Keep the calls that a real scheduler makes, and look at what it holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from operator import attrgetter
from typing import Any

from impl.harness.calls import (
    CallLog,
    Named,
    Positional,
    argument,
    record_book,
    record_rejections,
    record_slots,
    wrap,
)
from impl.harness.states import Held, States
from impl.vllm.runs.requests import BEGIN_TURN
from spec.record.quick import quick
from spec.record.steps import EngineState, LoopBookState, RequestState, Status

_engine_state, _request_state = quick(EngineState), quick(RequestState)

_held = attrgetter(
    "status",
    "num_computed_tokens",
    "num_output_placeholders",
    "num_tokens",
    "spec_token_ids",
    "request_id",
)
"""What is read of a request, in one call."""

_REFUSE_ROWS = "_reject_on_encoder_cache_embed_mismatch"


def record_calls(scheduler: Any, log: CallLog) -> None:
    """Let the log know of the scheduler's calls from now on.

    Raises:
        AdapterError: the scheduler's book or KV manager lacks a method that is recorded.
    """
    record_book(scheduler.encoder_cache_manager, log)
    record_slots(
        scheduler.kv_cache_manager,
        log,
        counted="num_new_tokens",
        beside=(("num_new_computed_tokens", 2), ("num_external_computed_tokens", _NO_PLACE)),
    )
    if hasattr(scheduler, _REFUSE_ROWS):
        record_rejections(scheduler, _REFUSE_ROWS, log)
    if hasattr(scheduler, BEGIN_TURN):
        _record_turns(scheduler, log)


_NO_PLACE = 1 << 10
"""Place of a parameter that older releases lack: no call reaches it."""


def _record_turns(scheduler: Any, log: CallLog) -> None:
    method = getattr(scheduler, BEGIN_TURN)
    session_of, update_of = argument(method, "session", 0), argument(method, "update", 1)

    def note(_: Any, args: Positional, kwargs: Named) -> None:
        session = session_of(args, kwargs)
        base = session.num_tokens - len(update_of(args, kwargs).prompt_token_ids)
        log.continued.append((log.indices[session.request_id], base))

    wrap(scheduler, BEGIN_TURN, note)


class StateReader:
    """Reads what a scheduler holds.

    Args:
        statuses: its class of statuses.
        indices: index of each request, by id.
        is_encoder_decoder: whether its book is the one that keeps no entries.
    """

    def __init__(
        self,
        scheduler: Any,
        statuses: Any,
        indices: Mapping[str, int],
        *,
        is_encoder_decoder: bool,
    ) -> None:
        self._keeps_entries = not is_encoder_decoder
        self._scheduler = scheduler
        self._indices = indices
        self._statuses: dict[Any, Status] = {
            statuses.WAITING: "waiting",
            statuses.RUNNING: "running",
            statuses.PREEMPTED: "preempted",
        }
        paused = getattr(statuses, "WAITING_FOR_STREAMING_REQ", None)
        if paused is not None:
            self._statuses[paused] = "paused"
        self._blocks = scheduler.kv_cache_manager.coordinator.single_type_managers[0].req_to_blocks
        # In the order in which the scheduler looks at them.
        names = ("kv_holding_waiting", "skipped_waiting", "waiting")
        self._queues = [name for name in names if hasattr(scheduler, name)]
        self._states = States(indices)

    def read(self, requests: Mapping[int, Any], rejected: Collection[int]) -> EngineState:
        """The state of the requests that have arrived, of the queues and of the book."""
        return _engine_state(
            self._states.requests(self._all_held(requests, rejected), self._state_of),
            self._waiting(),
            tuple([self._indices[request.request_id] for request in self._scheduler.running]),
            self._book(),
        )

    def _all_held(
        self, requests: Mapping[int, Any], rejected: Collection[int]
    ) -> Iterator[tuple[int, Held]]:
        blocks = self._blocks
        for index, request in requests.items():
            status, computed, placeholders, tokens, drafts, name = _held(request)
            num_blocks = len(blocks.get(name, ()))
            yield (
                index,
                (
                    status,
                    computed,
                    placeholders,
                    len(drafts),
                    tokens,
                    num_blocks,
                    index in rejected,
                ),
            )

    def _state_of(self, index: int, held: Held) -> RequestState:
        status, *counts, is_rejected = held
        ended: Status = "rejected" if is_rejected else "finished"
        return _request_state(index, self._statuses.get(status, ended), *counts)

    def _waiting(self) -> tuple[int, ...]:
        waiting = []
        for name in self._queues:
            for request in getattr(self._scheduler, name):
                if self._statuses.get(request.status) != "paused":
                    waiting.append(self._indices[request.request_id])
        return tuple(waiting)

    def _book(self) -> LoopBookState:
        book = self._scheduler.encoder_cache_manager
        if not self._keeps_entries:
            return self._states.book({}, (), book.num_free_slots, None)
        # Some releases keep the request of a reference with its feature.
        entries = {
            name: [holder if isinstance(holder, str) else holder[0] for holder in holders]
            for name, holders in book.cached.items()
        }
        return self._states.book(
            entries, tuple(book.freeable), book.num_free_slots, book.num_freeable_slots
        )
