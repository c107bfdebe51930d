"""The engine's settings for a run, and which of them are legal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from spec.errors import InputError

Policy: TypeAlias = Literal["fcfs", "priority"]
"""Order of requests: first come first served, or by priority (lower runs first), then arrival."""


@dataclass(frozen=True)
class EngineConfig:
    """Settings that stay fixed for a run (assumption ``budgets-fixed``).

    Attributes:
        max_num_batched_tokens: token budget of a pass.
        encoder_compute_budget: rows that the encoder may compute in a pass.
        encoder_cache_size: capacity of the encoder cache (rows).
        num_kv_blocks: KV blocks that requests can use; a real engine holds one more, the null
            block.
        block_size: tokens of a KV block.
        max_num_seqs: requests that may run at once.
        scheduler_lookahead: the scheduler's shift: how far past the processed end it looks for
            encoder inputs (tokens).
        gather_lookahead: how far the drafter reads ahead of the target (tokens); 0 without one.
        num_speculative_tokens: drafts proposed after each sampling step; 0 without a drafter.
        async_depth: passes that are scheduled before the update of an earlier one; 0 is the
            synchronous engine.
        whole_items: chunking of items is off (vLLM's ``disable_chunked_mm_input``).
        long_prefill_token_threshold: most tokens of one prefill chunk; 0 for no limit.
        block_alignment: prefill chunks end at multiples of it where they can (tokens); 0 for none.
            A chunk that cannot hold a block ends inside it; some engines refuse to start then.
        policy: who runs first, and who is preempted last.
        prefix_caching: whether requests may find a prefix computed (``prefix_hits``).
        is_encoder_decoder: whether encoder outputs are read by cross-attention.
    """

    max_num_batched_tokens: int
    encoder_compute_budget: int
    encoder_cache_size: int
    num_kv_blocks: int
    block_size: int = 1
    max_num_seqs: int = 8
    scheduler_lookahead: int = 0
    gather_lookahead: int = 0
    num_speculative_tokens: int = 0
    async_depth: int = 0
    whole_items: bool = False
    long_prefill_token_threshold: int = 0
    block_alignment: int = 0
    policy: Policy = "fcfs"
    prefix_caching: bool = False
    is_encoder_decoder: bool = False

    __pydantic_config__ = {"extra": "forbid", "strict": True}

    @property
    def longest_chunk(self) -> int:
        """The most tokens that a pass runs of one long prefill."""
        threshold = self.long_prefill_token_threshold
        budget = self.max_num_batched_tokens
        return min(budget, threshold) if threshold else budget

    def validate(self) -> None:
        """Check what every engine checks at start-up.

        Raises:
            InputError: a number out of range, or two settings that exclude each other.
        """
        positive = (
            "max_num_batched_tokens",
            "encoder_compute_budget",
            "encoder_cache_size",
            "num_kv_blocks",
            "block_size",
            "max_num_seqs",
        )
        for name in positive:
            if getattr(self, name) < 1:
                raise InputError(f"config: {name} is {getattr(self, name)}; it must be at least 1")
        not_negative = (
            "scheduler_lookahead",
            "gather_lookahead",
            "num_speculative_tokens",
            "async_depth",
            "long_prefill_token_threshold",
            "block_alignment",
        )
        for name in not_negative:
            if getattr(self, name) < 0:
                raise InputError(f"config: {name} is {getattr(self, name)}; it cannot be negative")
        if self.gather_lookahead and not self.num_speculative_tokens:
            raise InputError(
                "config: gather_lookahead without drafts; set num_speculative_tokens, or 0 for both"
            )
        if self.max_num_batched_tokens < 1 + self.num_speculative_tokens:
            raise InputError(
                f"config: a token budget of {self.max_num_batched_tokens} cannot hold one sampled "
                f"token and {self.num_speculative_tokens} drafts"
            )
        if self.block_alignment and self.whole_items:
            raise InputError("config: block_alignment needs chunking of items; whole_items is on")
        if self.is_encoder_decoder and (self.num_speculative_tokens or self.scheduler_lookahead):
            raise InputError("config: an encoder-decoder model runs without a drafter here")
