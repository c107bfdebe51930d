"""The reference implementation, with or without faults, as a target of the claims."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import numpy as np

from impl.late import torch
from impl.reference.features import features_of
from impl.reference.scheduling.book import Book, RowCountMismatchError
from impl.reference.scheduling.encoder_cache import EncoderCacheManager
from impl.reference.scheduling.request import MultiModalFeature, Request
from impl.reference.worker.cache import WorkerCache
from impl.reference.worker.merge import merge_embeddings
from impl.reference.worker.runner_v1 import CachedRequestState, ScheduledTokens
from impl.target import Part, Runner, error_seen
from impl.targets.reference import Reference
from impl.tensors import RowCodec, TensorSettings
from spec.functions.cases import (
    BookCase,
    BookOperation,
    FreeCase,
    GatherCase,
    RowRangeCase,
    WindowCase,
)
from spec.functions.observations import (
    Answer,
    BookObservation,
    BookState,
    BookStep,
    FreeMoment,
    FreeObservation,
    GatherObservation,
    RangeObservation,
    RowIdentity,
    request_name,
)
from spec.record.feature import Feature


class ReferenceTarget(Reference):
    """The reference implementation as a :class:`impl.target.FunctionTarget`."""

    def missing(self, part: Part) -> str | None:
        """Nothing is missing."""
        return None

    def gather(
        self, case: GatherCase, runner: Runner, tensors: TensorSettings
    ) -> GatherObservation:
        """Gather, evict everything, overwrite the memory, and only then look at the rows.

        Raises:
            InputError: the case is not valid, or the device does not exist.
        """
        case.validate()
        tensors.require_device()
        stored = {output.identifier: output.num_rows for output in case.resident}
        codec = RowCodec(tensors, stored, case.total_num_scheduled_tokens)
        worker = WorkerCache()
        for identifier, num_rows in stored.items():
            worker.store(identifier, codec.output(identifier, num_rows))
        try:
            gathered, is_mm_embed = self._gather(case, runner, worker)
        except Exception as error:
            return GatherObservation(error=error_seen(error))
        worker.drop(stored)
        for identifier, num_rows in stored.items():
            worker.store(f"after {identifier}", codec.other_values(num_rows))
        rows = tuple(row for tensor in gathered for row in codec.identify(tensor))
        try:
            embeddings = merge_embeddings(codec.token_embeddings(), gathered, is_mm_embed)
        except ValueError:
            # Rows and mask of different counts: the two are reported as they are.
            merged: tuple[RowIdentity | None, ...] = ()
        else:
            merged = codec.identify_merged(embeddings)
        return GatherObservation(
            rows=rows,
            slices=tuple(len(tensor) for tensor in gathered),
            mask=tuple(is_mm_embed.tolist()),
            merged=merged,
        )

    def _gather(
        self, case: GatherCase, runner: Runner, worker: WorkerCache
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        names = [request_name(index) for index in range(len(case.requests))]
        scheduled = [request.num_scheduled_tokens for request in case.requests]
        total = sum(scheduled)
        features = {
            name: self._features(request.features)
            for name, request in zip(names, case.requests, strict=True)
        }
        if runner == "V1":
            states = {
                name: CachedRequestState(request.num_computed_tokens, features[name])
                for name, request in zip(names, case.requests, strict=True)
            }
            tokens = ScheduledTokens(dict(zip(names, scheduled, strict=True)), total)
            runner_v1 = self.parts.runner_v1(states, names, worker)
            return runner_v1.gather_mm_embeddings(tokens, case.draft_lookahead)
        prefill_lens = np.array([r.prefill_len for r in case.requests], dtype=np.int32)
        computed = np.array([r.num_computed_tokens for r in case.requests], dtype=np.int32)
        return self.parts.runner_v2(features, worker).gather_mm_embeddings(
            names,
            total,
            np.array(scheduled, dtype=np.int32),
            np.array([0, *accumulate(scheduled)], dtype=np.int32),
            prefill_lens,
            np.minimum(computed, prefill_lens),
            case.draft_lookahead,
        )

    def free(self, case: FreeCase) -> FreeObservation:
        """Take every feature, then run *free* at each moment.

        Raises:
            InputError: the case is not valid.
        """
        case.validate()
        request = Request(request_name(0), self._features(case.features))
        book = self._new_book(case.cache_size, case.is_encoder_decoder)
        moments: list[FreeMoment] = []
        try:
            for input_id in range(len(case.features)):
                _take(book, request, input_id)
            for progress in case.progress:
                request.num_computed_tokens = progress.num_computed_tokens
                request.num_output_placeholders = progress.num_output_placeholders
                gone = self.parts.free_encoder_inputs(
                    request, book, is_encoder_decoder=case.is_encoder_decoder
                )
                moments.append(FreeMoment(tuple(gone), _state(book)))
        except Exception as error:
            return FreeObservation(tuple(moments), error_seen(error))
        return FreeObservation(tuple(moments))

    def book(self, case: BookCase) -> BookObservation:
        """Carry out the operations on a fresh book.

        Raises:
            InputError: the case is not valid.
        """
        case.validate()
        requests = [
            Request(request_name(index), self._features(features))
            for index, features in enumerate(case.requests)
        ]
        book = self._new_book(case.cache_size, case.is_encoder_decoder)
        steps: list[BookStep] = []
        try:
            for operation in case.operations:
                answer, notices = _carry_out(book, requests, operation)
                steps.append(BookStep(answer, tuple(notices), _state(book)))
        except Exception as error:
            return BookObservation(tuple(steps), error_seen(error))
        return BookObservation(tuple(steps))

    def window(self, case: WindowCase) -> RangeObservation:
        """Search the window; features out of order are searched as they stand."""
        features = self._features(case.features)
        try:
            low, high = self.parts.features_in_window(features, case.start, case.end)
        except Exception as error:
            return RangeObservation(0, 0, error_seen(error))
        return RangeObservation(low, high)

    def row_range(self, case: RowRangeCase) -> RangeObservation:
        """Count the rows of a range of positions.

        Raises:
            InputError: the case is not valid.
        """
        case.validate()
        place = self.parts.placeholder_range(0, len(case.is_embed), torch.tensor(case.is_embed))
        try:
            low, high = place.rows_in_range(case.start, case.end)
        except Exception as error:
            return RangeObservation(0, 0, error_seen(error))
        return RangeObservation(low, high)

    def _features(self, features: Iterable[Feature]) -> list[MultiModalFeature]:
        return features_of(self.parts.placeholder_range, features)

    def _new_book(self, cache_size: int, is_encoder_decoder: bool) -> Book:
        if is_encoder_decoder:
            return self.parts.encoder_decoder_book(cache_size)
        return self.parts.book(cache_size)


def _take(
    book: Book,
    request: Request,
    input_id: int,
    encoder_budget: int | None = None,
    num_rows_chosen: int = 0,
) -> Answer:
    try:
        if book.check_and_update_cache(request, input_id):
            return "hit"
    except RowCountMismatchError:
        return "rejected"
    rows = request.get_num_encoder_embeds(input_id)
    budget = rows if encoder_budget is None else encoder_budget
    if not book.can_allocate(request, input_id, budget, num_rows_chosen):
        return "refused"
    book.allocate(request, input_id)
    return "allocated"


def _carry_out(
    book: Book, requests: list[Request], operation: BookOperation
) -> tuple[Answer, list[str]]:
    request = requests[operation.request]
    match operation.action:
        case "take":
            answer = _take(
                book,
                request,
                operation.feature,
                operation.encoder_budget,
                operation.num_rows_chosen,
            )
            return answer, []
        case "drop":
            book.free_encoder_input(request, operation.feature)
        case "finish":
            book.free(request)
        case "end_pass":
            return "done", book.get_freed_mm_hashes()
        case "reset":
            book.reset()
    return "done", []


def _state(book: Book) -> BookState:
    if isinstance(book, EncoderCacheManager):
        return BookState(
            tuple(book.references.items()), book.num_free_slots, book.num_freeable_slots
        )
    return BookState((), book.num_free_slots, None)
