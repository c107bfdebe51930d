"""Where a chunk's end alone stops a request for ever: whole items, chunks below the shift."""

from __future__ import annotations

from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.progress.scene import (
    ASKS_FOR_TOKENS,
    AT_THE_STOP,
    BEFORE_THE_STOP,
    GOES_ON,
    NAME,
    REACHED,
    STOPS,
    WINDOW_REACHES,
)
from spec.algebra import IntTerm, and_, eq, iff, min_, not_
from spec.rules.chunk_ends import limited_by_threshold, refused_cut
from spec.rules.encoder_inputs import has_room
from spec.rules.stop_conditions import (
    chunks_below_shift_stop,
    item_never_fits,
    padded_decode_breaks,
    whole_item_stops,
)
from spec.rules.stopping_passes import Room, tokens_after_reservation, tokens_before_whole_item

PART = Group(NAME)

# A whole item


class _Whole:
    """A request before an item that must not be split."""

    def __init__(self, v: Vocabulary) -> None:
        self.start, self.progress, self.offset, self.length = integers(
            v, "start num_computed_tokens offset length"
        )
        self.prompt, self.limit, self.window, self.cut = integers(
            v, "num_prompt_tokens chunk_limit window_shift cut_shift"
        )
        self.spares = v.boolean("spares_start")
        asked = min_(self.prompt - self.progress, self.limit)
        self.tokens = tokens_before_whole_item(
            self.offset, self.length, self.progress, asked, self.window, self.cut, self.spares
        )
        self.stops = whole_item_stops(
            self.length, self.offset - self.start, self.limit, self.cut, self.spares
        )
        self.reaches = and_(self.cut >= 0, self.cut <= self.window)
        self.inside = self.offset + self.length <= self.prompt
        self.realistic = and_(self.start >= 0, self.length >= 1, self.limit >= 1, self.inside)

    @property
    def stop(self) -> IntTerm:
        """Where it stands still: the cut's shift before the item, or where it started."""
        return self.offset - min_(self.offset - self.start, self.cut)


_WHOLE = {
    "start": 0,
    "num_computed_tokens": 0,
    "offset": 1,
    "length": 4,
    "num_prompt_tokens": 6,
    "chunk_limit": 4,
    "window_shift": 1,
    "cut_shift": 1,
    "spares_start": True,
}

"""A[1,5) of 6 with a token budget of 4 and a drafter."""


@theorem(
    PART,
    claim="no-stall",
    sentence="an item that must not be split and, with the cut's shift before it, exceeds a "
    "chunk: at that shift before it a pass runs nothing",
    witness=_WHOLE,
    ablations=(without("condition-fails", STOPS), without("elsewhere", AT_THE_STOP)),
)
def _whole_item_stays(v: Vocabulary) -> Formula:
    whole = _Whole(v)
    return Formula(
        {
            STOPS: whole.stops,
            REACHED: whole.start <= whole.offset,
            AT_THE_STOP: eq(whole.progress, whole.stop),
            WINDOW_REACHES: whole.reaches,
            ASKS_FOR_TOKENS: whole.limit >= 1,
            "item-in-prompt": whole.inside,
        },
        eq(whole.tokens, 0),
        whole.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="with the same condition, each pass before that raises progress, up to there at most",
    witness={**_WHOLE, "offset": 3, "num_prompt_tokens": 8},
    ablations=(without("condition-fails", STOPS), without("window-ends-short", WINDOW_REACHES)),
)
def _whole_item_gets_there(v: Vocabulary) -> Formula:
    whole = _Whole(v)
    return Formula(
        {
            BEFORE_THE_STOP: and_(whole.start <= whole.progress, whole.progress < whole.stop),
            WINDOW_REACHES: whole.reaches,
            ASKS_FOR_TOKENS: whole.limit >= 1,
            "item-in-prompt": whole.inside,
            STOPS: whole.stops,
        },
        and_(whole.tokens >= 1, whole.progress + whole.tokens <= whole.stop),
        whole.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="without that condition every pass of the prompt runs a token",
    witness={**_WHOLE, "chunk_limit": 5},
    ablations=(without("condition-holds", GOES_ON), without("starts-behind", REACHED)),
)
def _whole_item_goes_on(v: Vocabulary) -> Formula:
    whole = _Whole(v)
    return Formula(
        {
            GOES_ON: not_(whole.stops),
            REACHED: whole.start <= whole.progress,
            "prompt-not-over": whole.progress < whole.prompt,
            ASKS_FOR_TOKENS: whole.limit >= 1,
            "item-in-prompt": whole.inside,
        },
        whole.tokens >= 1,
        and_(whole.realistic, whole.reaches),
    )


