"""Stuck states by a block boundary in what the reservation keeps together of a prompt's end."""

from __future__ import annotations

from collections.abc import Iterator

from proofs.settings.stuck.kinds import Stop, chunk_limits, reserves_at_boundaries
from proofs.settings.stuck.layouts import Layout, Place, Prompt, alone, side_by_side, twice
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import ReleaseRules
from spec.rules.stop_settings import boundary_can_stop_text, boundary_reach, reservation_can_stop

_MOST_OTHERS = 64
"""Requests beside one that stops; more are nothing that a person follows."""

THEOREMS = ("progress.boundary-stays", "progress.boundary-gets-there")


def boundaries(settings: Settings, rules: ReleaseRules) -> Iterator[Stop]:
    """Chunks that stop at a boundary close to a prompt's end, and are shortened to nothing."""
    if not reserves_at_boundaries(settings, rules):
        return
    block, shift = settings.block_alignment, rules.shifts(settings.shift).window
    if stops_elsewhere(settings, rules):
        return
    for is_alone, limit in chunk_limits(settings, rules):
        if boundary_can_stop_text(block, limit, shift):
            length = 2 * block if shift > block else max(limit, block) + 1
            if settings.allows(length, 0):
                yield Stop(
                    "reservation-against-alignment",
                    "a chunk that ends at a block close to the prompt's end is shortened, and the "
                    "next one is cut at that block again and shortened to nothing, text or not",
                    (*THEOREMS, "progress.boundary-is-exact"),
                    (alone if is_alone else twice)(length),
                    ("token_budget" if limit == settings.token_budget else "threshold", "shift"),
                )
                return
    layout = _beside_others(settings, rules)
    if layout is not None:
        yield Stop(
            "reservation-against-alignment",
            "others leave so much of a pass that a chunk ends at a block close to the prompt's "
            "end; the next one is cut at that block again and shortened to nothing, text or not",
            THEOREMS,
            layout,
            ("shift", "block_alignment"),
        )
        return
    layout = _cut_in_last_chunk(settings, rules)
    if layout is not None:
        yield Stop(
            "reservation-against-alignment",
            "a chunk that ends before a refused item in the prompt's last blocks is followed by "
            "one that is cut at a block and shortened to nothing",
            (*THEOREMS, "progress.rows-in-reach", "progress.near-the-end-is-attained"),
            layout,
            ("cache_size", "encoder_budget", "shift", "items_per_prompt"),
        )


def stops_elsewhere(settings: Settings, rules: ReleaseRules) -> bool:
    """Whether chunks stop at boundaries of which nothing is proved: blocks below the shift."""
    is_wide = 0 < settings.block_alignment < rules.shifts(settings.shift).window
    return is_wide and rules.hashes_ahead and settings.prefix_hits


def _beside_others(settings: Settings, rules: ReleaseRules) -> Layout | None:
    """Text that leaves one block of a pass to a request of one token more, if it may run beside.

    It takes all it needs in one chunk: a prompt below two blocks, or one whose chunk ends at the
    last boundary but one.
    """
    block, shift = settings.block_alignment, rules.shifts(settings.shift).window
    budget, most = settings.token_budget, settings.most_running
    if most == 1 or not settings.allows(block + 1, 0):
        return None
    spare = budget - block
    longest = block + min(block, shift) - 1
    if settings.threshold:
        longest = min(longest, settings.threshold)
        if spare > _MOST_OTHERS * longest:
            return None
        lengths = [longest] * (spare // longest) + ([spare % longest] if spare % longest else [])
        victim = block + 1
    elif spare <= longest:
        lengths, victim = [spare], block + 1
    else:
        # A chunk of whole blocks; what is left beside it may be a little more than a block.
        whole, rest = spare // block * block, spare % block
        fits_shift = rest <= shift - 2
        lengths = [whole + block] if fits_shift else [whole + block, rest]
        victim = block + 1 + (rest if fits_shift else 0)
    fits = most is None or len(lengths) < most
    if not fits or not all(settings.allows(length, 0) for length in (*lengths, victim)):
        return None
    return Layout(tuple(Prompt(length) for length in (*lengths, victim)))


def _cut_in_last_chunk(settings: Settings, rules: ReleaseRules) -> Layout | None:
    """Items that end a prompt, one row more than there is room for where its last chunk starts."""
    shifts = rules.shifts(settings.shift)
    rows, block = settings.largest_rows, settings.block_alignment
    if not rows:
        return None
    reach = boundary_reach(block, shifts.window, shifts.margin)
    layout = None
    if reservation_can_stop(settings.cache_size, rows, reach):
        layout = _at_the_end(settings, rules, settings.cache_size, shifts.margin)
    if layout is not None:
        return layout
    # Of the encoder's work only what the first chunk asks for counts: later ones find items taken.
    at_start = block + shifts.window - 1
    if at_start > settings.encoder_budget:
        layout = _at_the_end(settings, rules, settings.encoder_budget, at_start=True)
    if layout is not None or not settings.prefix_hits:
        return layout
    if reservation_can_stop(settings.encoder_budget, rows, at_start):
        return _at_the_end(settings, rules, settings.encoder_budget, behind_hit=True)
    return None


def _at_the_end(
    settings: Settings,
    rules: ReleaseRules,
    room: int,
    margin: int = 0,
    *,
    at_start: bool = False,
    behind_hit: bool = False,
) -> Layout | None:
    """Items with one row more than the room at the end of the shortest prompt that they stop."""
    block, rows = settings.block_alignment, settings.largest_rows
    shifts = rules.shifts(settings.shift)
    for length in range(max(room, block) + 1, room + 2 * block + 1):
        start = length - length % block - block
        if not 0 < length % block < shifts.window or (at_start and start):
            continue
        begin = length - room - 1
        if begin < 0:
            continue
        for last in range(1, min(rows, room) + 1):
            items = side_by_side(begin, room + 1 - last, rows)
            is_taken = items[0].end + margin > start
            is_cut = length - last - shifts.cut > start
            if is_taken and is_cut and settings.allows(length, len(items) + 1):
                item = Place(length - last, last, last)
                return alone(length, *items, item, prefix_hit=start if behind_hit else 0)
    return None
