"""One pass of a request that has the engine for itself, seen at the items that may stop it.

Projections of what ``schedule()`` and the update after it do, in a synchronous engine in which
nobody else runs and KV blocks are always there. Written over :mod:`spec.algebra` from the guards of
:mod:`spec.rules`, so that the solvers prove of them what
:mod:`spec.rules.stop_conditions` says. ``asked`` is the chunk before any item is looked at
(tokens): all that is left of the prompt, or less where a budget or a threshold says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from spec.algebra import BoolTerm, IntTerm, and_, ite, max_, not_, or_
from spec.rules.chunk_ends import is_cut_off_whole, refused_cut, reserving_chunk, whole_item_cut
from spec.rules.encoder_inputs import has_room, is_asked_for, window_end
from spec.rules.free import may_drop_reference
from spec.rules.releases import Shifts


@dataclass(frozen=True)
class Item:
    """A feature: its place (tokens) and the rows of its output."""

    offset: IntTerm
    length: IntTerm
    rows: IntTerm

    @property
    def end(self) -> IntTerm:
        """The position after the last."""
        return self.offset + self.length


@dataclass(frozen=True)
class Room:
    """What bounds encoder outputs (rows): the cache, and the encoder's work in one pass."""

    cache_size: IntTerm
    encoder_budget: IntTerm


@dataclass(frozen=True)
class PairState:
    """Where a request with two items stands between passes.

    Attributes:
        progress: tokens computed.
        holds_first: whether it holds a reference to its first item.
        holds_second: whether it holds one to its second.
    """

    progress: IntTerm
    holds_first: BoolTerm
    holds_second: BoolTerm


@dataclass(frozen=True)
class Boundaries:
    """Block boundaries, as far as a pass depends on them (positions in tokens).

    Attributes:
        before_start: the last at or before progress.
        after_start: the one after it.
        before_end: the last at or before the end of the chunk that would run.
        last_cacheable: the one before the prompt's last; 0 if there is none.
    """

    before_start: IntTerm
    after_start: IntTerm
    before_end: IntTerm
    last_cacheable: IntTerm


def is_still_held(item: Item, margin: IntTerm, progress: IntTerm) -> BoolTerm:
    """Whether *free* leaves the reference to an item, once it was taken."""
    return not_(may_drop_reference(item.offset, item.length, progress, 0, margin))


def is_refused(
    first: Item, second: Item, state: PairState, asked: IntTerm, room: Room, shifts: Shifts
) -> BoolTerm:
    """Whether the second of two items is asked for and finds no room beside the first."""
    window = window_end(state.progress, asked, shifts.window)
    takes_first = and_(
        not_(state.holds_first), is_asked_for(first.offset, first.end, state.progress, window)
    )
    chosen = ite(takes_first, first.rows, 0)
    freeable = room.cache_size - ite(state.holds_first, first.rows, 0)
    return and_(
        not_(state.holds_second),
        is_asked_for(second.offset, second.end, state.progress, window),
        not_(has_room(second.rows, room.encoder_budget - chosen, chosen, freeable)),
    )


def tokens_of_pair(
    first: Item, second: Item, state: PairState, asked: IntTerm, room: Room, shifts: Shifts
) -> IntTerm:
    """Tokens of the chunk, which ends before the second item where that is refused."""
    refused = is_refused(first, second, state, asked, room, shifts)
    return ite(refused, refused_cut(second.offset, state.progress, asked, shifts.cut), asked)


def pair_after(
    first: Item,
    second: Item,
    state: PairState,
    asked: IntTerm,
    tokens: IntTerm,
    room: Room,
    shifts: Shifts,
) -> PairState:
    """Where the request stands after a pass of so many tokens and its update.

    What was granted is taken only if the request runs; the first item fits the room by itself.
    """
    start = state.progress
    window = window_end(start, asked, shifts.window)
    progress = start + tokens

    def holds(item: Item, held: BoolTerm, granted: BoolTerm) -> BoolTerm:
        taken = or_(held, and_(tokens > 0, granted))
        return and_(taken, is_still_held(item, shifts.margin, progress))

    refused = is_refused(first, second, state, asked, room, shifts)
    asks_first = is_asked_for(first.offset, first.end, start, window)
    asks_second = is_asked_for(second.offset, second.end, start, window)
    return PairState(
        progress,
        holds(first, state.holds_first, asks_first),
        holds(second, state.holds_second, and_(asks_second, not_(refused))),
    )


def tokens_before_whole_item(
    offset: IntTerm,
    length: IntTerm,
    start: IntTerm,
    asked: IntTerm,
    window_shift: IntTerm,
    cut_shift: IntTerm,
    spares_start: BoolTerm,
) -> IntTerm:
    """Tokens of a chunk that may not split an item, as releases 0.17 to 0.33 choose them.

    Args:
        offset: first position of the item.
        length: its tokens.
        start: progress.
        asked: the chunk before the item is looked at.
        window_shift: how far past the chunk's end items are asked for.
        cut_shift: how far before the item the chunk ends.
        spares_start: whether an item on which the chunk starts may be split: up to 0.32.
    """
    window = window_end(start, asked, window_shift)
    is_cut = is_cut_off_whole(offset, offset + length, start, asked, window, spares_start)
    return ite(is_cut, whole_item_cut(offset, start, cut_shift), asked)


def tokens_after_reservation(
    start: IntTerm, tokens: IntTerm, num_known_tokens: IntTerm, shift: IntTerm
) -> IntTerm:
    """Tokens of a chunk after the reservation near the prefill's end, as 0.28 to 0.33 insist."""
    return max_(reserving_chunk(start, tokens, num_known_tokens, shift), 0)


def tokens_before_last_blocks(
    start: IntTerm, num_tokens: IntTerm, last_boundary: IntTerm, last_cacheable: IntTerm
) -> IntTerm:
    """Tokens of a chunk after alignment, as releases up to 0.25 align it: not in the last blocks.

    A chunk that ends before the last boundary whose state is cached ends at a block boundary, one
    that runs over it ends there, and behind it chunks end anywhere.

    Args:
        start: progress, a block boundary where it lies before ``last_cacheable``.
        num_tokens: the chunk that would run.
        last_boundary: the last block boundary at or before its end.
        last_cacheable: the last block boundary in the prompt; with a drafter that reads ahead the
            one before it.
    """
    end = start + num_tokens
    return ite(
        end < last_cacheable,
        max_(last_boundary - start, 0),
        ite(and_(start < last_cacheable, last_cacheable < end), last_cacheable - start, num_tokens),
    )


def end_at_boundary(
    start: IntTerm,
    end: IntTerm,
    num_prompt_tokens: IntTerm,
    boundaries: Boundaries,
    runs_within_block: BoolTerm,
) -> IntTerm:
    """Where a chunk ends after alignment, before any item is looked at: 0.28 to 0.33.

    Args:
        start: progress.
        end: where the chunk would end.
        num_prompt_tokens: length of the prompt.
        boundaries: the block boundaries that matter.
        runs_within_block: whether a block exceeds what a chunk may have, so that a chunk that
            reaches no boundary ends inside the block.
    """
    before = boundaries.before_end
    floored = ite(or_(before > start, not_(runs_within_block)), max_(before, start), end)
    aligned = ite(end < num_prompt_tokens, floored, end)
    is_inside = start > boundaries.before_start
    following = ite(
        and_(is_inside, boundaries.after_start < aligned), boundaries.after_start, aligned
    )
    cacheable = boundaries.last_cacheable
    return ite(and_(start < cacheable, cacheable < following), cacheable, following)