# Chunks below the shift


class _Short:
    """A request near the end of its prompt, and chunks of so many tokens at most."""

    def __init__(self, v: Vocabulary) -> None:
        self.progress, self.prompt, self.limit, self.shift = integers(
            v, "num_computed_tokens num_prompt_tokens chunk_limit window_shift"
        )
        self.left = self.prompt - self.progress
        asked = min_(self.left, self.limit)
        self.tokens = tokens_after_reservation(self.progress, asked, self.prompt, self.shift)
        self.stops = chunks_below_shift_stop(self.left, self.limit, self.shift)
        self.realistic = and_(self.progress >= 0, self.shift >= 1)


_SHORT = {"num_computed_tokens": 0, "num_prompt_tokens": 2, "chunk_limit": 1, "window_shift": 2}

"""Text of 2 with a threshold of 1 and a drafter of two modules."""


@theorem(
    PART,
    claim="no-stall",
    sentence="with the reservation and chunks below the shift: in the prompt's last shift a "
    "pass runs nothing",
    witness=_SHORT,
    ablations=(without("condition-fails", STOPS), without("earlier", AT_THE_STOP)),
)
def _short_chunks_stay(v: Vocabulary) -> Formula:
    short = _Short(v)
    return Formula(
        {STOPS: short.stops, AT_THE_STOP: short.left <= short.shift},
        eq(short.tokens, 0),
        and_(short.realistic, short.limit >= 1),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="with the same condition each pass before that runs a token, and the condition "
    "still holds",
    witness={**_SHORT, "num_prompt_tokens": 4},
    ablations=(without("condition-fails", STOPS),),
)
def _short_chunks_get_there(v: Vocabulary) -> Formula:
    short = _Short(v)
    left = short.left - short.tokens
    return Formula(
        {
            STOPS: short.stops,
            BEFORE_THE_STOP: short.left > short.shift,
            ASKS_FOR_TOKENS: short.limit >= 1,
        },
        and_(short.tokens >= 1, chunks_below_shift_stop(left, short.limit, short.shift)),
        short.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="without that condition every pass of the prompt runs a token, and the condition "
    "still fails",
    witness={**_SHORT, "chunk_limit": 2},
    ablations=(without("condition-holds", GOES_ON),),
)
def _short_chunks_go_on(v: Vocabulary) -> Formula:
    short = _Short(v)
    left = short.left - short.tokens
    return Formula(
        {
            GOES_ON: not_(short.stops),
            "prompt-not-over": short.left >= 1,
            ASKS_FOR_TOKENS: short.limit >= 1,
        },
        and_(short.tokens >= 1, not_(chunks_below_shift_stop(left, short.limit, short.shift))),
        short.realistic,
    )


# What stops an engine by itself: an item that never fits, a padded decode that is cut.


@theorem(
    PART,
    claim="no-stall",
    sentence="an item is refused by an empty book exactly if it has more rows than the cache "
    "or the encoder budget, and then a request that stands before it runs nothing",
    witness={"rows": 4, "cache_size": 3, "encoder_budget": 4, "offset": 0, "num_asked_tokens": 4},
    ablations=(without("negative-chunk", ASKS_FOR_TOKENS),),
)
def _item_never_fits(v: Vocabulary) -> Formula:
    """Nothing else is held or chosen, and the request stands before the item."""
    rows, cache, budget, offset, asked = integers(
        v, "rows cache_size encoder_budget offset num_asked_tokens"
    )
    refused = not_(has_room(rows, budget, 0, cache))
    tokens = refused_cut(offset, offset, asked, 0)
    return Formula(
        {ASKS_FOR_TOKENS: asked >= 1},
        and_(iff(item_never_fits(rows, Room(cache, budget)), refused), eq(tokens, 0)),
        and_(rows >= 1, offset >= 0),
    )


@theorem(
    PART,
    claim="no-error",
    sentence="a decode padded with drafts is cut, which an assertion forbids, exactly if the "
    "threshold on long prefills is at most the number of drafts",
    witness={"num_speculative_tokens": 1, "long_prefill_token_threshold": 1},
    ablations=(changed("drafts-alone", num_sampled=0),),
)
def _padded_decode_breaks(v: Vocabulary, num_sampled: int = 1) -> Formula:
    drafts, threshold = integers(v, "num_speculative_tokens long_prefill_token_threshold")
    padded = num_sampled + drafts
    return Formula(
        {},
        iff(
            padded_decode_breaks(drafts, threshold),
            not_(eq(limited_by_threshold(padded, threshold), padded)),
        ),
        and_(drafts >= 0, threshold >= 0),
    )
