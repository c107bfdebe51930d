"""Keep the calls that a real scheduler makes, and look at what it holds.

The methods of the book and of the KV manager are wrapped on the instance; they answer themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any

from spec.record.quick import quick
from spec.record.steps import Call, EngineState, LoopBookState, RequestState, Status

_call, _engine_state, _request_state = quick(Call), quick(EngineState), quick(RequestState)
_NO_CALLS: tuple[Call, ...] = ()

_held = attrgetter(
    "status",
    "num_computed_tokens",
    "num_output_placeholders",
    "num_tokens",
    "spec_token_ids",
    "request_id",
)
"""What is read of a request, in one call."""


class CallLog:
    """Calls since they were last taken.

    Args:
        indices: index of each request, by id.
    """

    def __init__(self, indices: Mapping[str, int]) -> None:
        self.indices = indices
        self.calls: list[Call] = []
        self.continued: list[tuple[int, int]] = []

    def take(self) -> tuple[Call, ...]:
        """All calls so far, once."""
        if not self.calls:
            return _NO_CALLS
        calls = tuple(self.calls)
        self.calls.clear()
        return calls

    def take_continued(self) -> tuple[tuple[int, int], ...]:
        """Requests whose next turn began, with its first position, once."""
        if not self.continued:
            return ()
        continued = tuple(self.continued)
        self.continued.clear()
        return continued


def record_calls(scheduler: Any, log: CallLog) -> None:
    """Let the log know of the scheduler's calls from now on."""
    _record_book(scheduler.encoder_cache_manager, log)
    _record_kv_blocks(scheduler.kv_cache_manager, log)
    if hasattr(scheduler, "_reject_on_encoder_cache_embed_mismatch"):
        _record_rejections(scheduler, log)
    if hasattr(scheduler, "_update_request_as_session"):
        _record_turns(scheduler, log)


def _record_book(book: Any, log: CallLog) -> None:
    indices, check, fits = log.indices, book.check_and_update_cache, book.can_allocate
    allocate, drop, free, reset = book.allocate, book.free_encoder_input, book.free, book.reset

    def check_and_update_cache(request: Any, input_id: int) -> bool:
        hit: bool = check(request, input_id)
        index = indices[request.request_id]
        log.calls.append(_call("check_and_update_cache", index, input_id, hit))
        return hit

    def can_allocate(request: Any, input_id: int, budget: int, chosen: int) -> bool:
        answer: bool = fits(request, input_id, budget, chosen)
        index = indices[request.request_id]
        log.calls.append(_call("can_allocate", index, input_id, answer, budget, chosen))
        return answer

    def recorded_allocate(request: Any, input_id: int) -> None:
        allocate(request, input_id)
        log.calls.append(_call("allocate", indices[request.request_id], input_id))

    def free_encoder_input(request: Any, input_id: int) -> None:
        drop(request, input_id)
        log.calls.append(_call("free_encoder_input", indices[request.request_id], input_id))

    def recorded_free(request: Any) -> None:
        # A book that frees input by input is seen as one call, as it was made.
        before = len(log.calls)
        free(request)
        del log.calls[before:]
        log.calls.append(_call("free", indices[request.request_id]))

    def recorded_reset() -> None:
        reset()
        log.calls.append(_call("reset"))

    book.check_and_update_cache = check_and_update_cache
    book.can_allocate = can_allocate
    book.allocate = recorded_allocate
    book.free_encoder_input = free_encoder_input
    book.free = recorded_free
    book.reset = recorded_reset


def _record_kv_blocks(kv_blocks: Any, log: CallLog) -> None:
    allocate: Callable[..., Any] = kv_blocks.allocate_slots

    def allocate_slots(request: Any, num_new_tokens: int, *args: Any, **kwargs: Any) -> Any:
        before = (
            request.num_computed_tokens
            + (args[0] if args else kwargs.get("num_new_computed_tokens", 0))
            + kwargs.get("num_external_computed_tokens", 0)
        )
        blocks = allocate(request, num_new_tokens, *args, **kwargs)
        index = log.indices[request.request_id]
        answer = blocks is not None
        log.calls.append(_call("allocate_slots", index, -1, answer, before + num_new_tokens))
        return blocks

    kv_blocks.allocate_slots = allocate_slots


