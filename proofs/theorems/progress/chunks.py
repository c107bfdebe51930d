"""A chunk of correct rules is never empty while nobody has used budgets up, one rule at a time."""

from __future__ import annotations

from functools import partial

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.progress.scene import ASKS_FOR_TOKENS, FITS_ALONE, GROUP
from spec.algebra import and_, ite, max_, min_, or_
from spec.rules.scheduling import (
    aligned_chunk,
    extends_over_item,
    limited_by_threshold,
    refused_cut,
    reserved_chunk,
    reserving_chunk,
    splits_item,
    whole_item_cut,
)
from spec.rules.stopping_passes import Item

_WANTED = "tokens-left"


def _limited(v: Vocabulary) -> Formula:
    wanted, budget, threshold = integers(
        v, "num_wanted_tokens token_budget long_prefill_token_threshold"
    )
    return Formula(
        {_WANTED: wanted >= 1, ASKS_FOR_TOKENS: budget >= 1},
        min_(limited_by_threshold(wanted, threshold), budget) >= 1,
        threshold >= 0,
    )


def _aligned(v: Vocabulary) -> Formula:
    progress, wanted, budget, threshold = integers(
        v, "num_computed_tokens num_wanted_tokens token_budget long_prefill_token_threshold"
    )
    block, boundary = integers(v, "block_size last_boundary")
    asked = min_(limited_by_threshold(wanted, threshold), budget)
    return Formula(
        {
            _WANTED: wanted >= 1,
            "last-boundary": progress + asked < boundary + block,
            "budget-holds-a-block": budget >= block,
            "threshold-holds-a-block": or_(threshold <= 0, threshold >= block),
        },
        aligned_chunk(progress, asked, boundary, progress + wanted) >= 1,
        and_(progress >= 0, block >= 1, boundary <= progress + asked, threshold >= 0),
    )


def _whole(v: Vocabulary, cut: int = 0) -> Formula:
    """A chunk that would split an item, in the reference."""
    progress, asked, available, prompt = integers(
        v, "num_computed_tokens num_asked_tokens num_available_tokens num_prompt_tokens"
    )
    offset, length = integers(v, "offset length")
    item = Item(offset, length, 0)
    tokens = ite(
        extends_over_item(item.offset, item.end, progress, available),
        item.end - progress,
        whole_item_cut(item.offset, progress, cut),
    )
    budget = v.integer("token_budget")
    return Formula(
        {
            "splits": splits_item(item.offset, item.end, progress, asked),
            FITS_ALONE: item.length <= budget,
            "item-in-prompt": item.end <= prompt,
            "budget-untouched": available >= min_(prompt - progress, budget),
        },
        tokens >= 1,
        and_(progress >= 0, asked >= 1, item.length >= 1, budget >= 1, asked <= available),
    )


def _refused_behind(v: Vocabulary, cut: int = 0) -> Formula:
    offset, progress, asked = integers(v, "offset num_computed_tokens num_asked_tokens")
    return Formula(
        {"behind-progress": offset > progress, ASKS_FOR_TOKENS: asked >= 1},
        refused_cut(offset, progress, asked, cut) >= 1,
        progress >= 0,
    )


def _reserved(v: Vocabulary, insists: bool = False) -> Formula:
    progress, tokens, prompt, shift = integers(
        v, "num_computed_tokens num_scheduled_tokens num_prompt_tokens window_shift"
    )
    reserving = reserving_chunk(progress, tokens, prompt, shift)
    kept = max_(reserving, 0) if insists else reserved_chunk(tokens, reserving)
    return Formula(
        {ASKS_FOR_TOKENS: tokens >= 1},
        kept >= 1,
        and_(progress >= 0, shift >= 1, progress + tokens <= prompt),
    )


_CHUNK = {"num_computed_tokens": 0, "num_asked_tokens": 6}

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="limited-chunk-not-empty",
        sentence="a threshold on long prefills and a budget that is not used up leave a token",
        build=_limited,
        witness={
            "num_wanted_tokens": 6,
            "token_budget": 4,
            "long_prefill_token_threshold": 2,
        },
        ablations=(
            Ablation("no-budget", drops=(ASKS_FOR_TOKENS,)),
            Ablation("nothing-left", drops=(_WANTED,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="aligned-chunk-not-empty",
        sentence="a chunk that is aligned before it is cut has a token if budget and threshold "
        "hold a block",
        build=_aligned,
        witness={
            "num_computed_tokens": 6,
            "num_wanted_tokens": 20,
            "token_budget": 8,
            "long_prefill_token_threshold": 0,
            "block_size": 8,
            "last_boundary": 8,
        },
        ablations=(
            Ablation("budget-below-a-block", drops=("budget-holds-a-block",)),
            Ablation("threshold-below-a-block", drops=("threshold-holds-a-block",)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="whole-chunk-not-empty",
        sentence="a chunk that must not split an item has a token if the token budget holds the "
        "item and nobody has used it up",
        build=_whole,
        witness={
            "num_computed_tokens": 1,
            "num_asked_tokens": 2,
            "num_available_tokens": 4,
            "num_prompt_tokens": 6,
            "offset": 1,
            "length": 4,
            "token_budget": 4,
        },
        ablations=(
            Ablation("larger-than-the-budget", drops=(FITS_ALONE,)),
            Ablation("budget-used-up", drops=("budget-untouched",)),
            Ablation("shifted-cut", build=partial(_whole, cut=1)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="cut-chunk-not-empty",
        sentence="a chunk that ends before a refused item behind progress has a token",
        build=_refused_behind,
        witness={**_CHUNK, "offset": 1},
        ablations=(
            Ablation("item-at-progress", drops=("behind-progress",)),
            Ablation("shifted-cut", build=partial(_refused_behind, cut=1)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="reserved-chunk-not-empty",
        sentence="a reservation that yields leaves a token",
        build=_reserved,
        witness={
            "num_computed_tokens": 3,
            "num_scheduled_tokens": 1,
            "num_prompt_tokens": 5,
            "window_shift": 2,
        },
        ablations=(Ablation("insists", build=partial(_reserved, insists=True)),),
    ),
)
