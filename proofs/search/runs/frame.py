"""The settings of a drawn run that do not depend on its requests, and the scale of its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from proofs.search.runs.choices import Choose

Trait: TypeAlias = Literal[
    "encoder-decoder",
    "drafter",
    "wide shift",
    "wide look-ahead",
    "async",
    "whole items",
    "threshold",
    "alignment",
    "chunk edges",
    "tails",
    "masks",
    "shared hashes",
    "tight cache",
    "tight encoder budget",
    "many requests",
    "few sequences",
    "late arrivals",
    "bursts",
    "priority",
    "usurpers",
    "few KV blocks",
    "large KV blocks",
    "prefix hits",
    "streaming",
    "aborts",
    "resets",
    "failed loads",
    "churn",
    "any sizes",
    "crowds",
    "failing prefixes",
    "aborts while paused",
    "late closes",
    "last chunks",
]
"""``wide shift``: a scheduler's shift above the gather's look-ahead. ``usurpers``: later requests
come first, so that victims were scheduled in the same pass. ``tails``: the prompt ends within the
shift of its last item. ``churn``: many requests share a few items that the cache cannot hold.
``late closes``: a session is closed after its last input.
``bursts``: those that arrive late arrive together. ``any sizes``: of the encoder cache and of its
budget, as with a cache manager of one's own; else as a vLLM derives them. ``crowds``: victims of
the same pass hold items, and somebody behind them needs tokens. ``failing prefixes``: KV of a
prefix is lost in the pass that loads it, over an item. ``aborts while paused``: sessions between
two inputs are aborted while others wait for a sequence. ``last chunks``: full chunks leave less of
a prefill than the drafter's modules read, also where a preempted request starts again.
"""

_PERCENT: dict[Trait, int] = {
    "encoder-decoder": 10,
    "drafter": 65,
    "wide shift": 40,
    "wide look-ahead": 12,
    "async": 40,
    "whole items": 30,
    "threshold": 15,
    "alignment": 15,
    "chunk edges": 60,
    "tails": 40,
    "masks": 40,
    "shared hashes": 40,
    "tight cache": 65,
    "tight encoder budget": 30,
    "many requests": 35,
    "few sequences": 12,
    "late arrivals": 40,
    "bursts": 20,
    "priority": 35,
    "usurpers": 20,
    "few KV blocks": 35,
    "large KV blocks": 25,
    "prefix hits": 25,
    "streaming": 20,
    "aborts": 12,
    "resets": 8,
    "failed loads": 15,
    "churn": 15,
    "any sizes": 40,
    "crowds": 10,
    "failing prefixes": 8,
    "aborts while paused": 6,
}

ALL_TRAITS: tuple[Trait, ...] = get_args(Trait)

ON_REQUEST: tuple[Trait, ...] = tuple(trait for trait in ALL_TRAITS if trait not in _PERCENT)
"""Traits that no chance brings, but whoever draws asks for: none of the others depend on them."""

_EXCLUDED_BY: tuple[tuple[Trait, tuple[Trait, ...]], ...] = (
    (
        "encoder-decoder",
        (
            "drafter",
            "wide shift",
            "wide look-ahead",
            "alignment",
            "masks",
            "prefix hits",
            "streaming",
            "late closes",
            "failed loads",
            "failing prefixes",
            "aborts while paused",
            "last chunks",
        ),
    ),
    ("whole items", ("alignment",)),
)
"""What is not legal beside the first."""


def draw_traits(choose: Choose, needed: frozenset[Trait] = frozenset()) -> frozenset[Trait]:
    """A set of traits that go together.

    Args:
        choose: where the choices come from.
        needed: traits that it must have, apart from ``encoder-decoder`` and what goes with it.
    """
    traits = {trait for trait in ALL_TRAITS if trait in _PERCENT and choose.chance(_PERCENT[trait])}
    if needed:
        traits |= needed
        traits.discard("encoder-decoder")
    if "encoder-decoder" in traits and choose.chance(60):
        # All that can go wrong between them is room, and a vLLM's own sizes leave little to want.
        traits |= {"many requests", "late arrivals", "bursts", "tight cache", "any sizes"}
        traits -= {"tight encoder budget", "usurpers", "few sequences", "few KV blocks", "crowds"}
    if "crowds" in traits:
        traits |= {"usurpers"}
    if "failing prefixes" in traits:
        traits |= {"prefix hits", "failed loads"}
    if "late closes" in traits:
        traits |= {"streaming"}
    if "last chunks" in traits:
        traits |= {"drafter", "wide shift", "few KV blocks", "many requests"}
    if "aborts while paused" in traits:
        traits |= {"streaming", "aborts", "few sequences", "many requests"}
    if "usurpers" in traits:
        traits |= {"priority", "many requests", "late arrivals", "few KV blocks"}
    if "churn" in traits:
        traits |= {"shared hashes", "many requests", "tight cache"}
    for trait, excluded in _EXCLUDED_BY:
        if trait in traits:
            traits -= set(excluded)
    if "drafter" not in traits:
        traits -= {"wide shift", "wide look-ahead"}
    return frozenset(traits)


Assumption: TypeAlias = Literal[
    "hash-is-content", "hash-has-one-row-count", "scheduler-looks-as-far"
]
"""An assumption that drawn scenarios may break on request, and keep otherwise.

