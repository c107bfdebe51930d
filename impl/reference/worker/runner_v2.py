"""The newer worker: gathers from arrays over the batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from impl.late import torch
from impl.reference.scheduling import guards
from impl.reference.scheduling.request import (
    MultiModalFeature,
    PlaceholderRange,
    features_in_window,
)
from impl.reference.worker.cache import WorkerCache, new_batch_mask

Counts: TypeAlias = npt.NDArray[np.int32]
"""One number of tokens per request of the batch."""


class RunnerV2:
    """Gathers by searching each request's features for those that meet its window.

    Args:
        mm_features: features of each request, by id.
        encoder_cache: the worker's tensors.
    """

    def __init__(
        self,
        mm_features: Mapping[str, Sequence[MultiModalFeature]],
        encoder_cache: WorkerCache,
    ) -> None:
        self.mm_features = mm_features
        self.encoder_cache = encoder_cache

    def gather_mm_embeddings(
        self,
        req_ids: Sequence[str],
        total_num_scheduled_tokens: int,
        num_scheduled_tokens: Counts,
        query_start_loc: Counts,
        prefill_lens: Counts,
        computed_prefill_lens: Counts | None = None,
        draft_lookahead: int = 0,
        *,
        num_computed_tokens: Counts | None = None,
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Collect the encoder rows that the batch's reader needs.

        Progress comes in one of two forms: releases up to 0.24 pass ``computed_prefill_lens``,
        later ones ``num_computed_tokens``.

        Args:
            req_ids: order of the requests in the batch.
            total_num_scheduled_tokens: positions of the batch.
            num_scheduled_tokens: shape ``(requests,)``.
            query_start_loc: shape ``(requests,)`` or one longer: each request's first position.
            prefill_lens: shape ``(requests,)``.
            computed_prefill_lens: shape ``(requests,)``: progress, at most the prefill length.
            draft_lookahead: how far the reader looks ahead of the target (tokens); 0 for the
                target itself.
            num_computed_tokens: shape ``(requests,)``: progress, past the prefill when decoding.

        Returns:
            As :meth:`impl.reference.worker.runner_v1.RunnerV1.gather_mm_embeddings`.

        Raises:
            RuntimeError: an output inside the processed range is not resident; names the hash.
            TypeError: progress is given in neither form.
        """
        progress = computed_prefill_lens if num_computed_tokens is None else num_computed_tokens
        if progress is None:
            raise TypeError("give computed_prefill_lens or num_computed_tokens")
        query_starts = progress + draft_lookahead
        query_ends = query_starts + num_scheduled_tokens
        is_mm_embed = new_batch_mask(total_num_scheduled_tokens)
        gathered: list[torch.Tensor] = []
        # Features lie inside the prefill, so a window past it holds none.
        for index in np.flatnonzero(query_starts < prefill_lens).tolist():
            query_start, query_end = int(query_starts[index]), int(query_ends[index])
            features = self.mm_features[req_ids[index]]
            low, high = self._search(features, query_start, query_end)
            for feature in features[low:high]:
                place = feature.mm_position
                first, last = guards.slice_bounds(
                    place.offset, place.length, query_start, query_end
                )
                assert first < last, "the search returns features that meet the window"
                first_row, last_row = place.rows_in_range(first, last)
                if first_row == last_row:
                    continue
                output = self.encoder_cache.get(feature.identifier)
                if output is None:
                    if self._tolerates_miss(place.offset, draft_lookahead, query_end):
                        continue
                    raise RuntimeError(
                        f"encoder output {feature.identifier} is missing: request "
                        f"{req_ids[index]} processes its positions in this step"
                    )
                origin = int(query_start_loc[index]) + place.offset - query_start
                is_mm_embed[origin + first : origin + last] |= self._taking(place, first, last)
                gathered += self._pieces(output, slice(first, last), slice(first_row, last_row))
        return gathered, is_mm_embed

    def _search(
        self, features: Sequence[MultiModalFeature], query_start: int, query_end: int
    ) -> tuple[int, int]:
        return features_in_window(features, query_start, query_end)

    def _tolerates_miss(self, offset: int, draft_lookahead: int, query_end: int) -> bool:
        return guards.tolerates_miss_v2(offset, draft_lookahead, query_end)

    def _taking(self, place: PlaceholderRange, first: int, last: int) -> torch.Tensor | bool:
        """Which of the positions ``[first, last)`` take a row."""
        return True if place.is_embed is None else place.is_embed[first:last]

    def _pieces(
        self, output: torch.Tensor, positions: slice, rows: slice
    ) -> Iterable[torch.Tensor]:
        """The rows of one feature as they are returned."""
        return (output[rows],)
