"""When a request can never go on: the exact condition of each stuck state.

Each is an equivalence: with the condition the engine reaches a state that no pass changes; without
it every pass of the request makes progress. Both directions are theorems of the group ``progress``,
for all integers; the passes are those of :mod:`spec.rules.stopping_passes`. Written over
:mod:`spec.algebra`; positions and lengths in tokens, sizes in rows.

They are about a request that has the engine for itself, in a synchronous engine, where budgets are
those of the configuration, KV blocks are always there, a prompt's items are sorted and disjoint,
and nothing but an item's own size keeps it from fitting (``everything-fits-alone``). Whether
requests can stop each other is in :func:`spec.rules.stop_settings.requests_may_stop_each_other`.
"""

from __future__ import annotations

from spec.algebra import BoolTerm, IntTerm, and_, ite, min_, not_, or_
from spec.rules.releases import Shifts
from spec.rules.stopping_passes import Item, Room


def item_never_fits(rows: IntTerm, room: Room) -> BoolTerm:
    """Whether an item is refused even by an empty book (``progress.item-never-fits``).

    The engines rule it out at start-up, by making both sizes at least the largest item.
    """
    return or_(rows > room.cache_size, rows > room.encoder_budget)


def neighbours_stop(first: Item, second: Item, cache_size: IntTerm, shifts: Shifts) -> BoolTerm:
    """Whether two items of a prompt that do not fit together stop their request.

    The second one waits for the room of the first, which is held until progress is the margin past
    its end; and progress ends the cut's shift before the second. Releases with a drafter: 0.14 to
    0.23 (margin 0, shift 1; 47738, 40707), 0.24 to 0.32 (margin and shift 1, or the number of
    modules; 46315); never in 0.33.0, where both are 0. Theorems
    ``progress.neighbours-stay``, ``progress.neighbours-get-there``, ``progress.neighbours-go-on``.
    """
    gap = second.offset - first.end
    return and_(first.rows + second.rows > cache_size, gap < shifts.margin + shifts.cut)


def neighbours_stop_at_start(
    first: Item, second: Item, start: IntTerm, encoder_budget: IntTerm, shifts: Shifts
) -> BoolTerm:
    """Whether two items that the encoder cannot take in one pass stop their request at its start.

    Where the chunk would end at its start, nothing is taken, and the next pass asks for both again.
    Releases with a drafter, 0.14 to 0.32, if the encoder budget is less than the cache. Theorems
    ``progress.budget-stays`` and ``progress.budget-goes-on``.
    """
    return and_(
        first.rows + second.rows > encoder_budget,
        first.end > start,
        second.offset - shifts.cut <= start,
    )


def aligned_neighbours_stop(
    first: Item,
    second: Item,
    cache_size: IntTerm,
    last_boundary: IntTerm,
    shifts: Shifts,
) -> BoolTerm:
    """The same where a cut chunk is then cut at a block boundary (40707, 51603): 0.27.

    Args:
        first: the first item.
        second: the item behind it.
        cache_size: rows of the cache.
        last_boundary: the last block boundary at or before the cut before the second item.
        shifts: what the release adds.

    Theorems ``progress.aligned-neighbours-stay`` and ``progress.aligned-neighbours-go-on``.
    """
    return and_(first.rows + second.rows > cache_size, last_boundary < first.end + shifts.margin)


def spared_neighbours_stop(
    first: Item,
    second: Item,
    cache_size: IntTerm,
    last_boundary: IntTerm,
    last_cacheable: IntTerm,
    shifts: Shifts,
) -> BoolTerm:
    """The same where the prompt's last blocks are spared: up to 0.25.

    Args:
        first: the first item.
        second: the item behind it.
        cache_size: rows of the cache.
        last_boundary: the last block boundary at or before the cut before the second item.
        last_cacheable: the boundary from which on chunks end anywhere.
        shifts: what the release adds.

    Theorems ``progress.spared-neighbours-stay``, ``progress.spared-neighbours-get-there`` and
    ``progress.spared-neighbours-go-on``.
    """
    cut = second.offset - shifts.cut
    stop = ite(cut < last_cacheable, last_boundary, cut)
    return and_(first.rows + second.rows > cache_size, stop < first.end + shifts.margin)


