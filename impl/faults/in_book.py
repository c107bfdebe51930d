"""Faults in the book, in *free* and in counting rows, each as an override.

An override takes the parts of a correct implementation and returns faulty ones. What each of them
means, and which claims it breaks, is in :mod:`impl.faults.switches`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from impl.reference.parts import Parts, with_methods
from impl.reference.scheduling.book import Book
from impl.reference.scheduling.request import PlaceholderRange, Request


def negative_mask_index(parts: Parts) -> Parts:
    """Inclusive counts are indexed at -1 for an empty range at the start."""

    def rows_in_range(self: PlaceholderRange, start: int, end: int) -> tuple[int, int]:
        rows_up_to = list(self.rows_before)[1:]
        return rows_up_to[start - 1] if start > 0 else 0, rows_up_to[end - 1]

    return replace(
        parts, placeholder_range=with_methods(parts.placeholder_range, rows_in_range=rows_in_range)
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

    return replace(parts, book=with_methods(parts.book, free_encoder_input=free_encoder_input))


def own_size_free(parts: Parts) -> Parts:
    """The book accepts other row counts and credits those of the request."""

    def accepts(self: Any, request: Request, input_id: int) -> None:
        return None

    def own_rows(self: Any, request: Request, input_id: int) -> int:
        return request.get_num_encoder_embeds(input_id)

    return replace(
        parts, book=with_methods(parts.book, _require_same_rows=accepts, _rows_to_credit=own_rows)
    )


def stale_eviction_notice(parts: Parts) -> Parts:
    """Notices are not held back for entries that came back."""

    def get_freed_mm_hashes(self: Any) -> list[str]:
        evicted: list[str] = self._evicted
        self._evicted = []
        return evicted

    return replace(parts, book=with_methods(parts.book, get_freed_mm_hashes=get_freed_mm_hashes))


def evicts_newest_first(parts: Parts) -> Parts:
    """The newest unreferenced entry is evicted."""

    def next_to_evict(self: Any) -> str:
        newest: str = next(reversed(self._freeable))
        return newest

    return replace(parts, book=with_methods(parts.book, _next_to_evict=next_to_evict))


def finish_keeps_references(parts: Parts) -> Parts:
    """The end of a request lets nothing go."""

    def free(self: Any, request: Request) -> None:
        return None

    return replace(parts, book=with_methods(parts.book, free=free))


def finish_needs_references(parts: Parts) -> Parts:
    """The end of a request without references raises."""
    correct = parts.book.free

    def free(self: Any, request: Request) -> None:
        if not self.get_cached_input_ids(request):
            raise KeyError(request.request_id)
        correct(self, request)

    return replace(parts, book=with_methods(parts.book, free=free))


def encoder_decoder_credit(parts: Parts) -> Parts:
    """Every call of *free* credits every item of the request."""

    def get_cached_input_ids(self: Any, request: Request) -> set[int]:
        return set(range(len(request.mm_features)))

    def free_encoder_input(self: Any, request: Request, input_id: int) -> None:
        self.num_free_slots += request.get_num_encoder_embeds(input_id)

    return replace(
        parts,
        encoder_decoder_book=with_methods(
            parts.encoder_decoder_book,
            get_cached_input_ids=get_cached_input_ids,
            free_encoder_input=free_encoder_input,
        ),
    )
