"""Where a chunk ends.

Counts are in tokens; ``start`` is a request's progress at the start of the pass, prefix hits
included, and ``num_tokens`` the chunk that would run.
"""

from __future__ import annotations

from spec.algebra import BoolTerm, IntTerm, and_, ite, max_, min_


def limited_by_threshold(num_tokens: IntTerm, threshold: IntTerm) -> IntTerm:
    """At most the threshold on long prefills; a threshold of 0 limits nothing."""
    return ite(and_(threshold > 0, threshold < num_tokens), threshold, num_tokens)


def aligned_chunk(
    start: IntTerm, num_tokens: IntTerm, last_boundary: IntTerm, num_known_tokens: IntTerm
) -> IntTerm:
    """Tokens up to a block boundary, unless the chunk ends the prefill; 0 below one block.

    Args:
        start: progress.
        num_tokens: the chunk that would run.
        last_boundary: the greatest multiple of the alignment that is at most
            ``start + num_tokens``; with an alignment of 1, their sum.
        num_known_tokens: prompt and generated tokens.
    """
    return ite(start + num_tokens >= num_known_tokens, num_tokens, max_(last_boundary - start, 0))


def refused_cut(
    offset: IntTerm, start: IntTerm, num_tokens: IntTerm, cut_shift: IntTerm
) -> IntTerm:
    """Tokens up to a feature that was refused; 0 inside it, after a prefix hit.

    Args:
        offset: first position of the feature.
        start: progress.
        num_tokens: the chunk that would run.
        cut_shift: how far before the feature the chunk ends. 0 in the reference and from 0.33.0
            on; the scheduler's shift in releases 0.14 to 0.32 (47738).
    """
    return min_(num_tokens, max_(offset - cut_shift - start, 0))


def splits_item(offset: IntTerm, end: IntTerm, start: IntTerm, num_tokens: IntTerm) -> BoolTerm:
    """Whether a chunk ends inside an item that it starts at or before (52306, 52412)."""
    return and_(start <= offset, offset < start + num_tokens, start + num_tokens < end)


def is_cut_off_whole(
    offset: IntTerm,
    end: IntTerm,
    start: IntTerm,
    num_tokens: IntTerm,
    window: IntTerm,
    spares_start: BoolTerm,
) -> BoolTerm:
    """Whether releases 0.17 to 0.33 cut a chunk off before a whole item.

    They do so as soon as the item lies in the window and the chunk does not reach its end, even
    where the chunk ends before it.

    Args:
        offset: first position of the item.
        end: the position after its last.
        start: progress.
        num_tokens: the chunk that would run.
        window: end of the window in which it asks for encoder inputs.
        spares_start: whether an item on which the chunk starts may be split: up to 0.32 (52306).
    """
    return and_(
        start + ite(spares_start, 1, 0) <= offset, offset < window, start + num_tokens < end
    )


def extends_over_item(
    offset: IntTerm, end: IntTerm, start: IntTerm, available_tokens: IntTerm
) -> BoolTerm:
    """Whether a chunk that starts on a whole item may run on to the item's end.

    Only the reference does so; releases up to 0.33.0 stop there if a threshold on long prefills is
    below the item's length.
    """
    return and_(offset <= start, end - start <= available_tokens)


def whole_item_cut(offset: IntTerm, start: IntTerm, cut_shift: IntTerm) -> IntTerm:
    """Tokens up to a whole item that would be split.

    Args:
        offset: first position of the item.
        start: progress.
        cut_shift: how far before the item the chunk ends: 0 in the reference; the scheduler's
            shift in releases 0.17 to 0.33.
    """
    return max_(offset - cut_shift - start, 0)


def is_last_chunk_too_short(
    start: IntTerm, num_tokens: IntTerm, num_known_tokens: IntTerm, shift: IntTerm
) -> BoolTerm:
    """Whether what a chunk leaves of the prefill is shorter than the shift, and not nothing.

    A drafter of several modules reads that many known tokens past a chunk's end.
    """
    left = num_known_tokens - start - num_tokens
    return and_(left > 0, left < shift)


def reserving_chunk(
    start: IntTerm, num_tokens: IntTerm, num_known_tokens: IntTerm, shift: IntTerm
) -> IntTerm:
    """The chunk's tokens such that ``shift`` of the prefill are left; may be 0 or less.

    Releases from 0.28.0 on reserve so with a shift above 1, and run nothing where it leaves none.
    """
    left = num_known_tokens - start - num_tokens
    return ite(
        is_last_chunk_too_short(start, num_tokens, num_known_tokens, shift),
        num_tokens - (shift - left),
        num_tokens,
    )


def reserved_chunk(num_tokens: IntTerm, reserving_tokens: IntTerm) -> IntTerm:
    """What the reference runs: the shorter chunk, unless that would run nothing."""
    return ite(reserving_tokens > 0, reserving_tokens, num_tokens)
