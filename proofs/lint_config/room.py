"""Stuck states for want of room: items that do not fit, by themselves or beside each other."""

from __future__ import annotations

from collections.abc import Iterator

from proofs.lint_config.kinds import Shifted, Stop, block_after_cut, shifted
from proofs.lint_config.layouts import Layout, Place, alone, side_by_side
from proofs.lint_config.releases import Rules
from proofs.lint_config.settings import Settings
from spec.stuck import item_never_fits
from spec.stuck_passes import Room
from spec.stuck_settings import (
    budget_can_stop,
    neighbours_can_stop,
    reservation_can_stop,
    reserving_budget_can_stop,
)


def never_fits(settings: Settings) -> Iterator[Stop]:
    """An item that an empty engine refuses."""
    room = Room(settings.cache_size, settings.encoder_budget)
    rows, length = settings.largest_rows, settings.largest_item
    splits = settings.whole_items and length > settings.token_budget
    if not (item_never_fits(rows, room) or splits):
        return
    yield Stop(
        "item-never-fits",
        "an item that exceeds the cache, the encoder budget or, if it must not be split, the token "
        "budget is refused for ever",
        ("progress.item-never-fits",),
        alone(length, Place(0, length, rows)),
        ("cache_size", "encoder_budget", "token_budget", "largest_item"),
    )


def neighbours(settings: Settings, rules: Rules) -> Iterator[Stop]:
    """Items close to each other that the cache does not hold together."""
    sizes = shifted(settings, rules)
    rows, cache = settings.largest_rows, settings.cache_size
    block = block_after_cut(settings, rules)
    reach = sizes.reach + max(block - 1, 0)
    if not rows or not neighbours_can_stop(cache, rows, reach):
        return
    layout = _smallest_refused(settings, sizes, block)
    if layout is None:
        return
    theorems = ("progress.neighbours-stay", "progress.neighbours-get-there")
    if block:
        theorems = ("progress.aligned-neighbours-stay", "progress.aligned-neighbours-get-there")
    yield Stop(
        "neighbours-do-not-fit",
        "an item waits for the room of another one close before it, which is never finished or "
        "never let go",
        (*theorems, "progress.rows-in-reach", "progress.reach-is-attained"),
        layout,
        ("cache_size", "release", "shift", "items_per_prompt", "block_alignment"),
    )


def _smallest_refused(settings: Settings, sizes: Shifted, block: int) -> Layout | None:
    """Items side by side with one row more than the cache; the last one waits for the first."""
    rows, cache = settings.largest_rows, settings.cache_size
    # A place on a block boundary needs tokens before the items to come off it.
    for lead in range(max(block, 1)):
        for last in range(rows, 0, -1):
            place = lead + cache + 1 - last
            items = side_by_side(lead, cache + 1 - last, rows)
            stop = max(place - sizes.cut, 0)
            if block:
                stop -= stop % block
            waits = items[0].end + sizes.margin > stop
            if waits and settings.allows(lead + cache + 1, len(items) + 1):
                return alone(lead + cache + 1, *items, Place(place, last, last))
    return None


def budget_at_start(settings: Settings, rules: Rules) -> Iterator[Stop]:
    """Items at a request's start that exceed the encoder budget; smaller than the cache, if any."""
    sizes = shifted(settings, rules)
    rows, budget = settings.largest_rows, settings.encoder_budget
    if not rows:
        return
    cut = sizes.cut + max(block_after_cut(settings, rules) - 1, 0)
    for starts_inside in (False, True)[: 1 + settings.prefix_hits]:
        if budget_can_stop(budget, rows, cut, starts_inside):
            layout = _at_start(settings, rules, starts_inside=starts_inside)
        elif (
            rules.reserves
            and not cut
            and reserving_budget_can_stop(budget, rows, sizes.shift, starts_inside)
        ):
            layout = _within_shift(settings, sizes.shift, starts_inside=starts_inside)
        else:
            continue
        if layout is None:
            continue
        yield Stop(
            "encoder-budget-at-start",
            "the first chunk would end where it starts, because the encoder cannot take all items "
            "in one pass; nothing is taken, again and again",
            ("progress.budget-stays", "progress.budget-goes-on", "progress.rows-in-reach"),
            layout,
            ("encoder_budget", "release", "shift", "items_per_prompt", "block_alignment"),
        )
        return


def _at_start(settings: Settings, rules: Rules, *, starts_inside: bool) -> Layout | None:
    """Items side by side with one row more than the encoder budget, the last one cut to nothing."""
    rows, budget = settings.largest_rows, settings.encoder_budget
    cut, block = shifted(settings, rules).cut, block_after_cut(settings, rules)
    for lead in range(max(block, 1)):
        for last in range(rows, 0, -1):
            place = lead + budget + 1 - last
            items = side_by_side(lead, budget + 1 - last, rows)
            stop = max(place - cut, 0)
            if block:
                stop -= stop % block
            if not items or not settings.allows(place + last, len(items) + 1):
                continue
            if stop == 0 or (starts_inside and stop < items[0].end):
                return alone(place + last, *items, Place(place, last, last), prefix_hit=stop)
    return None


def _within_shift(settings: Settings, shift: int, *, starts_inside: bool) -> Layout | None:
    """Items side by side with one row more than the encoder budget, at a prompt's end."""
    rows, budget = settings.largest_rows, settings.encoder_budget
    first = min(budget, rows)
    items = (Place(0, first, first), *side_by_side(first, budget + 1 - first, rows))
    hit = max(budget + 1 - shift, 0) if starts_inside else 0
    if not settings.allows(budget + 1, len(items)):
        return None
    return alone(budget + 1, *items, prefix_hit=hit)


def reservation(settings: Settings, rules: Rules) -> Iterator[Stop]:
    """Such items near a prompt's end, where the reservation keeps one from being finished."""
    sizes = shifted(settings, rules)
    rows, cache = settings.largest_rows, settings.cache_size
    if not rows or not rules.reserves or sizes.reach:
        return
    if not reservation_can_stop(cache, rows, sizes.shift):
        return
    first = min(rows, cache)
    items = (Place(0, first, first), *side_by_side(first, cache + 1 - first, rows))
    if settings.allows(cache + 1, len(items)):
        yield Stop(
            "reservation-after-cut",
            "a chunk that ends before a refused item close to the prompt's end is shortened again, "
            "so that the item before it is never finished",
            (
                "progress.reservation-stays",
                "progress.reservation-gets-there",
                "progress.near-the-end-is-attained",
            ),
            alone(cache + 1, *items),
            ("cache_size", "shift", "items_per_prompt"),
        )
