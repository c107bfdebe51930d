"""Faults in the running loop, each as an override: in the scheduler, the worker, and between.

An override takes the parts of a correct implementation and returns faulty ones. What each of them
means, and which claims it breaks, is in :mod:`impl.faults.switches`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from impl.reference.parts import Parts, with_methods
from impl.reference.scheduling import guards
from impl.reference.scheduling.encoder_inputs import Chunk
from impl.reference.scheduling.output import SchedulerOutput
from impl.reference.scheduling.passes import Pass
from impl.reference.scheduling.request import MultiModalFeature
from impl.reference.scheduling.scheduled_request import SchedulerRequest
from spec.record.steps import Encoding


def no_scheduler_shift(parts: Parts) -> Parts:
    """Inputs are asked for up to the end of the chunk."""

    def window_end(self: Any, start: int, num_tokens: int) -> int:
        return start + num_tokens

    return replace(parts, encoder_inputs=with_methods(parts.encoder_inputs, _window_end=window_end))


def boundary_never_encoded(parts: Parts) -> Parts:
    """Whether a feature has a row is judged against the end of the chunk, not of the window."""

    def has_row(self: Any, feature: MultiModalFeature, start: int, end: int) -> bool:
        place = feature.mm_position
        unshifted = end - self._config.scheduler_lookahead
        if place.offset >= unshifted:
            return False
        first, last = guards.slice_bounds(place.offset, place.length, start, unshifted)
        first_row, last_row = place.rows_in_range(first, last)
        return first_row < last_row

    return replace(
        parts, encoder_inputs=with_methods(parts.encoder_inputs, _has_row_in_window=has_row)
    )


def shifted_cut(parts: Parts) -> Parts:
    """A chunk ends the shift before the feature that was refused."""

    def refused_cut(self: Any, offset: int, start: int, num_tokens: int) -> int:
        lookahead: int = self._config.scheduler_lookahead
        return min(num_tokens, max(offset - lookahead - start, 0))

    return replace(
        parts, encoder_inputs=with_methods(parts.encoder_inputs, _refused_cut=refused_cut)
    )


def late_cut(parts: Parts) -> Parts:
    """A chunk runs the first token of the feature that was refused."""

    def refused_cut(self: Any, offset: int, start: int, num_tokens: int) -> int:
        return min(num_tokens, max(offset - start, 0) + 1)

    return replace(
        parts, encoder_inputs=with_methods(parts.encoder_inputs, _refused_cut=refused_cut)
    )


def whole_item_cut_short(parts: Parts) -> Parts:
    """A chunk ends the shift before a whole item in its window that it does not finish."""
    splits_one = parts.encoder_inputs._splits

    def splits(
        self: Any, request: SchedulerRequest, input_id: int, chunk: Chunk, start: int
    ) -> bool:
        end = start + chunk.num_tokens
        offset = request.mm_features[input_id].mm_position.offset
        is_ahead = end <= offset < self._window_end(start, chunk.num_tokens)
        return is_ahead or splits_one(self, request, input_id, chunk, start)

    def whole_item_cut(self: Any, offset: int, start: int) -> int:
        lookahead: int = self._config.scheduler_lookahead
        return max(offset - lookahead - start, 0)

    return replace(
        parts,
        encoder_inputs=with_methods(
            parts.encoder_inputs, _splits=splits, _whole_item_cut=whole_item_cut
        ),
    )


def threshold_below_whole_item(parts: Parts) -> Parts:
    """A threshold on long prefills ends a chunk that starts on a whole item, too."""

    def extend_over_item(
        self: Any,
        chunk: Chunk,
        feature: MultiModalFeature,
        start: int,
        available_tokens: int,
    ) -> bool:
        return False

    return replace(
        parts,
        encoder_inputs=with_methods(parts.encoder_inputs, _extend_over_item=extend_over_item),
    )


def reservation_after_cut(parts: Parts) -> Parts:
    """What is left of a prefill is never shorter than the shift, if nothing runs for it."""

    def reserved(self: Any, request: SchedulerRequest, start: int, num_tokens: int) -> int:
        lookahead: int = self._config.scheduler_lookahead
        left = request.num_tokens - start - num_tokens
        return max(num_tokens - (lookahead - left), 0) if 0 < left < lookahead else num_tokens

    return replace(parts, chunk_ends=with_methods(parts.chunk_ends, reserved=reserved))


def align_after_cut(parts: Parts) -> Parts:
    """A chunk that was cut before a refused feature is then cut at a block boundary."""
    correct = parts.scheduler._chunk

    def chunk_of(
        self: Any, request: SchedulerRequest, num_computed_tokens: int, wanted: int, now: Pass
    ) -> Chunk:
        chunk = correct(self, request, num_computed_tokens, wanted, now)
        chunk.num_tokens = self.chunk_ends.aligned(request, num_computed_tokens, chunk.num_tokens)
        return chunk

    return replace(parts, scheduler=with_methods(parts.scheduler, _chunk=chunk_of))


def waiting_keeps_references(parts: Parts) -> Parts:
    """A waiting request that does not run keeps the references it took."""

    def give_back(self: Any, request: SchedulerRequest) -> None:
        return None

    return replace(parts, scheduler=with_methods(parts.scheduler, _give_back=give_back))


def stalled_head_ends_pass(parts: Parts) -> Parts:
    """A waiting request that can run nothing ends the pass."""

    def ends_pass(self: Any) -> bool:
        return True

    return replace(
        parts, scheduler=with_methods(parts.scheduler, _stalled_head_ends_pass=ends_pass)
    )


def free_before_execution(parts: Parts) -> Parts:
    """References go as soon as a pass is scheduled."""
    advance = parts.scheduler._advance
    free = parts.free_encoder_inputs

    def advance_and_free(self: Any, now: Pass) -> None:
        advance(self, now)
        for request in now.chunks:
            free(request, self.book, is_encoder_decoder=self.config.is_encoder_decoder)

    def nothing_to_free(self: Any, request: SchedulerRequest) -> None:
        return None

    return replace(
        parts,
        scheduler=with_methods(parts.scheduler, _advance=advance_and_free),
        updates=with_methods(parts.updates, free_by_progress=nothing_to_free),
    )


def same_step_duplicate_unreferenced(parts: Parts) -> Parts:
    """Further occurrences in one pass take no reference."""

    def take_nothing(self: Any, request: SchedulerRequest, input_id: int) -> None:
        return None

    return replace(parts, scheduler=with_methods(parts.scheduler, _take_duplicate=take_nothing))


def item_split_at_start(parts: Parts) -> Parts:
    """A chunk that starts on an item may end inside it."""
    correct = parts.encoder_inputs._splits

    def splits(
        self: Any, request: SchedulerRequest, input_id: int, chunk: Chunk, start: int
    ) -> bool:
        offset = request.mm_features[input_id].mm_position.offset
        return offset != start and correct(self, request, input_id, chunk, start)

    return replace(parts, encoder_inputs=with_methods(parts.encoder_inputs, _splits=splits))


def warm_item_split(parts: Parts) -> Parts:
    """An item whose output is in the book is taken before it is asked whether it would be split."""
    correct = parts.encoder_inputs._splits

    def splits(
        self: Any, request: SchedulerRequest, input_id: int, chunk: Chunk, start: int
    ) -> bool:
        return correct(
            self, request, input_id, chunk, start
        ) and not self._book.check_and_update_cache(request, input_id)

    return replace(parts, encoder_inputs=with_methods(parts.encoder_inputs, _splits=splits))


def freed_one_token_early(parts: Parts) -> Parts:
    """*Free* does not wait for a feature's last token."""
    return replace(parts, free_encoder_inputs=partial(parts.free_encoder_inputs, margin=-1))


