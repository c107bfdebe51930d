"""Why nothing stops under some settings: the theorems that the verdict rests on, each for a fact.

Each function takes one thing that could stop an engine, as :mod:`proofs.settings.stuck.stops` does,
and names the theorems by which it does not under these settings. Where the thing is not there at
all (no item, no threshold), it names none.
"""

from __future__ import annotations

from collections.abc import Iterator

from proofs.settings.stuck.chunk_ends import pads
from proofs.settings.stuck.kinds import (
    block_after_cut,
    reserves_at_boundaries,
)
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import ReleaseRules


def theorems(settings: Settings, rules: ReleaseRules) -> tuple[str, ...]:
    """Ids of the theorems by which no prompt stops, given that none does."""
    found = [
        "update-raises-progress",
        *_chunks(settings, rules),
        *_ends(settings, rules),
        *_padding(settings, rules),
    ]
    if settings.largest_rows:
        found += [
            *_items(settings, rules),
            *_budget(settings, rules),
            *_room_of_others(settings, rules),
        ]
    return tuple(f"progress.{name}" for name in dict.fromkeys(found))


def _chunks(settings: Settings, rules: ReleaseRules) -> Iterator[str]:
    """Why a chunk has a token before an item is looked at."""
    if settings.threshold:
        yield "limited-chunk-not-empty"
    if settings.block_alignment and not rules.aligns_after_cut:
        yield (
            "boundary-chunk-not-empty" if rules.stops_at_boundaries else "aligned-chunk-not-empty"
        )


def _ends(settings: Settings, rules: ReleaseRules) -> Iterator[str]:
    """Why a chunk still has one after it was shortened to leave an item or the prompt's end."""
    if settings.whole_items and settings.largest_item:
        yield from ("whole-item-goes-on", "whole-items-are-exact")
    if rules.insists(settings.shift):
        yield from ("short-chunks-go-on", "short-chunks-are-exact")
    if reserves_at_boundaries(settings, rules):
        yield from ("boundary-goes-on", "boundary-is-exact")


def _padding(settings: Settings, rules: ReleaseRules) -> Iterator[str]:
    if pads(settings, rules) and settings.threshold:
        yield "padded-decode-breaks"


def _items(settings: Settings, rules: ReleaseRules) -> Iterator[str]:
    """Why a request alone gets past its items."""
    shifts = rules.shifts(settings.shift)
    yield from ("item-never-fits", "cut-chunk-not-empty", "refused-at-progress-holds-nothing")
    if settings.items_per_prompt == 1:
        return
    block = block_after_cut(settings, rules)
    if block:
        kind = "spared" if rules.spares_last_blocks else "aligned"
        yield from (f"{kind}-neighbours-go-on", "rows-in-reach")
    elif shifts.reach:
        yield from ("neighbours-go-on", "rows-in-reach")
    if rules.insists(settings.shift):
        yield from ("reservation-goes-on", "rows-in-reach")
    if reserves_at_boundaries(settings, rules):
        yield "rows-in-reach"


def _budget(settings: Settings, rules: ReleaseRules) -> Iterator[str]:
    """Why it gets past those that the encoder cannot take in one pass."""
    is_small = settings.encoder_budget < settings.cache_size
    if is_small and settings.items_per_prompt != 1 and _holds_back(settings, rules):
        yield ("aligned-" if block_after_cut(settings, rules) else "") + "budget-goes-on"


def _holds_back(settings: Settings, rules: ReleaseRules) -> bool:
    """Whether a refused item can keep a chunk from reaching it."""
    shifts = rules.shifts(settings.shift)
    insists = rules.insists(settings.shift)
    return bool(shifts.reach or block_after_cut(settings, rules) or insists)


def _room_of_others(settings: Settings, rules: ReleaseRules) -> Iterator[str]:
    """Why requests do not keep room from each other for ever."""
    if settings.most_running == 1:
        return
    if _holds_back(settings, rules) and settings.items_per_prompt != 1:
        yield "others-leave-room"
    else:
        yield from ("refused-at-progress-holds-nothing", "first-of-the-refused-has-room")
