"""An engine's settings, as far as the theorems on stuck states depend on them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from spec.errors import InputError


@dataclass(frozen=True)
class Settings:
    """What an engine was started with (tokens, unless said otherwise).

    Attributes:
        token_budget: tokens of a pass.
        encoder_budget: rows that the encoder computes in a pass.
        cache_size: rows of the encoder cache.
        largest_item: the longest item; 0 for a model of text only. Items of every size up to it may
            come.
        largest_rows: rows of the largest item; never more than its tokens.
        whole_items: whether chunking of items is off.
        num_drafts: tokens that the drafter proposes; 0 without one.
        shift: how far past a chunk the scheduler looks for encoder inputs: 1 for a drafter that
            reads ahead, the number of modules for one of several.
        threshold: most tokens of a chunk of a long prefill; 0 for none.
        block_alignment: chunks of a prefill end at multiples of it; 0 for none.
        num_requests: requests that may be in the engine at once, running or waiting; ``None`` if
            nothing bounds them.
        max_num_seqs: requests that may run at once; ``None`` if nothing bounds them.
        items_per_prompt: most items of a prompt; ``None`` if nothing bounds them.
        longest_prompt: most tokens of a prompt; ``None`` if nothing bounds them.
        prefix_hits: whether a request may start behind a cached prefix.
        by_priority: whether requests run by priority rather than in order of arrival.
        async_depth: passes that may be scheduled before the update of an earlier one; 0 for a
            synchronous engine, 1 for an asynchronous one.
        sizes_follow_budget: whether encoder budget and cache are as large as the token budget or
            the largest item, whichever is more: so vLLM sizes them.
    """

    token_budget: int
    encoder_budget: int
    cache_size: int
    largest_item: int = 0
    largest_rows: int = 0
    whole_items: bool = False
    num_drafts: int = 0
    shift: int = 0
    threshold: int = 0
    block_alignment: int = 0
    num_requests: int | None = None
    max_num_seqs: int | None = None
    items_per_prompt: int | None = None
    longest_prompt: int | None = None
    prefix_hits: bool = True
    by_priority: bool = False
    async_depth: int = 0
    sizes_follow_budget: bool = False

    def validate(self) -> None:
        """Check what is out of range or contradicts itself.

        Raises:
            InputError: what is wrong, and what to do.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            least = 1 if field.name in _AT_LEAST_ONE else 0
            if value is not None and value < least:
                raise InputError(f"{field.name} is {value}; it must be at least {least}")
        if self.largest_rows > self.largest_item:
            raise InputError(
                f"largest_rows is {self.largest_rows} but the largest item has only "
                f"{self.largest_item} tokens; an item has at most one row a token"
            )
        if self.largest_item and not self.largest_rows:
            raise InputError("largest_rows is 0; an item has at least one row")
        if self.token_budget < 1 + self.num_drafts:
            raise InputError(
                f"a token budget of {self.token_budget} cannot hold one sampled token and "
                f"{self.num_drafts} drafts; vLLM refuses to start"
            )
        if self.block_alignment and self.whole_items:
            raise InputError(
                "chunks that are aligned to blocks need chunking of items; vLLM refuses to start"
            )

    def with_token_budget(self, tokens: int) -> Settings:
        """The settings with another token budget, and what follows from it."""
        if not self.sizes_follow_budget:
            return replace(self, token_budget=tokens)
        size = max(tokens, self.largest_rows)
        return replace(self, token_budget=tokens, encoder_budget=size, cache_size=size)

    @property
    def can_repeat(self) -> bool:
        """Whether two requests may be in the engine at once."""
        return self.num_requests is None or self.num_requests > 1

    @property
    def most_running(self) -> int | None:
        """Requests that may run at once; ``None`` if nothing bounds them."""
        bounds = [bound for bound in (self.num_requests, self.max_num_seqs) if bound is not None]
        return min(bounds, default=None)

    def allows(self, num_prompt_tokens: int, num_items: int) -> bool:
        """Whether a prompt may be as long and have as many items."""
        fits = self.longest_prompt is None or num_prompt_tokens <= self.longest_prompt
        return fits and (self.items_per_prompt is None or num_items <= self.items_per_prompt)


_AT_LEAST_ONE = ("token_budget", "encoder_budget", "cache_size", "num_requests", "max_num_seqs")
