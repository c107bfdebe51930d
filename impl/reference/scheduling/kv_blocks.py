"""KV blocks: how many are free, and who holds how many. Which ones does not matter here."""

from __future__ import annotations

from impl.reference.scheduling.scheduled_request import SchedulerRequest


class KvBlocks:
    """A pool of equal blocks, never shared: a prefix hit is loaded into blocks of its own.

    Args:
        num_blocks: blocks that requests can use.
        block_size: tokens of a block.
        num_lookahead_tokens: tokens past a step for which a drafter needs room as well.
    """

    def __init__(self, num_blocks: int, block_size: int, num_lookahead_tokens: int) -> None:
        self.num_free_blocks = num_blocks
        self._block_size = block_size
        self._num_lookahead_tokens = num_lookahead_tokens

    def allocate_slots(self, request: SchedulerRequest, num_tokens: int) -> bool:
        """Give the request room for its first ``num_tokens`` tokens; whether there was enough.

        Tokens past the end of the turn and its drafts are never written, so they need no room.
        """
        last = request.limit + self._num_lookahead_tokens
        wanted = min(num_tokens + self._num_lookahead_tokens, last)
        missing = -(-wanted // self._block_size) - request.num_blocks
        if missing > self.num_free_blocks:
            return False
        if missing > 0:
            self.num_free_blocks -= missing
            request.num_blocks += missing
        return True

    def free(self, request: SchedulerRequest) -> None:
        """Take all blocks back."""
        self.num_free_blocks += request.num_blocks
        request.num_blocks = 0
