"""Faults in the gathers, each as an override: of the runners, and of their readers without tensors.

An override takes the parts of a correct implementation and returns faulty ones. What each of them
means, and which claims it breaks, is in :mod:`impl.faults.switches`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from impl.late import torch
from impl.reference.parts import Parts, with_methods
from impl.reference.scheduling.request import MultiModalFeature, PlaceholderRange
from impl.reference.scheduling.request import features_in_window as correct_search
from impl.reference.worker.row_reader import (
    CachedRequest,
    HeldOutput,
    Piece,
    Ranges,
    RowReaderV1,
    RowReaderV2,
    add_range,
    cut,
)
from impl.reference.worker.runner_v1 import RunnerV1, ScheduledTokens
from impl.reference.worker.runner_v2 import Counts, RunnerV2
from spec.record.steps import ScheduledRequest

Span: TypeAlias = tuple[int, int]
"""A half-open range."""


def no_boundary_tolerance(parts: Parts) -> Parts:
    """Neither runner tolerates any miss."""

    def raises(*_: object) -> bool:
        return False

    return replace(
        parts,
        runner_v1=with_methods(parts.runner_v1, _tolerates_miss=raises),
        runner_v2=with_methods(parts.runner_v2, _tolerates_miss=raises),
        row_reader_v1=with_methods(parts.row_reader_v1, _tolerates_miss=raises),
        row_reader_v2=with_methods(parts.row_reader_v2, _tolerates_miss=raises),
    )


def interior_miss_swallowed(parts: Parts) -> Parts:
    """Both runners tolerate every miss."""

    def skips(*_: object) -> bool:
        return True

    return replace(
        parts,
        runner_v1=with_methods(parts.runner_v1, _tolerates_miss=skips),
        runner_v2=with_methods(parts.runner_v2, _tolerates_miss=skips),
        row_reader_v1=with_methods(parts.row_reader_v1, _tolerates_miss=skips),
        row_reader_v2=with_methods(parts.row_reader_v2, _tolerates_miss=skips),
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

    def clamped(reader: type[RowReaderV1] | type[RowReaderV2]) -> Callable[..., Any]:
        def gather(
            self: RowReaderV1 | RowReaderV2, batch: Sequence[ScheduledRequest], look_ahead: int = 0
        ) -> tuple[list[Piece], Ranges]:
            cached = {
                entry.request: CachedRequest(
                    _starting_before(
                        self.requests[entry.request].features,
                        entry.num_computed_tokens + entry.num_scheduled_tokens,
                    ),
                    (),
                )
                for entry in batch
                if entry.request in self.requests
            }
            return reader(cached, self.outputs).gather(batch, look_ahead)

        return gather

    return replace(
        parts,
        runner_v1=with_methods(parts.runner_v1, gather_mm_embeddings=gather_v1),
        runner_v2=with_methods(parts.runner_v2, gather_mm_embeddings=gather_v2),
        row_reader_v1=with_methods(parts.row_reader_v1, gather=clamped(parts.row_reader_v1)),
        row_reader_v2=with_methods(parts.row_reader_v2, gather=clamped(parts.row_reader_v2)),
    )


def rows_by_position(parts: Parts) -> Parts:
    """Both runners cut the output at positions instead of rows."""

    def take(self: Any, output: torch.Tensor, positions: slice, rows: slice) -> torch.Tensor:
        return output[positions]

    def pieces(
        self: Any, output: torch.Tensor, positions: slice, rows: slice
    ) -> Iterable[torch.Tensor]:
        return (output[positions],)

    def take_rows(self: Any, output: HeldOutput, positions: Span, rows: Span) -> Piece:
        return cut(output, *positions)

    def row_pieces(self: Any, output: HeldOutput, positions: Span, rows: Span) -> Iterable[Piece]:
        return (cut(output, *positions),)

    return replace(
        parts,
        runner_v1=with_methods(parts.runner_v1, _take=take),
        runner_v2=with_methods(parts.runner_v2, _pieces=pieces),
        row_reader_v1=with_methods(parts.row_reader_v1, _take=take_rows),
        row_reader_v2=with_methods(parts.row_reader_v2, _pieces=row_pieces),
    )


def mask_fills_span(parts: Parts) -> Parts:
    """Both runners mark a feature's positions without asking its mask."""

    def mark(
        self: Any, is_mm_embed: torch.Tensor, place: PlaceholderRange, positions: slice
    ) -> None:
        is_mm_embed.fill_(True)

    def taking(self: Any, place: PlaceholderRange, first: int, last: int) -> bool:
        return True

    def mark_range(
        self: Any, mask: Ranges, at: int, cached: CachedRequest, feature: int, first: int, last: int
    ) -> None:
        add_range(mask, at + first, at + last)

    def taking_range(
        self: Any, cached: CachedRequest, feature: int, first: int, last: int
    ) -> Iterable[Span]:
        return ((first, last),)

    return replace(
        parts,
        runner_v1=with_methods(parts.runner_v1, _mark=mark),
        runner_v2=with_methods(parts.runner_v2, _taking=taking),
        row_reader_v1=with_methods(parts.row_reader_v1, _mark=mark_range),
        row_reader_v2=with_methods(parts.row_reader_v2, _taking=taking_range),
    )


def v2_splits_rows(parts: Parts) -> Parts:
    """V2 returns one tensor per row."""

    def pieces(
        self: Any, output: torch.Tensor, positions: slice, rows: slice
    ) -> Iterable[torch.Tensor]:
        return torch.split(output[rows], 1)

    def row_pieces(self: Any, output: HeldOutput, positions: Span, rows: Span) -> Iterable[Piece]:
        encoding, first, last = cut(output, *rows)
        return tuple((encoding, row, row + 1) for row in range(first, last))

    return replace(
        parts,
        runner_v2=with_methods(parts.runner_v2, _pieces=pieces),
        row_reader_v2=with_methods(parts.row_reader_v2, _pieces=row_pieces),
    )


def window_search_late(parts: Parts) -> Parts:
    """The search, and V2 with it, starts one token late."""

    def late(features: Sequence[MultiModalFeature], start: int, end: int) -> tuple[int, int]:
        return correct_search(features, start + 1, end)

    def search(
        self: Any, features: Sequence[MultiModalFeature], query_start: int, query_end: int
    ) -> tuple[int, int]:
        return late(features, query_start, query_end)

    def search_known(
        self: Any, cached: CachedRequest, query_start: int, query_end: int
    ) -> tuple[int, int]:
        return late(cached.features, query_start, query_end)

    return replace(
        parts,
        features_in_window=late,
        runner_v2=with_methods(parts.runner_v2, _search=search),
        row_reader_v2=with_methods(parts.row_reader_v2, _search=search_known),
    )
