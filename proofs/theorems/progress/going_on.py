"""Correct rules always go on: who gets nothing holds nothing, so that somebody finds room.

The argument, in a synchronous engine with KV blocks for all, between passes in which nothing is in
flight (assumptions ``budgets-fixed``, ``arrivals-finite``, ``sampling-yields``,
``everything-fits-alone``):

1. a request takes its items in order (``items-are-taken-in-order``), so that one that is refused at
   its progress holds nothing (``refused-at-progress-holds-nothing``); with a margin or a shift of
   the cut it may;
2. a chunk is empty for no other reason, while nobody before it has used budgets up
   (``*-chunk-not-empty``);
3. so if nobody gets a token, nobody holds anything, and the first request that asks finds room
   (``first-of-the-refused-has-room``): somebody does get one;
4. every token that runs raises progress when its pass was updated, and progress is bounded
   (``update-raises-progress``): the work left, summed over requests, decreases with every pass.

What is not proved: that preemption for want of KV blocks comes to an end. Progress falls to 0
there, so that the sum is no measure; it is searched.
"""

from __future__ import annotations

from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import FEATURES_NOT_EMPTY, SORTED_DISJOINT
from proofs.theorems.progress.scene import ASKS_FOR_TOKENS, FITS_ALONE, NAME
from spec.algebra import BoolTerm, IntTerm, and_, implies, ite, max_, min_, not_, or_
from spec.rules.chunk_ends import (
    aligned_chunk,
    extends_over_item,
    limited_by_threshold,
    refused_cut,
    reserved_chunk,
    reserving_chunk,
    splits_item,
    whole_item_cut,
)
from spec.rules.encoder_inputs import has_room, is_asked_for, window_end
from spec.rules.stopping_passes import Item, is_still_held
from spec.rules.turn import tokens_emitted

PART = Group(NAME)

_ORDER = "taken-in-order"
_WANTED = "tokens-left"


def _two_items(v: Vocabulary) -> tuple[Item, Item]:
    first_offset, first_length, second_offset, second_length = integers(
        v, "first_offset first_length second_offset second_length"
    )
    return Item(first_offset, first_length, 0), Item(second_offset, second_length, 0)


def _in_order(
    first: Item, holds_first: BoolTerm, holds_second: BoolTerm, progress: IntTerm
) -> BoolTerm:
    """Whoever holds an item holds every item before it that progress has not passed."""
    return implies(and_(holds_second, progress < first.end), holds_first)


_ITEMS = {"first_offset": 0, "first_length": 4, "second_offset": 4, "second_length": 4}


_CHUNK = {"num_computed_tokens": 0, "num_asked_tokens": 6}


