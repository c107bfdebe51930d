"""The override of each fault: the parts of a correct implementation in, faulty parts out.

What each of them means, and which claims it breaks, is in :mod:`impl.faults`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch

from impl.reference.encoder_cache import Book
from impl.reference.parts import Parts
from impl.reference.request import MultiModalFeature, PlaceholderRange, Request
from impl.reference.request import features_in_window as correct_search
from impl.reference.runner_v1 import RunnerV1, ScheduledTokens
from impl.reference.runner_v2 import Counts, RunnerV2

Class = TypeVar("Class")


def _with(base: type[Class], **overrides: Callable[..., Any]) -> type[Class]:
    """The class with some methods replaced."""
    return type(base.__name__, (base,), overrides)


def no_boundary_tolerance(parts: Parts) -> Parts:
    """Neither runner tolerates any miss."""

    def raises(*_: object) -> bool:
        return False

    return replace(
        parts,
        runner_v1=_with(parts.runner_v1, _tolerates_miss=raises),
        runner_v2=_with(parts.runner_v2, _tolerates_miss=raises),
    )


def interior_miss_swallowed(parts: Parts) -> Parts:
    """Both runners tolerate every miss."""

    def skips(*_: object) -> bool:
        return True

    return replace(
        parts,
        runner_v1=_with(parts.runner_v1, _tolerates_miss=skips),
        runner_v2=_with(parts.runner_v2, _tolerates_miss=skips),
    )


def _starting_before(
    features: Sequence[MultiModalFeature], processed_end: int
) -> list[MultiModalFeature]:
    return [feature for feature in features if feature.mm_position.offset < processed_end]


def clamped_drafter_window(parts: Parts) -> Parts:
    """Both runners gather without the features past the processed end."""

    def gather_v1(
        self: RunnerV1, scheduler_output: ScheduledTokens, shift_computed_tokens: int = 0
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        states = {
            req_id: replace(
                state,
                mm_features=_starting_before(
                    state.mm_features,
                    state.num_computed_tokens + scheduler_output.num_scheduled_tokens[req_id],
                ),
            )
            for req_id, state in self.requests.items()
        }
        clamped = parts.runner_v1(states, self.req_ids, self.encoder_cache)
        return clamped.gather_mm_embeddings(scheduler_output, shift_computed_tokens)

    def gather_v2(
        self: RunnerV2,
        req_ids: Sequence[str],
        total_num_scheduled_tokens: int,
        num_scheduled_tokens: Counts,
        query_start_loc: Counts,
        prefill_lens: Counts,
        computed_prefill_lens: Counts,
        draft_lookahead: int = 0,
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        processed_ends = (computed_prefill_lens + num_scheduled_tokens).tolist()
        features = {
            req_id: _starting_before(self.mm_features[req_id], processed_end)
            for req_id, processed_end in zip(req_ids, processed_ends, strict=True)
        }
        return parts.runner_v2(features, self.encoder_cache).gather_mm_embeddings(
            req_ids,
            total_num_scheduled_tokens,
            num_scheduled_tokens,
            query_start_loc,
            prefill_lens,
            computed_prefill_lens,
            draft_lookahead,
        )

    return replace(
        parts,
        runner_v1=_with(parts.runner_v1, gather_mm_embeddings=gather_v1),
        runner_v2=_with(parts.runner_v2, gather_mm_embeddings=gather_v2),
    )


def rows_by_position(parts: Parts) -> Parts:
    """Both runners cut the output at positions instead of rows."""

    def take(self: Any, output: torch.Tensor, positions: slice, rows: slice) -> torch.Tensor:
        return output[positions]

    def pieces(
        self: Any, output: torch.Tensor, positions: slice, rows: slice
    ) -> Iterable[torch.Tensor]:
        return (output[positions],)

    return replace(
        parts,
        runner_v1=_with(parts.runner_v1, _take=take),
        runner_v2=_with(parts.runner_v2, _pieces=pieces),
    )


def mask_fills_span(parts: Parts) -> Parts:
    """Both runners mark a feature's positions without asking its mask."""

    def mark(
        self: Any, is_mm_embed: torch.Tensor, place: PlaceholderRange, positions: slice
    ) -> None:
        is_mm_embed.fill_(True)

    def taking(self: Any, place: PlaceholderRange, first: int, last: int) -> bool:
        return True

    return replace(
        parts,
        runner_v1=_with(parts.runner_v1, _mark=mark),
        runner_v2=_with(parts.runner_v2, _taking=taking),
    )


