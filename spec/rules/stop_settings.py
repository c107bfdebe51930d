"""Whether any prompt can reach a stuck state, from an engine's settings alone.

Each says for which settings :mod:`spec.rules.stop_conditions` has a prompt; items of every size up
to the largest may come, in any place and number. Positions and lengths in tokens, sizes in rows; an
item has no more rows than tokens. Written over :mod:`spec.algebra`.
"""

from __future__ import annotations

from spec.algebra import BoolTerm, IntTerm, and_, ite, not_, or_


def most_rows_in_reach(largest_rows: IntTerm, reach: IntTerm) -> IntTerm:
    """Most rows of disjoint items that end in the last ``reach`` tokens before a position.

    The first of them may be as large as any; the others share what is left, one row a token at
    most (``progress.rows-in-reach``). The reach is at least 1.
    """
    return largest_rows + reach - 1


def neighbours_can_stop(cache_size: IntTerm, largest_rows: IntTerm, reach: IntTerm) -> BoolTerm:
    """Whether items that do not fit together can stop their request.

    Args:
        cache_size: rows of the cache.
        largest_rows: rows of the largest item.
        reach: margin and shift of the cut together; with a block boundary after the cut, up to a
            block less one more.

    Theorems ``progress.rows-in-reach``, ``progress.reach-is-attained``.
    """
    return and_(reach >= 1, most_rows_in_reach(largest_rows, reach) + largest_rows > cache_size)


def reservation_can_stop(cache_size: IntTerm, largest_rows: IntTerm, shift: IntTerm) -> BoolTerm:
    """Whether the reservation near the prefill's end can keep an item from being finished.

    The refused item counts among those that end in the prompt's last shift. Theorems as for
    :func:`neighbours_can_stop`.
    """
    return and_(shift >= 2, most_rows_in_reach(largest_rows, shift) > cache_size)


def budget_can_stop(
    encoder_budget: IntTerm, largest_rows: IntTerm, cut_shift: IntTerm, starts_inside: BoolTerm
) -> BoolTerm:
    """Whether items that exceed the encoder budget together can stop a request where it starts.

    Args:
        encoder_budget: rows that the encoder computes in a pass.
        largest_rows: rows of the largest item.
        cut_shift: how far before a refused item a chunk ends.
        starts_inside: whether a request may start inside an item, after a prefix hit.

    Theorems as for :func:`neighbours_can_stop`; from a prompt's first token the items before the
    refused one have no more rows than tokens.
    """
    before = ite(starts_inside, most_rows_in_reach(largest_rows, cut_shift), cut_shift)
    return and_(cut_shift >= 1, before + largest_rows > encoder_budget)


def reserving_budget_can_stop(
    encoder_budget: IntTerm, largest_rows: IntTerm, shift: IntTerm, starts_inside: BoolTerm
) -> BoolTerm:
    """The same where the reservation leaves the first chunk empty: prompts within the shift."""
    rows = ite(starts_inside, most_rows_in_reach(largest_rows, shift), shift)
    return and_(shift >= 2, rows > encoder_budget)


def whole_items_can_stop(
    largest_item: IntTerm, chunk_limit: IntTerm, cut_shift: IntTerm, spares_start: BoolTerm
) -> BoolTerm:
    """Whether the largest item, with the cut's shift before it, can exceed a chunk.

    Arguments as in :func:`spec.rules.stop_conditions.whole_item_stops`, whose condition this is for
    an item that lies at least the shift from the start.
    """
    return and_(largest_item + cut_shift > chunk_limit, or_(cut_shift >= 1, not_(spares_start)))


def requests_may_stop_each_other(
    num_requests: IntTerm, held_at_most: IntTerm, refused_rows: IntTerm, cache_size: IntTerm
) -> BoolTerm:
    """Whether what stopped requests may hold can keep the next one's item out.

    Without it they cannot (``progress.others-leave-room``); with it, it depends on how their passes
    interleave.

    Args:
        num_requests: requests that run at once.
        held_at_most: rows that a stopped request may hold, at most.
        refused_rows: rows of the item that it waits for, at most.
        cache_size: rows of the cache.
    """
    return num_requests * held_at_most + refused_rows > cache_size


def boundary_can_stop_text(block_size: IntTerm, chunk_limit: IntTerm, shift: IntTerm) -> BoolTerm:
    """Whether a block boundary near the prompt's end can stop text under the reservation.

    It can unless a chunk holds a block and what the reservation keeps together of the next one; and
    where the shift exceeds a block, always. Theorems ``progress.boundary-stays``,
    ``progress.boundary-gets-there``, ``progress.boundary-goes-on``,
    ``progress.boundary-is-exact``.

    Args:
        block_size: tokens of a block.
        chunk_limit: most tokens of a chunk.
        shift: how far the scheduler looks ahead, at least 2.
    """
    return or_(shift > block_size, chunk_limit < block_size + shift - 1)


def boundary_reach(block_size: IntTerm, shift: IntTerm, margin: IntTerm) -> IntTerm:
    """How close to a prompt's end an item must end to be held where the last chunk starts.

    The chunk starts at the last boundary but one. Where all items within this reach fit the cache,
    that chunk is not cut.
    """
    return block_size + shift - 1 + margin


def others_keep_out(
    held_rows: IntTerm, refused_rows: IntTerm, held_by_others: IntTerm, cache_size: IntTerm
) -> BoolTerm:
    """Whether what others hold keeps a request's next item out, beside what it holds itself.

    Where that is so of each of several requests, none of which lets go, all of them stop. Theorems
    ``progress.each-other-stay``, ``progress.each-other-near-the-end-stay``; whether they come to
    hold so much depends on how their passes interleave.
    """
    return held_rows + refused_rows + held_by_others > cache_size