def notices_lost(parts: Parts) -> Parts:
    """The worker is never told what was evicted."""
    correct = parts.book.get_freed_mm_hashes

    def get_freed_mm_hashes(self: Any) -> list[str]:
        correct(self)
        return []

    return replace(parts, book=with_methods(parts.book, get_freed_mm_hashes=get_freed_mm_hashes))


def encoder_decoder_notices_late(parts: Parts) -> Parts:
    """The encoder-decoder book's notices come one pass late."""
    correct = parts.encoder_decoder_book.get_freed_mm_hashes

    def get_freed_mm_hashes(self: Any) -> list[str]:
        late: list[str] = getattr(self, "_late", [])
        self._late = correct(self)
        return late

    return replace(
        parts,
        encoder_decoder_book=with_methods(
            parts.encoder_decoder_book, get_freed_mm_hashes=get_freed_mm_hashes
        ),
    )


def finished_drops_tensors(parts: Parts) -> Parts:
    """The worker drops what a finished request used, whoever else may use it."""
    correct = parts.worker._apply

    def apply(self: Any, output: SchedulerOutput) -> tuple[Sequence[int], Sequence[Encoding]]:
        for request in output.finished:
            if request in self._requests:
                self._drop([feature.identifier for feature in self._requests[request].features])
        return correct(self, output)

    return replace(parts, worker=with_methods(parts.worker, _apply=apply))