@theorem(
    PART,
    claim="no-stall",
    sentence="whoever holds an item holds every item before it that progress has not passed, "
    "pass after pass, whatever the book answers",
    witness={
        **_ITEMS,
        **_CHUNK,
        "num_scheduled_tokens": 4,
        "window_shift": 1,
        "holds_first": False,
        "holds_second": False,
        "first_granted": True,
        "second_granted": False,
    },
    ablations=(
        without("overlapping-items", SORTED_DISJOINT),
        without("empty-item", FEATURES_NOT_EMPTY),
    ),
)
def _items_are_taken_in_order(v: Vocabulary) -> Formula:
    """One pass; the book's answers are anybody's."""
    first, second = _two_items(v)
    progress, asked, tokens, shift = integers(
        v, "num_computed_tokens num_asked_tokens num_scheduled_tokens window_shift"
    )
    holds_first, holds_second = v.boolean("holds_first"), v.boolean("holds_second")
    first_granted = or_(holds_first, v.boolean("first_granted"))
    window = window_end(progress, asked, shift)
    takes_first = and_(is_asked_for(first.offset, first.end, progress, window), first_granted)
    refused = and_(is_asked_for(first.offset, first.end, progress, window), not_(first_granted))
    takes_second = and_(
        is_asked_for(second.offset, second.end, progress, window),
        not_(refused),
        v.boolean("second_granted"),
    )
    after = progress + tokens
    return Formula(
        {
            SORTED_DISJOINT: first.end <= second.offset,
            FEATURES_NOT_EMPTY: first.length >= 1,
            _ORDER: _in_order(first, holds_first, holds_second, progress),
            ASKS_FOR_TOKENS: tokens >= 0,
        },
        _in_order(
            first,
            and_(or_(holds_first, takes_first), is_still_held(first, 0, after)),
            and_(or_(holds_second, takes_second), is_still_held(second, 0, after)),
            after,
        ),
        and_(first.offset >= 0, second.length >= 1, progress >= 0, tokens <= asked, shift >= 0),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="a request that gets no token because an item was refused holds no other item",
    witness={
        "first_offset": 4,
        "first_length": 4,
        "second_offset": 0,
        "second_length": 4,
        "num_computed_tokens": 4,
        "num_asked_tokens": 4,
        "holds_other": False,
    },
    ablations=(
        changed("margin", margin=1),
        changed("shifted-cut", cut=1),
        without("taken-out-of-order", _ORDER),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _refused_at_progress_holds_nothing(v: Vocabulary, margin: int = 0, cut: int = 0) -> Formula:
    """Another item of the request, before or behind the refused one."""
    refused, held = _two_items(v)
    progress, asked = integers(v, "num_computed_tokens num_asked_tokens")
    holds_other = v.boolean("holds_other")
    return Formula(
        {
            SORTED_DISJOINT: or_(held.end <= refused.offset, refused.end <= held.offset),
            _ORDER: implies(
                refused.end <= held.offset, _in_order(refused, False, holds_other, progress)
            ),
            "held-as-free-leaves-it": implies(holds_other, is_still_held(held, margin, progress)),
            "gets-nothing": refused_cut(refused.offset, progress, asked, cut) <= 0,
            ASKS_FOR_TOKENS: asked >= 1,
            "refused-item-not-over": progress < refused.end,
        },
        not_(holds_other),
        and_(
            refused.offset >= 0,
            refused.length >= 1,
            held.offset >= 0,
            held.length >= 1,
            progress >= 0,
        ),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="where no request holds anything, one after the other, the next one's item is not "
    "refused",
    witness={
        "held_by_those_before": 0,
        "held_by_the_next": 0,
        "rows": 4,
        "cache_size": 4,
        "encoder_budget": 4,
    },
    ablations=(
        without("larger-than-the-room", FITS_ALONE),
        without("another-holds-some", "those-before-hold-nothing"),
    ),
)
def _first_of_the_refused_has_room(v: Vocabulary) -> Formula:
    """Step of an induction over the requests: what those before hold, and the next."""
    before, own, rows, cache, budget = integers(
        v, "held_by_those_before held_by_the_next rows cache_size encoder_budget"
    )
    return Formula(
        {
            "those-before-hold-nothing": before <= 0,
            "the-next-holds-nothing": own <= 0,
            FITS_ALONE: and_(rows <= cache, rows <= budget),
        },
        and_(before + own <= 0, has_room(rows, budget, 0, cache - (before + own))),
        and_(before >= 0, own >= 0, rows >= 1),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="a pass with a token, once updated, has raised confirmed progress, which stays "
    "below what is known and so below the request's limit",
    witness={
        "num_computed_tokens": 7,
        "num_known_tokens": 8,
        "limit": 12,
        "num_scheduled_tokens": 3,
        "num_sampled_tokens": 2,
    },
    ablations=(
        without("nothing-sampled", "sampling-yields"),
        without("empty-pass", ASKS_FOR_TOKENS),
    ),
)
def _update_raises_progress(v: Vocabulary) -> Formula:
    """A step that reaches the end of what is known, and its drafts; a prefill has neither."""
    computed, num_known, limit = integers(v, "num_computed_tokens num_known_tokens limit")
    scheduled, sampled = integers(v, "num_scheduled_tokens num_sampled_tokens")
    drafts = computed + scheduled - num_known
    samples = drafts >= 0
    emitted = tokens_emitted(sampled, num_known, limit)
    rejected = drafts - (sampled - 1)
    after = computed + scheduled - ite(samples, rejected + sampled - emitted, 0)
    known_after = num_known + ite(samples, emitted, 0)
    return Formula(
        {
            ASKS_FOR_TOKENS: scheduled >= 1,
            "progress-below-what-is-known": computed < num_known,
            "not-ended": num_known < limit,
            "sampling-yields": implies(samples, sampled >= 1),
        },
        and_(after > computed, after < known_after, known_after <= limit),
        and_(computed >= 0, sampled >= 0, implies(samples, sampled <= drafts + 1)),
    )


# A chunk of correct rules is never empty while nobody has used budgets up, one rule at a time.


@theorem(
    PART,
    claim="no-stall",
    sentence="a threshold on long prefills and a budget that is not used up leave a token",
    witness={"num_wanted_tokens": 6, "token_budget": 4, "long_prefill_token_threshold": 2},
    ablations=(without("no-budget", ASKS_FOR_TOKENS), without("nothing-left", _WANTED)),
)
def _limited_chunk_not_empty(v: Vocabulary) -> Formula:
    wanted, budget, threshold = integers(
        v, "num_wanted_tokens token_budget long_prefill_token_threshold"
    )
    return Formula(
        {_WANTED: wanted >= 1, ASKS_FOR_TOKENS: budget >= 1},
        min_(limited_by_threshold(wanted, threshold), budget) >= 1,
        threshold >= 0,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="a chunk that is aligned before it is cut has a token if budget and threshold "
    "hold a block",
    witness={
        "num_computed_tokens": 6,
        "num_wanted_tokens": 20,
        "token_budget": 8,
        "long_prefill_token_threshold": 0,
        "block_size": 8,
        "last_boundary": 8,
    },
    ablations=(
        without("budget-below-a-block", "budget-holds-a-block"),
        without("threshold-below-a-block", "threshold-holds-a-block"),
    ),
)
def _aligned_chunk_not_empty(v: Vocabulary) -> Formula:
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


@theorem(
    PART,
    claim="no-stall",
    sentence="a chunk that must not split an item has a token if the token budget holds the "
    "item and nobody has used it up",
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
        without("larger-than-the-budget", FITS_ALONE),
        without("budget-used-up", "budget-untouched"),
        changed("shifted-cut", cut=1),
    ),
)
def _whole_chunk_not_empty(v: Vocabulary, cut: int = 0) -> Formula:
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


@theorem(
    PART,
    claim="no-stall",
    sentence="a chunk that ends before a refused item behind progress has a token",
    witness={**_CHUNK, "offset": 1},
    ablations=(without("item-at-progress", "behind-progress"), changed("shifted-cut", cut=1)),
)
def _cut_chunk_not_empty(v: Vocabulary, cut: int = 0) -> Formula:
    offset, progress, asked = integers(v, "offset num_computed_tokens num_asked_tokens")
    return Formula(
        {"behind-progress": offset > progress, ASKS_FOR_TOKENS: asked >= 1},
        refused_cut(offset, progress, asked, cut) >= 1,
        progress >= 0,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="a reservation that yields leaves a token",
    witness={
        "num_computed_tokens": 3,
        "num_scheduled_tokens": 1,
        "num_prompt_tokens": 5,
        "window_shift": 2,
    },
    ablations=(changed("insists", insists=True),),
)
def _reserved_chunk_not_empty(v: Vocabulary, insists: bool = False) -> Formula:
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