def aligned_neighbours_exceed_budget(
    first: Item,
    second: Item,
    start: IntTerm,
    stop: IntTerm,
    encoder_budget: IntTerm,
    shifts: Shifts,
) -> BoolTerm:
    """Whether such a chunk keeps a request before two items that the encoder cannot take at once.

    At its start, or at a block boundary at which neither was asked for before.

    Args:
        first: the first item.
        second: the item behind it.
        start: where the request starts.
        stop: where a chunk ends that is cut before the second item and then aligned.
        encoder_budget: rows that the encoder computes in a pass.
        shifts: what the release adds.

    Theorems ``progress.aligned-budget-stays`` and ``progress.aligned-budget-goes-on``.
    """
    is_new = or_(stop <= start, first.offset >= stop + shifts.window)
    return and_(first.rows + second.rows > encoder_budget, first.end > start, is_new)


def neighbours_near_the_end_stop(
    first: Item,
    second: Item,
    cache_size: IntTerm,
    num_prompt_tokens: IntTerm,
    shift: IntTerm,
) -> BoolTerm:
    """Whether the reservation near the prefill's end keeps the first item from being finished.

    A chunk cut before the second item leaves less than the shift of the prompt, and is shortened to
    end the shift before the prompt's end, inside the first item. Releases 0.28 to 0.33 with a
    drafter of two modules or more, where the cut itself is not shifted: 0.33.0. Theorems
    ``progress.reservation-stays``, ``progress.reservation-gets-there``,
    ``progress.reservation-goes-on``.
    """
    last = num_prompt_tokens - shift
    return and_(first.rows + second.rows > cache_size, first.end > last, second.offset > last)


def chunks_below_shift_stop(
    num_tokens_left: IntTerm, chunk_limit: IntTerm, shift: IntTerm
) -> BoolTerm:
    """Whether chunks are too short for the reservation near the prefill's end, text or not.

    Releases 0.28 to 0.33 with a drafter of several modules and a threshold on long prefills below
    their number; from 0.31 on the threshold spares a request that is alone. Theorems
    ``progress.short-chunks-stay``, ``progress.short-chunks-get-there``,
    ``progress.short-chunks-go-on``.
    """
    return and_(chunk_limit < shift, chunk_limit < num_tokens_left)


def boundary_splits_the_end(
    num_prompt_tokens: IntTerm, last_boundary: IntTerm, shift: IntTerm
) -> BoolTerm:
    """Whether a block boundary lies inside what the reservation keeps together of a prompt.

    A chunk that stops at the boundary is shortened to end the shift before the prompt's end, from
    where the next one stops at the boundary again and is shortened to nothing: 0.28 to 0.33 with a
    drafter of two modules or more and chunks aligned to blocks. Only a chunk that starts at a
    boundary and runs to the prompt's end avoids it. Theorems ``progress.boundary-stays``,
    ``progress.boundary-gets-there``, ``progress.boundary-goes-on``.

    Args:
        num_prompt_tokens: length of the prompt.
        last_boundary: the last block boundary before its end.
        shift: how far the scheduler looks ahead.
    """
    return and_(last_boundary < num_prompt_tokens, num_prompt_tokens < last_boundary + shift)


def whole_item_stops(
    length: IntTerm,
    lead: IntTerm,
    chunk_limit: IntTerm,
    cut_shift: IntTerm,
    spares_start: BoolTerm,
) -> BoolTerm:
    """Whether an item that must not be split stops its request.

    Args:
        length: the item's tokens.
        lead: tokens before it, from where the request starts.
        chunk_limit: most tokens of a chunk: the token budget, or the threshold on long prefills
            where that applies.
        cut_shift: how far before the item the chunk ends: the scheduler's shift in 0.17 to 0.33.
        spares_start: whether an item on which the chunk starts may be split: up to 0.32.

    Theorems ``progress.whole-item-stays``, ``progress.whole-item-gets-there``,
    ``progress.whole-item-goes-on``.
    """
    distance = min_(lead, cut_shift)
    return and_(length + distance > chunk_limit, or_(distance > 0, not_(spares_start)))


def padded_decode_breaks(
    num_speculative_tokens: IntTerm, long_prefill_token_threshold: IntTerm
) -> BoolTerm:
    """Whether the threshold on long prefills cuts a decode that was padded with drafts.

    An assertion then stops the engine: 0.29 to 0.33. Releases from 0.25 on pad a waiting request
    that has one token left to compute while others decode; from 0.30 on also behind a prefix hit,
    where nobody decodes. From 0.31 on the threshold spares a request that is alone, so that it
    takes a second one. Theorem ``progress.padded-decode-breaks``.
    """
    return and_(
        long_prefill_token_threshold > 0, long_prefill_token_threshold <= num_speculative_tokens
    )
