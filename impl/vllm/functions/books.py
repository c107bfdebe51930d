"""Call a release's book, and its scheduler's *free*, one operation at a time."""

from __future__ import annotations

from typing import Any

from impl.harness.calls import Named, Positional, argument, wrap
from impl.vllm.functions.objects import Builder, UnavailableError, half_made, observed, require
from impl.vllm.launch.load import Loaded
from spec.functions.cases import BookCase, BookOperation, FreeCase
from spec.functions.observations import (
    Answer,
    BookObservation,
    BookState,
    BookStep,
    FreeMoment,
    FreeObservation,
    request_name,
)
from spec.record.feature import Feature

_MODULE = "v1.core.encoder_cache_manager"


class Books:
    """Makes books of the release and plays cases on them.

    Raises:
        UnavailableError: the release has no such book.
    """

    def __init__(self, loaded: Loaded, builder: Builder, is_encoder_decoder: bool) -> None:
        name = "EncoderDecoderCacheManager" if is_encoder_decoder else "EncoderCacheManager"
        self._class: Any = require(loaded, _MODULE, name)
        self._builder = builder
        self._is_encoder_decoder = is_encoder_decoder

    def make(self, cache_size: int) -> Any:
        """A fresh book of ``cache_size`` rows."""
        return self._class(cache_size=cache_size)

    def state_of(self, book: Any) -> BookState:
        """A book's contents as it reports them; the encoder-decoder book keeps no entries."""
        if self._is_encoder_decoder:
            return BookState((), book.num_free_slots, getattr(book, "num_freeable_slots", None))
        return BookState(
            references=tuple(
                (name, tuple(sorted(holders))) for name, holders in book.cached.items()
            ),
            num_free_slots=book.num_free_slots,
            num_freeable_slots=book.num_freeable_slots,
        )

    def observe(self, case: BookCase) -> BookObservation:
        """Carry out the operations in order, up to an error."""
        book = self.make(case.cache_size)
        requests = [
            self._builder.request(request_name(index), features)
            for index, features in enumerate(case.requests)
        ]
        ever_taken: set[tuple[int, int]] = set()
        steps: list[BookStep] = []
        for operation in case.operations:
            try:
                answer, notices = self._carry_out(case, book, requests, operation, ever_taken)
            except Exception as error:
                return BookObservation(tuple(steps), observed(error))
            steps.append(BookStep(answer, notices, self.state_of(book)))
        return BookObservation(tuple(steps))

    def _carry_out(
        self,
        case: BookCase,
        book: Any,
        requests: list[Any],
        operation: BookOperation,
        ever_taken: set[tuple[int, int]],
    ) -> tuple[Answer, tuple[str, ...]]:
        if operation.action == "end_pass":
            return "done", tuple(book.get_freed_mm_hashes())
        if operation.action == "reset":
            book.reset()
            ever_taken.clear()
            return "done", ()
        request = requests[operation.request]
        if operation.action == "finish":
            book.free(request)
            return "done", ()
        occurrence = (operation.request, operation.feature)
        if operation.action == "drop":
            # The scheduler lets go only of what the book lists for the request. The
            # encoder-decoder book lists everything, but is asked only after the first step, which
            # took everything.
            listed = operation.feature in book.get_cached_input_ids(request)
            if listed and (not self._is_encoder_decoder or occurrence in ever_taken):
                book.free_encoder_input(request, operation.feature)
            return "done", ()
        feature = case.requests[operation.request][operation.feature]
        answer = take(
            book,
            request,
            operation.feature,
            feature,
            operation.encoder_budget,
            operation.num_rows_chosen,
        )
        if answer in ("hit", "allocated"):
            ever_taken.add(occurrence)
        return answer, ()


def take(
    book: Any,
    request: Any,
    index: int,
    feature: Feature,
    encoder_budget: int | None = None,
    num_rows_chosen: int = 0,
) -> Answer:
    """Ask the book for a feature as the release's scheduler does.

    Where the book keeps the row count of a hash (57696, since 0.31.0), the scheduler rejects a
    request with another count. Then a hit is tried; else room is asked for, and the item is
    allocated.

    Args:
        book: a book of the release.
        index: which of its features.
        encoder_budget: rows that the encoder may still compute; ``None``: as many as needed.
        num_rows_chosen: rows chosen before in the same scheduling call and not yet allocated.
    """
    stored_rows = getattr(book, "get_cached_num_encoder_embeds", None)
    if stored_rows is not None and hasattr(book, "cached"):
        stored = stored_rows(request, index)
        if stored is not None and stored != request.get_num_encoder_embeds(index):
            return "rejected"
    if book.check_and_update_cache(request, index):
        return "hit"
    budget = max(feature.num_rows, book.cache_size) if encoder_budget is None else encoder_budget
    if not book.can_allocate(request, index, budget, num_rows_chosen):
        return "refused"
    book.allocate(request, index)
    return "allocated"


class Frees:
    """Runs ``Scheduler._free_encoder_inputs`` on a scheduler that has only what it reads.

    Raises:
        UnavailableError: the release has no such method.
    """

    def __init__(self, loaded: Loaded, builder: Builder) -> None:
        self._class: Any = require(loaded, "v1.core.sched.scheduler", "Scheduler")
        if not callable(getattr(self._class, "_free_encoder_inputs", None)):
            raise UnavailableError("Scheduler has no _free_encoder_inputs")
        self._builder = builder
        self._books = {
            is_encoder_decoder: Books(loaded, builder, is_encoder_decoder)
            for is_encoder_decoder in (False, True)
        }

    def observe(self, case: FreeCase) -> FreeObservation:
        """Take every feature, then run *free* at each moment, up to an error."""
        books = self._books[case.is_encoder_decoder]
        book = books.make(case.cache_size)
        request = self._builder.request(request_name(0), case.features)
        scheduler = object.__new__(half_made(self._class))
        scheduler.encoder_cache_manager = book
        scheduler.is_encoder_decoder = case.is_encoder_decoder
        scheduler.ec_connector = None
        # 0.24 to 0.27 know only whether there is a drafter, 0.28 to 0.32 how far it looks ahead.
        scheduler.use_eagle = case.scheduler_shift > 0
        scheduler.num_prefill_lookahead = case.scheduler_shift
        dropped: list[int] = []
        moments: list[FreeMoment] = []
        try:
            for index, feature in enumerate(case.features):
                take(book, request, index, feature)
            _record_drops(book, dropped)
            for progress in case.progress:
                request.num_computed_tokens = progress.num_computed_tokens
                request.num_output_placeholders = progress.num_output_placeholders
                scheduler._free_encoder_inputs(request)
                moments.append(FreeMoment(tuple(dropped), books.state_of(book)))
                dropped.clear()
        except Exception as error:
            return FreeObservation(tuple(moments), observed(error))
        return FreeObservation(tuple(moments))


def _record_drops(book: Any, dropped: list[int]) -> None:
    """Note which features are let go, in order; the book's own method does the work."""
    feature_of = argument(book.free_encoder_input, "input_id", 1)

    def note(_: Any, args: Positional, kwargs: Named) -> None:
        dropped.append(feature_of(args, kwargs))

    wrap(book, "free_encoder_input", note)