def _record_rejections(scheduler: Any, log: CallLog) -> None:
    reject: Callable[..., bool] = scheduler._reject_on_encoder_cache_embed_mismatch

    def recorded(request: Any, input_id: int, *args: Any, **kwargs: Any) -> bool:
        rejected = reject(request, input_id, *args, **kwargs)
        if rejected:
            index = log.indices[request.request_id]
            log.calls.append(_call("check_and_update_cache", index, input_id))
        return rejected

    scheduler._reject_on_encoder_cache_embed_mismatch = recorded


def _record_turns(scheduler: Any, log: CallLog) -> None:
    begin: Callable[..., None] = scheduler._update_request_as_session

    def recorded(session: Any, update: Any) -> None:
        begin(session, update)
        base = session.num_tokens - len(update.prompt_token_ids)
        log.continued.append((log.indices[session.request_id], base))

    scheduler._update_request_as_session = recorded


class StateReader:
    """Reads what a scheduler holds.

    Parts that are as they were when last read are the same objects again: they are compared here
    once, and whoever judges them can tell at a glance.

    Args:
        scheduler: the real scheduler.
        statuses: its class of statuses.
        indices: index of each request, by id.
    """

    def __init__(self, scheduler: Any, statuses: Any, indices: Mapping[str, int]) -> None:
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
        self._states: dict[int, tuple[tuple[Any, ...], RequestState]] = {}
        self._entries: tuple[dict[str, list[Any]], tuple[tuple[str, tuple[int, ...]], ...]] = (
            {},
            (),
        )
        self._book_state: LoopBookState | None = None

    def read(self, requests: Mapping[int, Any], rejected: Collection[int]) -> EngineState:
        """The state of the requests that have arrived, of the queues and of the book."""
        indices, states, blocks = self._indices, self._states, self._blocks
        found = []
        for index, request in requests.items():
            held = _held(request)
            num_drafts, num_blocks = len(held[4]), len(blocks.get(held[5], ()))
            # Most requests stand as they did: compared first, and made only if they do not.
            known = states.get(index)
            values = (*held[:4], num_drafts, num_blocks, index in rejected)
            if known is None or known[0] != values:
                status: Status = "rejected" if index in rejected else "finished"
                state = _request_state(
                    index,
                    self._statuses.get(held[0], status),
                    held[1],
                    held[2],
                    num_drafts,
                    held[3],
                    num_blocks,
                )
                states[index] = known = (values, state)
            found.append(known[1])
        return _engine_state(
            tuple(found),
            self._waiting(),
            tuple([indices[request.request_id] for request in self._scheduler.running]),
            self._book(),
        )

    def _waiting(self) -> tuple[int, ...]:
        waiting = []
        for name in self._queues:
            for request in getattr(self._scheduler, name):
                if self._statuses.get(request.status) != "paused":
                    waiting.append(self._indices[request.request_id])
        return tuple(waiting)

    def _book(self) -> LoopBookState:
        book = self._scheduler.encoder_cache_manager
        cached = getattr(book, "cached", None)
        references: tuple[tuple[str, tuple[int, ...]], ...] = ()
        freeable: tuple[str, ...] = ()
        num_freeable_slots = None
        if cached is not None:
            references = self._references(cached)
            freeable = tuple(book.freeable)
            num_freeable_slots = book.num_freeable_slots
        known = self._book_state
        if (
            known is None
            or known.references is not references
            or known.freeable != freeable
            or known.num_free_slots != book.num_free_slots
            or known.num_freeable_slots != num_freeable_slots
        ):
            known = LoopBookState(references, freeable, book.num_free_slots, num_freeable_slots)
            self._book_state = known
        return known

    def _references(
        self, cached: Mapping[str, Iterable[Any]]
    ) -> tuple[tuple[str, tuple[int, ...]], ...]:
        entries = {name: list(holders) for name, holders in cached.items()}
        known, references = self._entries
        # Two dictionaries are equal in whatever order their keys are; a record keeps the order.
        if entries != known or list(entries) != list(known):
            indices = self._indices
            references = tuple(
                [
                    (name, tuple([indices[_holder(holder)] for holder in holders]))
                    for name, holders in entries.items()
                ]
            )
            self._entries = (entries, references)
        return references


def _holder(holder: Any) -> str:
    """The request of a reference; some releases keep it with the feature."""
    name: str = holder if isinstance(holder, str) else holder[0]
    return name