``hash-has-one-row-count`` is a part of ``hash-is-content``: an engine can see it broken, and has to
refuse the request.
"""


@dataclass(frozen=True)
class Scale:
    """How large things get.

    Attributes:
        few_requests: most requests without the trait ``many requests``.
        many_requests: least and most requests with it.
        least_budget: least token budget (tokens).
        most_budget: most token budget (tokens).
        least_length: least length of an item (tokens).
        most_length: most length of an item (tokens), except where a chunk is longer.
        most_items: most items of a turn.
        most_text: most tokens of text before an item and after the last.
        most_generated: most tokens generated in a turn.
        most_passes: the latest pass before which something arrives, counted from the arrival
            before it.
        block_sizes: sizes of a KV block (tokens), the plain one first.
        alignments: block alignments (tokens).
    """

    few_requests: int
    many_requests: tuple[int, int]
    least_budget: int
    most_budget: int
    least_length: int
    most_length: int
    most_items: int
    most_text: int
    most_generated: int
    most_passes: int
    block_sizes: tuple[int, ...]
    alignments: tuple[int, ...]


SMALL = Scale(2, (2, 4), 1, 9, 1, 6, 3, 3, 4, 5, (1, 2, 4), (2, 4, 8))
"""What a guard does at 4 and 5 it does at 400 and 401, and a person reads it."""

LARGE = Scale(24, (24, 48), 256, 2048, 16, 1500, 4, 400, 24, 60, (16, 1, 64), (64, 256))
"""Dozens of requests, prompts of thousands of tokens."""


@dataclass(frozen=True)
class Frame:
    """Settings drawn before the requests.

    Attributes:
        traits: what the run has.
        scale: how large things get.
        token_budget: tokens of a pass.
        threshold: most tokens of a prefill chunk; 0 for no limit.
        alignment: block alignment; 0 for none.
        block_size: tokens of a KV block.
        scheduler_lookahead: the scheduler's shift (tokens).
        gather_lookahead: the gather's look-ahead (tokens).
        num_drafts: drafts per step.
        async_depth: passes in flight before an update.
    """

    traits: frozenset[Trait]
    scale: Scale
    breaks: frozenset[Assumption]
    token_budget: int
    threshold: int
    alignment: int
    block_size: int
    scheduler_lookahead: int
    gather_lookahead: int
    num_drafts: int
    async_depth: int

    @property
    def chunk(self) -> int:
        """Tokens of a full prefill chunk when a request runs alone."""
        return min(self.token_budget, self.threshold or self.token_budget)

    @property
    def reach(self) -> int:
        """How near an edge things are put (tokens): the shift, and at least one."""
        return max(1, self.scheduler_lookahead)

    @property
    def longest_item(self) -> int:
        """Most tokens of an item: with whole items, what a pass can hold."""
        longest = max(self.scale.most_length, self.chunk + self.reach)
        if "crowds" in self.traits:
            longest = max(1, self.chunk)
        return min(longest, self.token_budget) if "whole items" in self.traits else longest


def draw_frame(
    choose: Choose, traits: frozenset[Trait], scale: Scale, breaks: frozenset[Assumption]
) -> Frame:
    """Settings that suit the traits and go together."""
    shift, look_ahead, drafts = _draw_drafter(choose, traits, breaks)
    alignment = choose.pick(scale.alignments) if "alignment" in traits else 0
    least = max(scale.least_budget, 1 + drafts, alignment)
    most = scale.most_budget
    if "any sizes" not in traits and traits & {"tight cache", "tight encoder budget"}:
        most //= 2  # A cache that a vLLM derives is no smaller than the token budget.
    token_budget = choose.integer(least, max(least, most))
    threshold = 0
    if "usurpers" in traits:
        # Several prefills run in one pass, so that victims have run before who needs their blocks.
        threshold = choose.integer(max(1, alignment), max(1, alignment, token_budget // 2))
    elif "threshold" in traits:
        threshold = choose.integer(max(1, alignment), token_budget)
    large_blocks = "large KV blocks" in traits
    return Frame(
        traits=traits,
        scale=scale,
        breaks=breaks,
        token_budget=token_budget,
        threshold=threshold,
        alignment=alignment,
        block_size=choose.pick(scale.block_sizes[1:]) if large_blocks else scale.block_sizes[0],
        scheduler_lookahead=shift,
        gather_lookahead=look_ahead,
        num_drafts=drafts,
        async_depth=choose.integer(1, 2) if "async" in traits else 0,
    )


def _draw_drafter(
    choose: Choose, traits: frozenset[Trait], breaks: frozenset[Assumption]
) -> tuple[int, int, int]:
    """Scheduler's shift, gather's look-ahead and drafts per step."""
    if "drafter" not in traits:
        return 0, 0, 0
    look_ahead = choose.integer(2, 3) if "wide look-ahead" in traits else 1
    if "scheduler-looks-as-far" in breaks:
        if choose.chance(90):
            look_ahead = 1  # So much real runners read: for a drafter that is a model of its own.
        shift = choose.integer(0, look_ahead - 1)
    else:
        least = max(2, look_ahead) if "last chunks" in traits else look_ahead
        shift = choose.integer(least, 3) if "wide shift" in traits else look_ahead
    return shift, look_ahead, choose.integer(max(1, shift), 3)
