"""Which encoder inputs a chunk needs, and where it ends when one cannot be had."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from spec.model.working import Working
from spec.record.config import EngineConfig
from spec.rules import chunk_ends
from spec.rules.releases import in_tokens

limited_by_threshold = cache(chunk_ends.limited_by_threshold)
aligned_chunk = cache(chunk_ends.aligned_chunk)
refused_cut = cache(chunk_ends.refused_cut)
splits_item = cache(chunk_ends.splits_item)
extends_over_item = cache(chunk_ends.extends_over_item)
whole_item_cut = cache(chunk_ends.whole_item_cut)
reserving_chunk = cache(chunk_ends.reserving_chunk)
reserved_chunk = cache(chunk_ends.reserved_chunk)


class Chunk(NamedTuple):
    """What a request would run.

    Attributes:
        num_tokens: tokens of the chunk.
        inputs: occurrences to encode, in order.
        duplicates: further occurrences of what is encoded.
        rows: rows of the inputs.
        hits: occurrences found in the book.
        first_asked: the first occurrence asked for, or -1.
        refused: the occurrence refused, or -1.
    """

    num_tokens: int
    inputs: tuple[int, ...] = ()
    duplicates: tuple[int, ...] = ()
    rows: int = 0
    hits: int = 0
    first_asked: int = -1
    refused: int = -1


def choose_chunk(
    work: Working, request: int, start: int, wanted: int, tokens: int, encoder_rows: int
) -> Chunk:
    """What a request would run.

    Args:
        work: the state; the book takes references and makes room.
        request: the request.
        start: its progress, prefix hits included.
        wanted: tokens that it could run.
        tokens: token budget left.
        encoder_rows: encoder budget left.
    """
    layout = work.layout
    config = layout.config
    known_tokens = work.requests[request].known_tokens
    available = min(wanted, tokens)
    num_tokens = available
    if config.long_prefill_token_threshold:
        num_tokens = limited_by_threshold(wanted, config.long_prefill_token_threshold)
        num_tokens = min(num_tokens, available)
    alignment = config.block_alignment
    if alignment:
        num_tokens = _aligned(config, start, num_tokens, known_tokens)
        if num_tokens == 0:
            return Chunk(0)
    chunk = Chunk(num_tokens)
    if start < layout.last_end[request]:
        chunk = _ask(work, request, start, num_tokens, available, encoder_rows)
        num_tokens = chunk.num_tokens
    if num_tokens > 0 and config.scheduler_lookahead > 1 and known_tokens > start + num_tokens:
        num_tokens = _reserved(work, request, start, num_tokens, known_tokens)
    if alignment and work.rules.aligns_after_cut:
        num_tokens = _aligned(config, start, num_tokens, known_tokens)
    return chunk if num_tokens == chunk.num_tokens else chunk._replace(num_tokens=num_tokens)


def _aligned(config: EngineConfig, start: int, num_tokens: int, known_tokens: int) -> int:
    alignment, end = config.block_alignment, start + num_tokens
    aligned: int = aligned_chunk(start, num_tokens, end - end % alignment, known_tokens)
    if aligned == 0 and alignment > config.longest_chunk:
        return num_tokens
    return aligned


def _reserved(work: Working, request: int, start: int, num_tokens: int, known_tokens: int) -> int:
    layout = work.layout
    reservation = work.rules.reservation
    if reservation == "off":
        return num_tokens
    shift = layout.config.scheduler_lookahead
    shorter: int = reserving_chunk(start, num_tokens, known_tokens, shift)
    if reservation == "insisting":
        return max(shorter, 0)
    if shorter == num_tokens:
        return num_tokens
    if layout.config.whole_items:
        for occurrence in range(layout.first[request], layout.first[request + 1]):
            offset = layout.offset[occurrence]
            if splits_item(offset, layout.end[occurrence], start, shorter):
                shorter = whole_item_cut(offset, start, 0)
                break
    reserved: int = reserved_chunk(num_tokens, shorter)
    return reserved


def _ask(
    work: Working, request: int, start: int, num_tokens: int, available: int, encoder_rows: int
) -> Chunk:
    """Ask for every feature with a row in the window, in order, and cut where one is refused."""
    layout = work.layout
    rules = work.rules
    config = layout.config
    shift = config.scheduler_lookahead if rules.looks_ahead else 0
    offsets, ends, hash_of = layout.offset, layout.end, layout.hash_of
    last = layout.first[request + 1]
    inputs: list[int] = []
    duplicates: list[int] = []
    rows = hits = chosen = 0
    first_asked = refused = -1
    window = start + num_tokens + shift
    for occurrence in range(layout.first_after[request][start], last):
        offset = offsets[occurrence]
        if config.whole_items and _splits(work, occurrence, start, num_tokens):
            extended = rules.extends_items and extends_over_item(
                offset, ends[occurrence], start, available
            )
            if extended:
                num_tokens = ends[occurrence] - start
            else:
                cut_shift = in_tokens(rules.whole_cut_shift, shift)
                num_tokens = whole_item_cut(offset, start, cut_shift)
                break
        window = start + num_tokens + shift
        if offset >= window:
            break
        name = 1 << hash_of[occurrence]
        if chosen & name:
            duplicates.append(occurrence)
            continue
        if not _is_asked_for(work, occurrence, start, window):
            continue
        if first_asked < 0:
            first_asked = occurrence
        if work.hit(occurrence):
            hits |= 1 << occurrence
            continue
        if not work.make_room(occurrence, encoder_rows - rows, rows):
            num_tokens = _cut(work, offset, start, num_tokens)
            refused = occurrence
            break
        chosen |= name
        inputs.append(occurrence)
        rows += layout.rows[occurrence]
    else:
        occurrence = last
    if inputs and occurrence < last:
        window = start + num_tokens + shift
        _add_duplicates_behind_cut(work, occurrence, last, start, window, chosen, duplicates)
    return Chunk(num_tokens, tuple(inputs), tuple(duplicates), rows, hits, first_asked, refused)


def _splits(work: Working, occurrence: int, start: int, num_tokens: int) -> bool:
    layout = work.layout
    rules = work.rules
    offset = layout.offset[occurrence]
    if rules.whole_cut_shift:
        ahead = offset - start - num_tokens
        if 0 <= ahead < layout.config.scheduler_lookahead:
            return True
    if not splits_item(offset, layout.end[occurrence], start, num_tokens):
        return False
    if rules.splits_at_start and offset == start:
        return False
    return not (rules.splits_cached and work.hit(occurrence))


def _is_asked_for(work: Working, occurrence: int, start: int, window: int) -> bool:
    """Whether the window has a position that takes a row of the occurrence."""
    layout = work.layout
    if not layout.masked[occurrence] and work.rules.encodes_boundary:
        return True
    if not work.rules.encodes_boundary:
        window -= layout.config.scheduler_lookahead
        if layout.offset[occurrence] >= window:
            return False
        if not layout.masked[occurrence]:
            return True
    return layout.has_row_in(occurrence, start, window)


def _cut(work: Working, offset: int, start: int, num_tokens: int) -> int:
    """Where the chunk ends before a refused feature."""
    cut_shift = in_tokens(work.rules.cut_shift, work.layout.config.scheduler_lookahead)
    cut: int = refused_cut(offset, start, num_tokens, cut_shift)
    if work.rules.cuts_late:
        return min(num_tokens, max(offset - start, 0) + 1)
    return cut


def _add_duplicates_behind_cut(
    work: Working,
    cut: int,
    last: int,
    start: int,
    window: int,
    chosen: int,
    duplicates: list[int],
) -> None:
    """A feature at the cut is read from the entry of its hash, if that was chosen."""
    layout = work.layout
    for occurrence in range(cut, last):
        if layout.offset[occurrence] >= window:
            return
        if chosen >> layout.hash_of[occurrence] & 1:
            if occurrence not in duplicates:
                duplicates.append(occurrence)
        elif _is_asked_for(work, occurrence, start, window):
            return
