"""Where a chunk's end alone stops a request for ever: whole items, chunks below the shift."""

from __future__ import annotations

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.progress.scene import (
    ASKS_FOR_TOKENS,
    AT_THE_STOP,
    BEFORE_THE_STOP,
    GOES_ON,
    GROUP,
    REACHED,
    STOPS,
    WINDOW_REACHES,
)
from spec.algebra import IntTerm, and_, eq, min_, not_
from spec.rules.stop_conditions import (
    chunks_below_shift_stop,
    whole_item_stops,
)
from spec.rules.stopping_passes import tokens_after_reservation, tokens_before_whole_item

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


def _whole_stays(v: Vocabulary) -> Formula:
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


def _whole_gets_there(v: Vocabulary) -> Formula:
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


def _whole_goes_on(v: Vocabulary) -> Formula:
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


def _short_stay(v: Vocabulary) -> Formula:
    short = _Short(v)
    return Formula(
        {
            STOPS: short.stops,
            AT_THE_STOP: short.left <= short.shift,
        },
        eq(short.tokens, 0),
        and_(short.realistic, short.limit >= 1),
    )


def _short_get_there(v: Vocabulary) -> Formula:
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


def _short_go_on(v: Vocabulary) -> Formula:
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

_SHORT = {
    "num_computed_tokens": 0,
    "num_prompt_tokens": 2,
    "chunk_limit": 1,
    "window_shift": 2,
}
"""Text of 2 with a threshold of 1 and a drafter of two modules."""

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="whole-item-stays",
        sentence="an item that must not be split and, with the cut's shift before it, exceeds a "
        "chunk: at that shift before it a pass runs nothing",
        build=_whole_stays,
        witness=_WHOLE,
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("elsewhere", drops=(AT_THE_STOP,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="whole-item-gets-there",
        sentence="with the same condition, each pass before that raises progress, up to there at "
        "most",
        build=_whole_gets_there,
        witness={**_WHOLE, "offset": 3, "num_prompt_tokens": 8},
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("window-ends-short", drops=(WINDOW_REACHES,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="whole-item-goes-on",
        sentence="without that condition every pass of the prompt runs a token",
        build=_whole_goes_on,
        witness={**_WHOLE, "chunk_limit": 5},
        ablations=(
            Ablation("condition-holds", drops=(GOES_ON,)),
            Ablation("starts-behind", drops=(REACHED,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="short-chunks-stay",
        sentence="with the reservation and chunks below the shift: in the prompt's last shift a "
        "pass runs nothing",
        build=_short_stay,
        witness=_SHORT,
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("earlier", drops=(AT_THE_STOP,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="short-chunks-get-there",
        sentence="with the same condition each pass before that runs a token, and the condition "
        "still holds",
        build=_short_get_there,
        witness={**_SHORT, "num_prompt_tokens": 4},
        ablations=(Ablation("condition-fails", drops=(STOPS,)),),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="short-chunks-go-on",
        sentence="without that condition every pass of the prompt runs a token, and the condition "
        "still fails",
        build=_short_go_on,
        witness={**_SHORT, "chunk_limit": 2},
        ablations=(Ablation("condition-holds", drops=(GOES_ON,)),),
    ),
)
