"""Two items and a chunk that is aligned to blocks, but not in a prompt's last ones: when they stop.

So releases align up to 0.25, with or without a drafter; :mod:`proofs.theorems.progress.aligned` is
about the rule of 0.27.
"""

from __future__ import annotations

from dataclasses import replace

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.progress.neighbours import not_asked_before, same
from proofs.theorems.progress.scene import (
    ASKS_FOR_TOKENS,
    AT_THE_STOP,
    BEFORE_THE_STOP,
    BUDGET_FOR_BOTH,
    CACHE_FOR_BOTH,
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
from spec.algebra import BoolTerm, IntTerm, and_, eq, implies, ite, not_, or_
from spec.rules.stop_conditions import aligned_neighbours_exceed_budget, spared_neighbours_stop
from spec.rules.stopping_passes import pair_after, tokens_before_last_blocks, tokens_of_pair

_BOUNDARIES = "boundaries-a-block-apart"
_BLOCK = "chunk-holds-a-block"


class _Spared:
    """A pair whose chunk, once cut, ends at a block boundary before the prompt's last blocks."""

    def __init__(self, v: Vocabulary) -> None:
        self.pair = pair = a_pair(v)
        self.block, self.last = integers(v, "block_size last_cacheable")
        self.before_cut, self.before_end = integers(v, "boundary_before_cut boundary_before_end")
        start = pair.state.progress
        scene = (pair.first, pair.second, pair.state, pair.asked)
        self.chunk = tokens_of_pair(*scene, pair.room, pair.shifts)
        tokens = tokens_before_last_blocks(start, self.chunk, self.before_end, self.last)
        self.after = pair_after(*scene, tokens, pair.room, pair.shifts)
        self.stops = spared_neighbours_stop(
            pair.first, pair.second, pair.room.cache_size, self.before_cut, self.last, pair.shifts
        )

    @property
    def cut(self) -> IntTerm:
        """Where the chunk ends before the second item."""
        return self.pair.second.offset - self.pair.shifts.cut

    @property
    def stop(self) -> IntTerm:
        """Where the request stands still: the cut, or the boundary before it."""
        return ite(self.cut < self.last, self.before_cut, self.cut)

    @property
    def boundaries(self) -> BoolTerm:
        """Each is the last before its place; the request starts at one, but in the last blocks."""
        start = self.pair.state.progress
        fixed = (self.before_cut, self.before_end, self.last)

        def apart(x: IntTerm, y: IntTerm) -> BoolTerm:
            return or_(eq(x, y), x + self.block <= y, y + self.block <= x)

        return and_(
            *(apart(x, y) for n, x in enumerate(fixed) for y in fixed[:n]),
            implies(start < self.last, and_(*(apart(start, y) for y in fixed))),
            self.before_cut <= self.cut,
            self.cut < self.before_cut + self.block,
            self.before_end <= start + self.chunk,
            start + self.chunk < self.before_end + self.block,
        )

    @property
    def chunk_holds_a_block(self) -> BoolTerm:
        """Chunks are not below a block before the last blocks."""
        start = self.pair.state.progress
        return or_(self.pair.asked >= self.block, start >= self.last)

    @property
    def realistic(self) -> BoolTerm:
        """Counts as an engine has them."""
        return and_(
            self.pair.realistic, self.block >= 1, self.pair.asked >= 1, self.before_cut >= 0
        )


def _stay(v: Vocabulary) -> Formula:
    spared = _Spared(v)
    pair, progress = spared.pair, spared.pair.state.progress
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: spared.stops,
            REACHED: pair.only_first_is_taken,
            AT_THE_STOP: or_(
                eq(progress, spared.stop),
                and_(spared.stop <= progress, progress < pair.first.end),
            ),
            _BOUNDARIES: spared.boundaries,
            MARGIN_NOT_NEGATIVE: pair.shifts.margin >= 0,
            WINDOW_REACHES: pair.window_reaches,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        same(pair.state, spared.after),
        spared.realistic,
    )


def _get_there(v: Vocabulary) -> Formula:
    spared = _Spared(v)
    pair, after, stop = spared.pair, spared.after, spared.stop
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: spared.stops,
            REACHED: pair.only_first_is_taken,
            BEFORE_THE_STOP: pair.state.progress < stop,
            _BOUNDARIES: spared.boundaries,
            _BLOCK: spared.chunk_holds_a_block,
            WINDOW_REACHES: pair.window_reaches,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        and_(
            after.progress > pair.state.progress,
            after.progress <= stop,
            not_(after.holds_second),
            or_(after.holds_first, after.progress < pair.first.end),
        ),
        spared.realistic,
    )


