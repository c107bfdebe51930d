"""Two items and a chunk that is cut and then aligned to blocks: when they stop."""

from __future__ import annotations

from dataclasses import replace

from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.progress.pairs import not_asked_before, same
from proofs.theorems.progress.scene import (
    ASKS_FOR_TOKENS,
    AT_THE_STOP,
    BEFORE_THE_STOP,
    BUDGET_FOR_BOTH,
    CACHE_FOR_BOTH,
    FITS_ALONE,
    GOES_ON,
    MARGIN_NOT_NEGATIVE,
    NAME,
    PAIR_WITNESS,
    REACHED,
    SORTED_DISJOINT,
    STOPS,
    WINDOW_REACHES,
    a_pair,
)
from spec.algebra import BoolTerm, IntTerm, and_, eq, implies, ite, max_, min_, not_, or_
from spec.rules.chunk_ends import aligned_chunk
from spec.rules.stop_conditions import (
    aligned_neighbours_exceed_budget,
    aligned_neighbours_stop,
    boundary_splits_the_end,
    spared_neighbours_stop,
)
from spec.rules.stop_settings import boundary_can_stop_text
from spec.rules.stopping_passes import (
    Boundaries,
    end_at_boundary,
    pair_after,
    tokens_after_reservation,
    tokens_before_last_blocks,
    tokens_of_pair,
)

PART = Group(NAME)

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


