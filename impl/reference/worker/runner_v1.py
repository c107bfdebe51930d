"""The older worker: gathers request by request from the persistent batch's own states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from impl.late import torch
from impl.reference.scheduling import guards
from impl.reference.scheduling.request import MultiModalFeature, PlaceholderRange
from impl.reference.worker.cache import WorkerCache, new_batch_mask


@dataclass
class CachedRequestState:
    """What the worker keeps of a request."""

    num_computed_tokens: int
    mm_features: Sequence[MultiModalFeature]


@dataclass(frozen=True)
class ScheduledTokens:
    """The part of a scheduler's output that a gather reads (tokens)."""

    num_scheduled_tokens: Mapping[str, int]
    total_num_scheduled_tokens: int


class RunnerV1:
    """Gathers by testing each feature of a request for overlap.

    Args:
        requests: states of the requests, by id.
        req_ids: order of the requests in the batch.
        encoder_cache: the worker's tensors.
    """

    def __init__(
        self,
        requests: Mapping[str, CachedRequestState],
        req_ids: Sequence[str],
        encoder_cache: WorkerCache,
    ) -> None:
        self.requests = requests
        self.req_ids = req_ids
        self.encoder_cache = encoder_cache

    def gather_mm_embeddings(
        self, scheduler_output: ScheduledTokens, shift_computed_tokens: int = 0
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Collect the encoder rows that the batch's reader needs.

        Args:
            scheduler_output: tokens that each request runs in this step.
            shift_computed_tokens: how far the reader looks ahead of the target (tokens); 0 for the
                target itself.

        Returns:
            Views of shape ``(rows, hidden)`` on the outputs' device, in the order of their
            positions; and a bool mask of shape ``(total_num_scheduled_tokens,)`` on the CPU, true
            where a row belongs.

        Raises:
            RuntimeError: an output inside the processed range is not resident; names the hash.
        """
        gathered: list[torch.Tensor] = []
        is_mm_embed = new_batch_mask(scheduler_output.total_num_scheduled_tokens)
        first_of_request = 0
        for req_id in self.req_ids:
            state = self.requests[req_id]
            num_scheduled_tokens = scheduler_output.num_scheduled_tokens[req_id]
            start = state.num_computed_tokens + shift_computed_tokens
            end = start + num_scheduled_tokens
            for feature in state.mm_features:
                place = feature.mm_position
                if not guards.overlaps(place.offset, place.length, start, end):
                    continue
                first, last = guards.slice_bounds(place.offset, place.length, start, end)
                assert first < last, "a selected feature shares a position with the window"
                first_row, last_row = place.rows_in_range(first, last)
                if first_row == last_row:
                    continue
                output = self.encoder_cache.get(feature.identifier)
                if output is None:
                    if self._tolerates_miss(feature, state, num_scheduled_tokens):
                        continue
                    raise RuntimeError(
                        f"encoder output {feature.identifier} of {req_id} is not resident although "
                        "this step processes its positions"
                    )
                at = first_of_request + place.offset - start
                positions, rows = slice(first, last), slice(first_row, last_row)
                self._mark(is_mm_embed[at + first : at + last], place, positions)
                gathered.append(self._take(output, positions, rows))
            first_of_request += num_scheduled_tokens
        return gathered, is_mm_embed

    def _tolerates_miss(
        self, feature: MultiModalFeature, state: CachedRequestState, num_scheduled_tokens: int
    ) -> bool:
        return guards.tolerates_miss_v1(
            feature.mm_position.offset, state.num_computed_tokens, num_scheduled_tokens
        )

    def _mark(self, is_mm_embed: torch.Tensor, place: PlaceholderRange, positions: slice) -> None:
        if place.is_embed is None:
            is_mm_embed.fill_(True)
        else:
            is_mm_embed |= place.is_embed[positions]

    def _take(self, output: torch.Tensor, positions: slice, rows: slice) -> torch.Tensor:
        return output[rows]