def _go_on(v: Vocabulary) -> Formula:
    spared = _Spared(v)
    pair = spared.pair
    return Formula(
        {
            GOES_ON: not_(spared.stops),
            REACHED: pair.held_by_rules,
            FITS_ALONE: pair.each_fits,
            BUDGET_FOR_BOTH: pair.both_fit_budget,
            MARGIN_NOT_NEGATIVE: pair.shifts.margin >= 0,
            ASKS_FOR_TOKENS: pair.asked >= 1,
            _BOUNDARIES: spared.boundaries,
            _BLOCK: spared.chunk_holds_a_block,
        },
        spared.after.progress > pair.state.progress,
        and_(pair.order, spared.realistic),
    )


def _stops_at_start(spared: _Spared, start: IntTerm) -> BoolTerm:
    pair = spared.pair
    budget = pair.room.encoder_budget
    return aligned_neighbours_exceed_budget(
        pair.first, pair.second, start, spared.stop, budget, pair.shifts
    )


def _budget_stays(v: Vocabulary) -> Formula:
    spared = _Spared(v)
    pair = spared.pair
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: _stops_at_start(spared, pair.state.progress),
            REACHED: and_(not_(pair.state.holds_first), not_(pair.state.holds_second)),
            AT_THE_STOP: spared.stop <= pair.state.progress,
            _BOUNDARIES: spared.boundaries,
            WINDOW_REACHES: pair.window_reaches,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        same(pair.state, spared.after),
        spared.realistic,
    )


def _budget_goes_on(v: Vocabulary) -> Formula:
    spared, start = _Spared(v), v.integer("start")
    pair = spared.pair
    after = replace(pair, state=spared.after)
    return Formula(
        {
            GOES_ON: not_(_stops_at_start(spared, start)),
            REACHED: not_asked_before(pair, start),
            CACHE_FOR_BOTH: pair.first.rows + pair.second.rows <= pair.room.cache_size,
            FITS_ALONE: pair.each_fits,
            MARGIN_NOT_NEGATIVE: pair.shifts.margin >= 0,
            ASKS_FOR_TOKENS: pair.asked >= 1,
            _BOUNDARIES: spared.boundaries,
            _BLOCK: spared.chunk_holds_a_block,
        },
        and_(not_asked_before(after, start), after.state.progress > pair.state.progress),
        and_(pair.order, pair.window_reaches, spared.realistic),
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
    "last_cacheable": 8,
    "boundary_before_cut": 0,
    "boundary_before_end": 0,
}
"""A[0,5) B[6,11) in blocks of 8 with room for six rows, and without a drafter."""

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="spared-neighbours-stay",
        sentence="a chunk that is cut and then aligned, but for the prompt's last blocks, and two "
        "items that do not fit together, the first held where the chunk ends: there a pass changes "
        "nothing",
        build=_stay,
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
        short_name="spared-neighbours-get-there",
        sentence="with the same condition, each pass before that raises progress, to there at most",
        build=_get_there,
        witness={
            **_IN_BLOCK,
            "first_offset": 8,
            "second_offset": 14,
            "num_asked_tokens": 19,
            "last_cacheable": 16,
            "boundary_before_cut": 8,
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
        short_name="spared-neighbours-go-on",
        sentence="without that condition every pass of a request with two items raises progress, "
        "if a chunk holds a block",
        build=_go_on,
        witness={**_IN_BLOCK, "last_cacheable": 0},
        ablations=(
            Ablation("condition-holds", drops=(GOES_ON,)),
            Ablation("below-a-block", drops=(_BLOCK,)),
            Ablation("larger-than-the-room", drops=(FITS_ALONE,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="aligned-budget-stays",
        sentence="two items that exceed the encoder budget, and the cut before the second aligned "
        "to where the request stands or before it: a pass changes nothing",
        build=_budget_stays,
        witness={**_IN_BLOCK, "cache_size": 10, "encoder_budget": 6},
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("already-taken", drops=(REACHED,)),
            Ablation("overlapping-items", drops=(SORTED_DISJOINT,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="aligned-budget-goes-on",
        sentence="without that condition, and with room for both, every pass raises progress, if a "
        "chunk holds a block",
        build=_budget_goes_on,
        witness={
            **_IN_BLOCK,
            "cache_size": 10,
            "encoder_budget": 6,
            "last_cacheable": 0,
            "start": 0,
        },
        ablations=(
            Ablation("condition-holds", drops=(GOES_ON,)),
            Ablation("below-a-block", drops=(_BLOCK,)),
            Ablation("larger-than-the-room", drops=(FITS_ALONE,)),
        ),
    ),
)