def v2_splits_rows(parts: Parts) -> Parts:
    """V2 returns one tensor per row."""

    def pieces(
        self: Any, output: torch.Tensor, positions: slice, rows: slice
    ) -> Iterable[torch.Tensor]:
        return torch.split(output[rows], 1)

    return replace(parts, runner_v2=_with(parts.runner_v2, _pieces=pieces))


def window_search_late(parts: Parts) -> Parts:
    """The search, and V2 with it, starts one token late."""

    def late(features: Sequence[MultiModalFeature], start: int, end: int) -> tuple[int, int]:
        return correct_search(features, start + 1, end)

    def search(
        self: Any, features: Sequence[MultiModalFeature], query_start: int, query_end: int
    ) -> tuple[int, int]:
        return late(features, query_start, query_end)

    return replace(parts, features_in_window=late, runner_v2=_with(parts.runner_v2, _search=search))


def negative_mask_index(parts: Parts) -> Parts:
    """Inclusive counts are indexed at -1 for an empty range at the start."""

    def rows_in_range(self: PlaceholderRange, start: int, end: int) -> tuple[int, int]:
        rows_up_to = list(self.rows_before)[1:]
        return rows_up_to[start - 1] if start > 0 else 0, rows_up_to[end - 1]

    return replace(
        parts, placeholder_range=_with(parts.placeholder_range, rows_in_range=rows_in_range)
    )


def free_ignores_placeholders(parts: Parts) -> Parts:
    """*Free* sees a request without placeholders."""
    correct = parts.free_encoder_inputs

    def free(
        request: Request, manager: Book, *, is_encoder_decoder: bool = False, margin: int = 0
    ) -> list[int]:
        return correct(
            replace(request, num_output_placeholders=0),
            manager,
            is_encoder_decoder=is_encoder_decoder,
            margin=margin,
        )

    return replace(parts, free_encoder_inputs=free)


def deferred_free_margin(parts: Parts) -> Parts:
    """*Free* runs with a margin of one token."""
    return replace(parts, free_encoder_inputs=partial(parts.free_encoder_inputs, margin=1))


def dropped_at_first_occurrence(parts: Parts) -> Parts:
    """The first occurrence let go takes all of the request's along."""

    def free_encoder_input(self: Any, request: Request, input_id: int) -> None:
        occurrences = self._occurrences(request, request.mm_features[input_id].identifier)
        if input_id in occurrences:
            occurrences.clear()
            self._drop_reference(request, input_id)

    return replace(parts, book=_with(parts.book, free_encoder_input=free_encoder_input))


def own_size_free(parts: Parts) -> Parts:
    """The book accepts other row counts and credits those of the request."""

    def accepts(self: Any, request: Request, input_id: int) -> None:
        return None

    def own_rows(self: Any, request: Request, input_id: int) -> int:
        return request.get_num_encoder_embeds(input_id)

    return replace(
        parts, book=_with(parts.book, _require_same_rows=accepts, _rows_to_credit=own_rows)
    )


def stale_eviction_notice(parts: Parts) -> Parts:
    """Notices are not held back for entries that came back."""

    def get_freed_mm_hashes(self: Any) -> list[str]:
        evicted: list[str] = self._evicted
        self._evicted = []
        return evicted

    return replace(parts, book=_with(parts.book, get_freed_mm_hashes=get_freed_mm_hashes))


def evicts_newest_first(parts: Parts) -> Parts:
    """The newest unreferenced entry is evicted."""

    def next_to_evict(self: Any) -> str:
        newest: str = next(reversed(self._freeable))
        return newest

    return replace(parts, book=_with(parts.book, _next_to_evict=next_to_evict))


def finish_keeps_references(parts: Parts) -> Parts:
    """The end of a request lets nothing go."""

    def free(self: Any, request: Request) -> None:
        return None

    return replace(parts, book=_with(parts.book, free=free))


def finish_needs_references(parts: Parts) -> Parts:
    """The end of a request without references raises."""
    correct = parts.book.free

    def free(self: Any, request: Request) -> None:
        if not self.get_cached_input_ids(request):
            raise KeyError(request.request_id)
        correct(self, request)

    return replace(parts, book=_with(parts.book, free=free))


def encoder_decoder_credit(parts: Parts) -> Parts:
    """Every call of *free* credits every item of the request."""

    def get_cached_input_ids(self: Any, request: Request) -> set[int]:
        return set(range(len(request.mm_features)))

    def free_encoder_input(self: Any, request: Request, input_id: int) -> None:
        self.num_free_slots += request.get_num_encoder_embeds(input_id)

    return replace(
        parts,
        encoder_decoder_book=_with(
            parts.encoder_decoder_book,
            get_cached_input_ids=get_cached_input_ids,
            free_encoder_input=free_encoder_input,
        ),
    )