@theorem(
    PART,
    claim="no-stall",
    sentence="a chunk that is cut and then aligned, two items that do not fit together, the "
    "first held at the last block boundary before the cut: there a pass changes nothing",
    witness=_IN_BLOCK,
    ablations=(
        without("condition-fails", STOPS),
        without("earlier", AT_THE_STOP),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _aligned_neighbours_stay(v: Vocabulary) -> Formula:
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


@theorem(
    PART,
    claim="no-stall",
    sentence="with the same condition, each pass before that raises progress, to that boundary "
    "at most",
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
        without("condition-fails", STOPS),
        without("below-a-block", _BLOCK),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _aligned_neighbours_get_there(v: Vocabulary) -> Formula:
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


@theorem(
    PART,
    claim="no-stall",
    sentence="without that condition every pass of a request with two items raises progress, "
    "if a chunk holds a block",
    witness={**_IN_BLOCK, "cache_size": 10, "boundary_before_end": 8},
    ablations=(
        without("condition-holds", GOES_ON),
        without("below-a-block", _BLOCK),
        without("larger-than-the-room", FITS_ALONE),
    ),
)
def _aligned_neighbours_go_on(v: Vocabulary) -> Formula:
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


# Two items and a chunk that is aligned to blocks, but not in a prompt's last ones: when they stop.
#
# So releases align up to 0.25, with or without a drafter; above is the rule of 0.27.


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


_IN_LAST_BLOCK = {
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


@theorem(
    PART,
    claim="no-stall",
    sentence="a chunk that is cut and then aligned, but for the prompt's last blocks, and two "
    "items that do not fit together, the first held where the chunk ends: there a pass changes "
    "nothing",
    witness=_IN_LAST_BLOCK,
    ablations=(
        without("condition-fails", STOPS),
        without("earlier", AT_THE_STOP),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _spared_neighbours_stay(v: Vocabulary) -> Formula:
    spared = _Spared(v)
    pair, progress = spared.pair, spared.pair.state.progress
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: spared.stops,
            REACHED: pair.only_first_is_taken,
            AT_THE_STOP: or_(
                eq(progress, spared.stop), and_(spared.stop <= progress, progress < pair.first.end)
            ),
            _BOUNDARIES: spared.boundaries,
            MARGIN_NOT_NEGATIVE: pair.shifts.margin >= 0,
            WINDOW_REACHES: pair.window_reaches,
            ASKS_FOR_TOKENS: pair.asked >= 1,
        },
        same(pair.state, spared.after),
        spared.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="with the same condition, each pass before that raises progress, to there at most",
    witness={
        **_IN_LAST_BLOCK,
        "first_offset": 8,
        "second_offset": 14,
        "num_asked_tokens": 19,
        "last_cacheable": 16,
        "boundary_before_cut": 8,
        "boundary_before_end": 8,
    },
    ablations=(
        without("condition-fails", STOPS),
        without("below-a-block", _BLOCK),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _spared_neighbours_get_there(v: Vocabulary) -> Formula:
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


@theorem(
    PART,
    claim="no-stall",
    sentence="without that condition every pass of a request with two items raises progress, "
    "if a chunk holds a block",
    witness={**_IN_LAST_BLOCK, "last_cacheable": 0},
    ablations=(
        without("condition-holds", GOES_ON),
        without("below-a-block", _BLOCK),
        without("larger-than-the-room", FITS_ALONE),
    ),
)
def _spared_neighbours_go_on(v: Vocabulary) -> Formula:
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


@theorem(
    PART,
    claim="no-stall",
    sentence="two items that exceed the encoder budget, and the cut before the second aligned "
    "to where the request stands or before it: a pass changes nothing",
    witness={**_IN_LAST_BLOCK, "cache_size": 10, "encoder_budget": 6},
    ablations=(
        without("condition-fails", STOPS),
        without("already-taken", REACHED),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _aligned_budget_stays(v: Vocabulary) -> Formula:
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


@theorem(
    PART,
    claim="no-stall",
    sentence="with the same condition at the request's start, and chunks that come to that "
    "boundary and not past it, neither item is taken on the way",
    witness={
        **_IN_LAST_BLOCK,
        "cache_size": 10,
        "encoder_budget": 6,
        "first_offset": 9,
        "second_offset": 14,
        "last_cacheable": 16,
        "boundary_before_cut": 8,
        "boundary_before_end": 8,
        "num_computed_tokens": 0,
        "holds_first": False,
        "num_asked_tokens": 8,
        "block_size": 8,
        "start": 0,
    },
    ablations=(
        without("condition-fails", STOPS),
        without("chunk-past-the-boundary", "chunks-end-by-the-boundary"),
        without("overlapping-items", SORTED_DISJOINT),
    ),
)
def _aligned_budget_gets_there(v: Vocabulary) -> Formula:
    spared, start = _Spared(v), v.integer("start")
    pair = spared.pair
    return Formula(
        {
            SORTED_DISJOINT: pair.order,
            STOPS: _stops_at_start(spared, start),
            REACHED: and_(not_(pair.state.holds_first), not_(pair.state.holds_second)),
            BEFORE_THE_STOP: start <= pair.state.progress,
            "chunks-end-by-the-boundary": pair.state.progress + pair.asked <= spared.stop,
            ASKS_FOR_TOKENS: pair.asked >= 1,
            _BOUNDARIES: spared.boundaries,
        },
        and_(
            not_(spared.after.holds_first),
            not_(spared.after.holds_second),
            spared.after.progress <= spared.stop,
        ),
        spared.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="without that condition, and with room for both, every pass raises progress, if a "
    "chunk holds a block",
    witness={
        **_IN_LAST_BLOCK,
        "cache_size": 10,
        "encoder_budget": 6,
        "last_cacheable": 0,
        "start": 0,
    },
    ablations=(
        without("condition-holds", GOES_ON),
        without("below-a-block", _BLOCK),
        without("larger-than-the-room", FITS_ALONE),
    ),
)
def _aligned_budget_goes_on(v: Vocabulary) -> Formula:
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


# A block boundary in what the reservation keeps together of a prompt: when it stops a request.


_SHIFT_WITHIN = "shift-within-a-block"
_DOES_NOT_END = "does-not-end-the-prompt"
_LIMIT = "chunk-limit"
_CUT = "cut-ahead"
_MODULES = "several-modules"


class _Near:
    """A chunk that is aligned, cut before a refused item, and shortened by the reservation.

    The cut is where the chunk may go at most; without a refused item it lies at the prompt's end.
    """

    def __init__(self, v: Vocabulary) -> None:
        self.progress, self.prompt, self.limit, self.cut = integers(
            v, "num_computed_tokens num_prompt_tokens chunk_limit cut"
        )
        self.block, self.shift = integers(v, "block_size window_shift")
        self.before_start, self.before_end, self.before_prompt = integers(
            v, "boundary_before_start boundary_before_end boundary_before_prompt"
        )
        self.end = self.progress + min_(self.prompt - self.progress, self.limit)
        last = self.before_prompt
        ends_at_boundary = eq(self.prompt, last + self.block)
        self.cacheable = ite(ends_at_boundary, last, max_(last - self.block, 0))
        boundaries = Boundaries(
            self.before_start, self.before_start + self.block, self.before_end, self.cacheable
        )
        self.aligned = end_at_boundary(
            self.progress, self.end, self.prompt, boundaries, self.block > self.limit
        )
        tokens = min_(self.aligned, self.cut) - self.progress
        self.tokens = tokens_after_reservation(self.progress, tokens, self.prompt, self.shift)
        self.after = self.progress + self.tokens
        self.reserved = self.prompt - self.shift
        self.splits = boundary_splits_the_end(self.prompt, self.before_prompt, self.shift)

    @property
    def boundaries(self) -> BoolTerm:
        """Each is the last at or before its place, or before the prompt's end; 0 is one."""
        last, block = self.before_prompt, self.block
        marks = (0, self.before_start, self.before_end, last - block, last, last + block)

        def apart(x: IntTerm, y: IntTerm) -> BoolTerm:
            return or_(eq(x, y), x + self.block <= y, y + self.block <= x)

        places = (
            (self.before_start, self.progress),
            (self.before_end, self.end),
            (self.before_prompt, self.prompt - 1),
        )
        return and_(
            self.block >= 1,
            *(apart(x, y) for n, x in enumerate(marks) for y in marks[:n]),
            *(and_(x >= 0, x <= y, y < x + self.block) for x, y in places),
        )

    @property
    def is_at_boundary(self) -> BoolTerm:
        """Whether progress is at a block boundary."""
        return eq(self.progress, self.before_start)

    @property
    def stops_ahead(self) -> BoolTerm:
        """Whether the chunk cannot run to the prompt's end."""
        return or_(
            self.limit < self.prompt - self.progress,
            not_(self.is_at_boundary),
            self.progress < self.cacheable,
            self.cut < self.prompt,
        )

    @property
    def realistic(self) -> BoolTerm:
        """Counts as an engine has them."""
        return and_(self.progress >= 0, self.limit >= 1, self.shift >= 2, self.cut <= self.prompt)


_TEXT = {
    "num_computed_tokens": 0,
    "num_prompt_tokens": 9,
    "chunk_limit": 8,
    "cut": 9,
    "block_size": 8,
    "window_shift": 2,
    "boundary_before_start": 0,
    "boundary_before_end": 8,
    "boundary_before_prompt": 8,
}

"""Text of 9 in blocks of 8, two modules, and a token budget of 8."""


@theorem(
    PART,
    claim="no-stall",
    sentence="a chunk that stops at block boundaries, before it is cut, has a token, whether "
    "it holds a block or not",
    witness=_TEXT,
    ablations=(without("prompt-over", "prompt-not-over"), without("any-place", _BOUNDARIES)),
)
def _boundary_chunk_not_empty(v: Vocabulary) -> Formula:
    """Before any item is looked at, and before the reservation."""
    near = _Near(v)
    return Formula(
        {
            "prompt-not-over": near.progress < near.prompt,
            _LIMIT: near.limit >= 1,
            _BOUNDARIES: near.boundaries,
        },
        and_(near.aligned > near.progress, near.aligned <= near.end),
        near.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="a block boundary in the prompt's last shift, and progress in front of it: a pass "
    "that does not run to the prompt's end runs nothing",
    witness={**_TEXT, "num_computed_tokens": 7},
    ablations=(
        without("condition-fails", STOPS),
        without("elsewhere", AT_THE_STOP),
        without("runs-to-the-end", _DOES_NOT_END),
    ),
)
def _boundary_stays(v: Vocabulary) -> Formula:
    near = _Near(v)
    return Formula(
        {
            AT_THE_STOP: near.reserved <= near.progress,
            STOPS: near.progress < near.before_prompt,
            _BOUNDARIES: near.boundaries,
            _DOES_NOT_END: near.stops_ahead,
        },
        eq(near.tokens, 0),
        near.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="with the same condition, each pass before that raises progress, to the prompt's "
    "last shift at most",
    witness=_TEXT,
    ablations=(without("condition-fails", STOPS), without("runs-to-the-end", _DOES_NOT_END)),
)
def _boundary_gets_there(v: Vocabulary) -> Formula:
    """Each pass before that; the next one does not end the prompt either."""
    near = _Near(v)

    def stops_later(position: IntTerm) -> BoolTerm:
        return or_(
            near.limit < near.prompt - near.cacheable,
            and_(near.cacheable < near.cut, near.cut < near.prompt),
            position > near.cacheable,
            near.prompt - near.cacheable < near.shift,
        )

    return Formula(
        {
            STOPS: near.splits,
            BEFORE_THE_STOP: near.progress < near.reserved,
            _BOUNDARIES: near.boundaries,
            _DOES_NOT_END: stops_later(near.progress),
            _LIMIT: near.limit >= 1,
            _CUT: near.cut > near.progress,
        },
        and_(near.after > near.progress, near.after <= near.reserved, stops_later(near.after)),
        near.realistic,
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="where a chunk holds a block and one less than the shift, and is not cut behind "
    "the last boundary but one, every pass of the prompt runs a token",
    witness={**_TEXT, "chunk_limit": 9, "boundary_before_end": 8},
    ablations=(
        without("shift-above-a-block", _SHIFT_WITHIN),
        without("shorter-chunks", _LIMIT),
        without("cut-in-the-last-chunk", "not-cut-in-the-last-chunk"),
    ),
)
def _boundary_goes_on(v: Vocabulary) -> Formula:
    """Text, or items that all fit: a chunk is cut only where that leaves the last one whole."""
    near = _Near(v)

    def is_safe(position: IntTerm) -> BoolTerm:
        return or_(not_(near.splits), position <= near.cacheable, position >= near.prompt)

    last = min_(near.reserved, near.cacheable)
    return Formula(
        {
            REACHED: is_safe(near.progress),
            "prompt-not-over": near.progress < near.prompt,
            _BOUNDARIES: near.boundaries,
            _SHIFT_WITHIN: near.shift <= near.block,
            _MODULES: near.shift >= 2,
            _LIMIT: near.limit >= near.block + near.shift - 1,
            "not-cut-in-the-last-chunk": or_(
                near.cut >= near.prompt,
                and_(not_(near.splits), near.cut <= near.reserved),
                near.cut <= last,
            ),
            _CUT: near.cut > near.progress,
        },
        and_(near.tokens >= 1, is_safe(near.after)),
        and_(near.realistic, near.after <= near.prompt),
    )


@theorem(
    PART,
    claim="no-stall",
    sentence="some text stops at a block boundary exactly if the shift exceeds a block, or a "
    "chunk holds less than a block and one less than the shift",
    witness={
        "block_size": 8,
        "chunk_limit": 8,
        "window_shift": 2,
        "num_prompt_tokens": 9,
        "boundary_before_prompt": 8,
    },
    ablations=(without("one-module", _MODULES),),
)
def _boundary_is_exact(v: Vocabulary) -> Formula:
    """From settings to a prompt: one block and so much more that a chunk does not hold it."""
    block, limit, shift = integers(v, "block_size chunk_limit window_shift")
    prompt, before = integers(v, "num_prompt_tokens boundary_before_prompt")
    can_stop = boundary_can_stop_text(block, limit, shift)
    # Two whole blocks, or a block and what a chunk does not hold besides.
    is_wide = shift > block
    found = ite(is_wide, 2 * block, max_(limit, block) + 1)
    cacheable = ite(is_wide, block, 0)
    last_cached = ite(eq(prompt, before + block), before, before - block)
    return Formula(
        {_MODULES: shift >= 2, "block-not-empty": block >= 1},
        and_(
            implies(
                can_stop,
                and_(
                    boundary_splits_the_end(found, block, shift),
                    block < found,
                    found <= 2 * block,
                    or_(limit < found - cacheable, found - cacheable < shift),
                ),
            ),
            implies(
                and_(
                    boundary_splits_the_end(prompt, before, shift),
                    or_(limit < prompt - before + block, prompt - last_cached < shift),
                ),
                can_stop,
            ),
        ),
        and_(block >= 1, limit >= 1, before >= 0),
    )
