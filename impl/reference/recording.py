"""Keeping the calls that a scheduler makes, and looking at what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from impl.reference.scheduling.book import Book
from impl.reference.scheduling.encoder_cache import EncoderCacheManager
from impl.reference.scheduling.kv_blocks import KvBlocks
from impl.reference.scheduling.request import Request
from impl.reference.scheduling.scheduled_request import SchedulerRequest
from impl.reference.scheduling.scheduler import Scheduler
from spec.record.quick import quick
from spec.record.steps import Call, EngineState, LoopBookState, RequestState

_call, _request_state = quick(Call), quick(RequestState)
_engine_state, _book_seen = quick(EngineState), quick(LoopBookState)


class CallLog:
    """Calls since they were last taken.

    Args:
        indices: index of each request, by id.
    """

    def __init__(self, indices: Mapping[str, int]) -> None:
        self.indices = indices
        self.calls: list[Call] = []

    def take(self) -> tuple[Call, ...]:
        """All calls so far, once."""
        calls, self.calls = tuple(self.calls), []
        return calls


class RecordingBook:
    """A book that keeps the calls to it.

    Args:
        book: the book that answers.
        log: where calls go.
    """

    def __init__(self, book: Book, log: CallLog) -> None:
        self.inner = book
        self._log = log

    @property
    def num_free_slots(self) -> int:
        """Rows of no entry."""
        return self.inner.num_free_slots

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        """As the book's, kept with its answer."""
        hit = self.inner.check_and_update_cache(request, input_id)
        index = self._log.indices[request.request_id]
        self._log.calls.append(_call("check_and_update_cache", index, input_id, hit))
        return hit

    def has_other_rows(self, request: Request, input_id: int) -> bool:
        """As the book's; a rejection is kept as a question that found no answer."""
        unlike = self.inner.has_other_rows(request, input_id)
        if unlike:
            index = self._log.indices[request.request_id]
            self._log.calls.append(_call("check_and_update_cache", index, input_id))
        return unlike

    def can_allocate(
        self,
        request: Request,
        input_id: int,
        encoder_compute_budget: int,
        num_embeds_to_schedule: int,
    ) -> bool:
        """As the book's, kept with its answer."""
        fits = self.inner.can_allocate(
            request, input_id, encoder_compute_budget, num_embeds_to_schedule
        )
        index = self._log.indices[request.request_id]
        self._log.calls.append(
            _call(
                "can_allocate",
                index,
                input_id,
                fits,
                encoder_compute_budget,
                num_embeds_to_schedule,
            )
        )
        return fits

    def allocate(self, request: Request, input_id: int) -> None:
        """As the book's, kept."""
        self.inner.allocate(request, input_id)
        self._log.calls.append(_call("allocate", self._log.indices[request.request_id], input_id))

    def get_cached_input_ids(self, request: Request) -> set[int]:
        """As the book's; a question that changes nothing is not kept."""
        return self.inner.get_cached_input_ids(request)

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        """As the book's, kept."""
        self.inner.free_encoder_input(request, input_id)
        index = self._log.indices[request.request_id]
        self._log.calls.append(_call("free_encoder_input", index, input_id))

    def free(self, request: Request) -> None:
        """As the book's, kept."""
        self.inner.free(request)
        self._log.calls.append(_call("free", self._log.indices[request.request_id]))

    def cancel(self, request: Request, input_id: int) -> None:
        """As the book's, kept."""
        self.inner.cancel(request, input_id)
        self._log.calls.append(_call("cancel", self._log.indices[request.request_id], input_id))

    def get_freed_mm_hashes(self) -> list[str]:
        """As the book's; what it returns is seen in the output."""
        return self.inner.get_freed_mm_hashes()

    def reset(self) -> None:
        """As the book's, kept."""
        self.inner.reset()
        self._log.calls.append(_call("reset"))


class RecordingKvBlocks(KvBlocks):
    """KV blocks that keep what was asked of them."""

    log: CallLog

    def allocate_slots(self, request: SchedulerRequest, num_tokens: int) -> bool:
        """As the pool's, kept with its answer."""
        fits = super().allocate_slots(request, num_tokens)
        self.log.calls.append(
            _call("allocate_slots", request.index, answer=fits, budget=num_tokens)
        )
        return fits


def engine_state(
    scheduler: Scheduler, requests: Iterable[SchedulerRequest], book: Book, log: CallLog
) -> EngineState:
    """What the scheduler holds, for the requests that have arrived."""
    return _engine_state(
        tuple(
            _request_state(
                request.index,
                request.status,
                request.num_computed_tokens,
                request.num_output_placeholders,
                request.num_draft_tokens,
                request.num_tokens,
                request.num_blocks,
            )
            for request in requests
        ),
        tuple(request.index for request in scheduler.waiting),
        tuple(request.index for request in scheduler.running),
        _book_state(book, log.indices),
    )


def _book_state(book: Book, indices: Mapping[str, int]) -> LoopBookState:
    if isinstance(book, EncoderCacheManager):
        return _book_seen(
            tuple(
                (identifier, tuple(indices[holder] for holder in holders))
                for identifier, holders in book.references.items()
            ),
            book.freeable,
            book.num_free_slots,
            book.num_freeable_slots,
        )
    return _book_seen((), (), book.num_free_slots, None)
