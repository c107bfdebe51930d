"""Traits that a run may have, of which each draw switches on a few (swarm testing).

A draw in which everything happens at once hides what needs some of it to be absent: a cache that
never fills, a batch of one. So each scenario first draws which traits it has.
"""

from __future__ import annotations

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
]
"""``wide shift``: a scheduler's shift above the gather's look-ahead. ``usurpers``: later requests
come first, so that victims were scheduled in the same pass. ``tails``: the prompt ends within the
shift of its last item. ``churn``: many requests share a few items that the cache cannot hold.
"""

_PERCENT: dict[Trait, int] = {
    "encoder-decoder": 7,
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
    "priority": 35,
    "usurpers": 20,
    "few KV blocks": 35,
    "large KV blocks": 25,
    "prefix hits": 25,
    "streaming": 20,
    "aborts": 12,
    "resets": 8,
    "failed loads": 8,
    "churn": 15,
}

ALL_TRAITS: tuple[Trait, ...] = get_args(Trait)

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
            "failed loads",
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
    traits = {trait for trait in ALL_TRAITS if choose.chance(_PERCENT[trait])}
    if needed:
        traits |= needed
        traits.discard("encoder-decoder")
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
