"""Two items and a chunk that is cut and then aligned to blocks: when they stop."""

from __future__ import annotations

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.progress.neighbours import same
from proofs.theorems.progress.scene import (
    ASKS_FOR_TOKENS,
    AT_THE_STOP,
    BEFORE_THE_STOP,
    BUDGET_FOR_BOTH,
    FITS_ALONE,
    GOES_ON,
    GROUP,
    MARGIN_NOT_NEGATIVE,
    PAIR_WITNESS,
    REACHED,
    SORTED_DISJOINT,
    STOPS,
    WINDOW_REACHES,
    a_pair,
)
from spec.algebra import BoolTerm, IntTerm, and_, eq, not_, or_
from spec.rules.scheduling import aligned_chunk
from spec.rules.stop_conditions import aligned_neighbours_stop
from spec.rules.stopping_passes import pair_after, tokens_of_pair

_IN_PROMPT = "item-in-prompt"


class _Aligned:
    """A pair whose chunk, once cut, ends at the last block boundary, unless it ends the prompt.

    Boundaries are as far apart as a block is long; of those that matter only the order is used.
    """

    def __init__(self, v: Vocabulary) -> None:
        self.pair = pair = a_pair(v)
        self.block, self.prompt = integers(v, "block_size num_prompt_tokens")
        self.before_second = v.integer("boundary_before_second")
        self.before_end = v.integer("boundary_before_end")
        start = pair.state.progress
        scene = (pair.first, pair.second, pair.state, pair.asked)
        self.cut = tokens_of_pair(*scene, pair.room, pair.shifts)
        tokens = aligned_chunk(start, self.cut, self.before_end, self.prompt)
        self.tokens = tokens
        self.after = pair_after(*scene, tokens, pair.room, pair.shifts)
        self.stops = aligned_neighbours_stop(
            pair.first, pair.second, pair.room.cache_size, self.before_second, pair.shifts
        )

    def is_last_boundary(self, boundary: IntTerm, position: IntTerm) -> BoolTerm:
        """Whether no boundary lies between this one and the position."""
        return and_(boundary <= position, position < boundary + self.block)

    @property
    def boundaries(self) -> BoolTerm:
        """What is known of the boundaries: each the last before its place, a block apart."""
        start = self.pair.state.progress
        marks = (start, self.before_second, self.before_end)
        apart = [or_(x <= y, y + self.block <= x) for x in marks for y in marks if x is not y]
        stop = self.pair.second.offset - self.pair.shifts.cut
        return and_(
            *apart,
            self.is_last_boundary(self.before_second, stop),
            self.is_last_boundary(self.before_end, start + self.cut),
        )

    @property
    def chunk_holds_a_block(self) -> BoolTerm:
        """Chunks are not below a block, unless they end the prompt."""
        left = self.prompt - self.pair.state.progress
        return or_(self.pair.asked >= self.block, self.pair.asked >= left)

    @property
    def realistic(self) -> BoolTerm:
        """Counts as an engine has them."""
        pair = self.pair
        return and_(
            pair.realistic,
            self.block >= 1,
            pair.second.end <= self.prompt,
            pair.asked >= 1,
            pair.asked <= self.prompt - pair.state.progress,
        )


_BOUNDARIES = "boundaries-a-block-apart"
_BLOCK = "chunk-holds-a-block"


def _aligned_stay(v: Vocabulary) -> Formula:
    aligned = _Aligned(v)
    pair, progress = aligned.pair, aligned.pair.state.progress
    stop = aligned.before_second
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: aligned.stops,
            REACHED: pair.only_first_is_taken,
            AT_THE_STOP: or_(eq(progress, stop), and_(stop <= progress, progress < pair.first.end)),
            _IN_PROMPT: pair.second.end <= aligned.prompt,
            _BOUNDARIES: aligned.boundaries,
            MARGIN_NOT_NEGATIVE: pair.shifts.margin >= 0,
            WINDOW_REACHES: pair.window_reaches,
        },
        same(pair.state, aligned.after),
        aligned.realistic,
    )


def _aligned_get_there(v: Vocabulary) -> Formula:
    aligned = _Aligned(v)
    pair, after, stop = aligned.pair, aligned.after, aligned.before_second
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: aligned.stops,
            REACHED: pair.only_first_is_taken,
            BEFORE_THE_STOP: pair.state.progress < stop,
            _IN_PROMPT: pair.second.end <= aligned.prompt,
            _BOUNDARIES: aligned.boundaries,
            _BLOCK: aligned.chunk_holds_a_block,
            WINDOW_REACHES: pair.window_reaches,
        },
        and_(
            after.progress > pair.state.progress,
            after.progress <= stop,
            not_(after.holds_second),
            or_(after.holds_first, after.progress < pair.first.end),
        ),
        aligned.realistic,
    )


def _aligned_go_on(v: Vocabulary) -> Formula:
    aligned = _Aligned(v)
    pair = aligned.pair
    return Formula(
        {
            GOES_ON: not_(aligned.stops),
            REACHED: pair.held_by_rules,
            FITS_ALONE: pair.each_fits,
            BUDGET_FOR_BOTH: pair.both_fit_budget,
            MARGIN_NOT_NEGATIVE: pair.shifts.margin >= 0,
            ASKS_FOR_TOKENS: pair.asked >= 1,
            _BOUNDARIES: aligned.boundaries,
            _BLOCK: aligned.chunk_holds_a_block,
        },
        aligned.after.progress > pair.state.progress,
        and_(pair.order, aligned.realistic),
    )


_IN_BLOCK = {
    **PAIR_WITNESS,
    "first_length": 5,
    "first_rows": 5,
    "second_offset": 6,
    "second_length": 5,
    "second_rows": 5,
    "cache_size": 6,
    "encoder_budget": 10,
    "window_shift": 0,
    "cut_shift": 0,
    "num_computed_tokens": 0,
    "holds_first": False,
    "num_asked_tokens": 11,
    "block_size": 8,
    "num_prompt_tokens": 11,
    "boundary_before_second": 0,
    "boundary_before_end": 0,
}
"""A[0,5) B[6,11) in blocks of 8 with room for six rows: 40707."""

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="aligned-neighbours-stay",
        sentence="a chunk that is cut and then aligned, two items that do not fit together, the "
        "first held at the last block boundary before the cut: there a pass changes nothing",
        build=_aligned_stay,
        witness=_IN_BLOCK,
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("earlier", drops=(AT_THE_STOP,)),
            Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="aligned-neighbours-get-there",
        sentence="with the same condition, each pass before that raises progress, to that boundary "
        "at most",
        build=_aligned_get_there,
        witness={
            **_IN_BLOCK,
            "first_offset": 8,
            "second_offset": 14,
            "num_prompt_tokens": 19,
            "num_asked_tokens": 19,
            "boundary_before_second": 8,
            "boundary_before_end": 8,
        },
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("below-a-block", drops=(_BLOCK,)),
            Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="aligned-neighbours-go-on",
        sentence="without that condition every pass of a request with two items raises progress, "
        "if a chunk holds a block",
        build=_aligned_go_on,
        witness={**_IN_BLOCK, "cache_size": 10, "boundary_before_end": 8},
        ablations=(
            Ablation("condition-holds", drops=(GOES_ON,)),
            Ablation("below-a-block", drops=(_BLOCK,)),
            Ablation("larger-than-the-room", drops=(FITS_ALONE,)),
        ),
    ),
)