def v2_reset_keeps_tensors(parts: Parts) -> Parts:
    """A reset of the cache does not reach a V2 worker."""
    correct = parts.worker.reset

    def reset(self: Any) -> None:
        if not self._is_v2:
            correct(self)

    return replace(parts, worker=with_methods(parts.worker, reset=reset))


def resumed_without_payload(parts: Parts) -> Parts:
    """A request that resumes after a preemption is sent without its raw data."""
    correct = parts.scheduler._output

    def output_of(self: Any, now: Pass) -> SchedulerOutput:
        output = correct(self, now)
        resumed = {r.index for r in now.started if r.drop_before < r.epoch}
        output.new_requests = [
            replace(new, raw_inputs=()) if new.request in resumed else new
            for new in output.new_requests
        ]
        return output

    return replace(parts, scheduler=with_methods(parts.scheduler, _output=output_of))


def admission_preempts(parts: Parts) -> Parts:
    """A waiting request that gets no KV blocks preempts one that runs, and tries again later."""
    correct = parts.scheduler._make_room_for_waiting

    def make_room(self: Any, request: SchedulerRequest, end: int, now: Pass) -> bool:
        if correct(self, request, end, now):
            return True
        victims = [runs for runs in self.running if runs not in now.started]
        if victims:
            self._give_back(request)
            self._preempt(victims[-1], now)
        return False

    return replace(parts, scheduler=with_methods(parts.scheduler, _make_room_for_waiting=make_room))


def victim_budget_kept(parts: Parts) -> Parts:
    """What a victim of the same pass was to run stays charged to the pass."""

    def return_nothing(self: Any, victim: SchedulerRequest, now: Pass) -> None:
        del now.chunks[victim]

    return replace(parts, scheduler=with_methods(parts.scheduler, _return_tokens=return_nothing))


def victim_budget_charged_twice(parts: Parts) -> Parts:
    """What a victim of the same pass was to run is charged again instead of given back."""

    def charge_again(self: Any, victim: SchedulerRequest, now: Pass) -> None:
        now.tokens = max(now.tokens - now.chunks.pop(victim), 0)

    return replace(parts, scheduler=with_methods(parts.scheduler, _return_tokens=charge_again))


def skips_behind_victim(parts: Parts) -> Parts:
    """The place of a running request stays as it was when a victim before it is gone."""

    def place_behind(self: Any, before: list[SchedulerRequest]) -> int:
        return len(before)

    return replace(parts, scheduler=with_methods(parts.scheduler, _place_behind=place_behind))


def admits_one_a_pass(parts: Parts) -> Parts:
    """A pass ends with the first request that it admits."""
    correct = parts.scheduler._may_admit

    def may_admit(self: Any, now: Pass) -> bool:
        return not now.started and correct(self, now)

    return replace(parts, scheduler=with_methods(parts.scheduler, _may_admit=may_admit))


def threshold_exceeded_by_one(parts: Parts) -> Parts:
    """A chunk of a long prefill has one token more than the threshold."""

    def limited(self: Any, num_tokens: int) -> int:
        threshold: int = self._config.long_prefill_token_threshold
        return min(threshold + 1, num_tokens) if threshold else num_tokens

    return replace(parts, chunk_ends=with_methods(parts.chunk_ends, limited=limited))


def resumed_not_reserved(parts: Parts) -> Parts:
    """A request that starts again after a preemption leaves the modules what comes."""
    correct = parts.scheduler._reserves

    def reserves(self: Any, request: SchedulerRequest) -> bool:
        return request.status != "preempted" and correct(self, request)

    return replace(parts, scheduler=with_methods(parts.scheduler, _reserves=reserves))


def not_reserved_before_others(parts: Parts) -> Parts:
    """While others wait, a request leaves the modules what comes."""
    correct = parts.scheduler._reserves

    def reserves(self: Any, request: SchedulerRequest) -> bool:
        return not self.waiting and correct(self, request)

    return replace(parts, scheduler=with_methods(parts.scheduler, _reserves=reserves))


def ended_keeps_references(parts: Parts) -> Parts:
    """The end of a request gives its KV blocks back, and no reference."""

    def release(self: Any, request: SchedulerRequest) -> None:
        self.kv_blocks.free(request)

    return replace(parts, scheduler=with_methods(parts.scheduler, _release=release))


def rejected_drafts_kept(parts: Parts) -> Parts:
    """A rejection leaves progress and placeholders as they are."""

    def take_nothing_back(self: Any, request: SchedulerRequest, rejected: int) -> None:
        return None

    return replace(
        parts, updates=with_methods(parts.updates, _take_rejections_back=take_nothing_back)
    )
