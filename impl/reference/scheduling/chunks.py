"""Where a chunk of tokens ends, apart from encoder inputs."""

from __future__ import annotations

from impl.reference.scheduling import guards
from impl.reference.scheduling.scheduled_request import SchedulerRequest
from spec.record.config import EngineConfig


class ChunkEnds:
    """The rules on the end of a chunk that do not depend on the encoder cache."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config

    def limited(self, num_tokens: int) -> int:
        """At most the threshold on long prefills, where there is one (tokens)."""
        threshold = self._config.long_prefill_token_threshold
        return threshold if 0 < threshold < num_tokens else num_tokens

    def aligned(self, request: SchedulerRequest, start: int, num_tokens: int) -> int:
        """Tokens up to a block boundary, unless the chunk ends the prefill; 0 below one block.

        Where no chunk can hold a block, it ends inside one and goes on to the boundary later.

        It comes before the cut at a refused item: the other way round, releases up to 0.27 floored
        such a cut to nothing, again and again (40707, 51603).
        """
        alignment = self._config.block_alignment
        end = start + num_tokens
        if not alignment or end >= request.num_tokens:
            return num_tokens
        aligned = end // alignment * alignment - start
        if aligned <= 0:
            return num_tokens if alignment > self._config.longest_chunk else 0
        return aligned

    def reserved(self, request: SchedulerRequest, start: int, num_tokens: int) -> int:
        """Tokens such that the prefill's last chunk is not shorter than the shift.

        A drafter of several modules reads that many known tokens past a chunk's end. A chunk that
        would run nothing or split a whole item by this is left as it is: worse drafts are better
        than none, and releases from 0.28 on, which insist, can stop here.
        """
        left = request.num_tokens - start - num_tokens
        if not 0 < left < self._config.scheduler_lookahead:
            return num_tokens
        shorter = num_tokens - (self._config.scheduler_lookahead - left)
        if self._config.whole_items:
            shorter = self._before_item(request, start, shorter)
        return shorter if shorter > 0 else num_tokens

    def _before_item(self, request: SchedulerRequest, start: int, num_tokens: int) -> int:
        """Tokens up to the item that a chunk of so many tokens would split."""
        for feature in request.mm_features:
            place = feature.mm_position
            if guards.ends_inside(start, num_tokens, place.offset, place.end):
                return place.offset - start
        return num_tokens
