"""Stuck states for want of room: items that do not fit, by themselves or beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from proofs.settings.stuck.kinds import Stop, block_after_cut
from proofs.settings.stuck.layouts import Layout, Place, alone, side_by_side
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import ReleaseRules
from spec.rules.stop_conditions import item_never_fits
from spec.rules.stop_settings import (
    budget_can_stop,
    neighbours_can_stop,
    reservation_can_stop,
    reserving_budget_can_stop,
)
from spec.rules.stopping_passes import Room


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


def neighbours(settings: Settings, rules: ReleaseRules) -> Iterator[Stop]:
    """Items close to each other that the cache does not hold together."""
    shifts = rules.shifts(settings.shift)
    rows, cache = settings.largest_rows, settings.cache_size
    block = block_after_cut(settings, rules)
    reach = shifts.reach + max(block - 1, 0)
    if not rows or not neighbours_can_stop(cache, rows, reach):
        return
    layout = _smallest_refused(settings, rules)
    if layout is None:
        return
    kind = "spared" if rules.spares_last_blocks else "aligned"
    name = f"progress.{kind}-neighbours" if block else "progress.neighbours"
    yield Stop(
        "neighbours-do-not-fit",
        "an item waits for the room of another one close before it, which is never finished or "
        "never let go",
        (
            f"{name}-stay",
            f"{name}-get-there",
            "progress.rows-in-reach",
            "progress.reach-is-attained",
        ),
        layout,
        ("cache_size", "release", "shift", "items_per_prompt", "block_alignment"),
    )


def _smallest_refused(settings: Settings, rules: ReleaseRules) -> Layout | None:
    """Items side by side with one row more than the cache; the last one waits for the first."""
    margin = rules.shifts(settings.shift).margin

    def waits(row: _Row) -> bool:
        return bool(row.first_end + margin > row.stop)

    row = _smallest_row(settings, rules, settings.cache_size, waits)
    return None if row is None else alone(row.num_tokens, *row.items(settings))


@dataclass(frozen=True)
class _Row:
    """Items side by side, of which the last one is refused.

    Attributes:
        lead: tokens before them.
        rows_before: rows of all but the last.
        last: rows of the last one.
        num_tokens: length of the prompt.
        first_end: where the first one ends.
        stop: where a chunk ends before the last one.
    """

    lead: int
    rows_before: int
    last: int
    num_tokens: int
    first_end: int
    stop: int

    def items(self, settings: Settings) -> tuple[Place, ...]:
        """The items, the largest first."""
        items = side_by_side(self.lead, self.rows_before, settings.largest_rows)
        return (*items, Place(self.lead + self.rows_before, self.last, self.last))


def _smallest_row(
    settings: Settings, rules: ReleaseRules, room: int, stops: Callable[[_Row], bool]
) -> _Row | None:
    """The shortest prompt whose items have one row more than the room and that stops."""
    rows, block = settings.largest_rows, block_after_cut(settings, rules)
    cut = rules.shifts(settings.shift).cut
    found: _Row | None = None
    # A place on a block boundary needs tokens before the items to come off it.
    for lead in range(max(block, 1)):
        length = lead + room + 1
        if found is not None and found.num_tokens <= length:
            break
        for last in range(min(rows, room), 0, -1):
            before = room + 1 - last
            if not settings.allows(length, 2 + (before - 1) // rows):
                break
            place = max(lead + before - cut, 0)
            for tokens in _lengths(settings, rules, length, place):
                end = lead + min(rows, before)
                stop = _aligned_stop(settings, rules, place, tokens)
                row = _Row(lead, before, last, tokens, end, stop)
                is_shorter = found is None or tokens < found.num_tokens
                if is_shorter and settings.allows(tokens, 0) and stops(row):
                    found = row
            if found is not None and found.num_tokens == length:
                break
    return found


def _lengths(settings: Settings, rules: ReleaseRules, least: int, place: int) -> tuple[int, ...]:
    """Lengths of a prompt that make a difference to a chunk cut at a place: the least, and longer.

    A release that spares a prompt's last blocks aligns the chunk only where more blocks follow.
    """
    block = block_after_cut(settings, rules)
    if not block or not rules.spares_last_blocks:
        return (least,)
    following = (place // block + 1) * block + _spared_blocks(settings, rules)
    return (least, following) if following > least else (least,)


def _spared_blocks(settings: Settings, rules: ReleaseRules) -> int:
    """Tokens before the last boundary that are not aligned either."""
    return settings.block_alignment if rules.shifts(settings.shift).window else 0


def _aligned_stop(settings: Settings, rules: ReleaseRules, place: int, num_tokens: int) -> int:
    """Where a chunk that is cut at a place ends in a prompt."""
    block = block_after_cut(settings, rules)
    if not block:
        return place
    if rules.spares_last_blocks:
        last = num_tokens - num_tokens % block - _spared_blocks(settings, rules)
        if place >= last:
            return place
    return place - place % block


def budget_at_start(settings: Settings, rules: ReleaseRules) -> Iterator[Stop]:
    """Items at a request's start that exceed the encoder budget; smaller than the cache, if any."""
    for starts_inside in (False, True)[: 1 + settings.prefix_hits]:
        if cut_exceeds_budget(settings, rules, starts_inside=starts_inside):
            layout = _at_start(settings, rules, starts_inside=starts_inside)
        elif reservation_exceeds_budget(settings, rules, starts_inside=starts_inside):
            shift = rules.shifts(settings.shift).window
            layout = _within_shift(settings, shift, starts_inside=starts_inside)
        else:
            continue
        if layout is None:
            continue
        aligned = "aligned-" if block_after_cut(settings, rules) else ""
        yield Stop(
            "encoder-budget-at-start",
            "the first chunk would end where it starts, because the encoder cannot take all items "
            "in one pass; nothing is taken, again and again",
            (
                f"progress.{aligned}budget-stays",
                f"progress.{aligned}budget-goes-on",
                "progress.rows-in-reach",
            ),
            layout,
            ("encoder_budget", "release", "shift", "items_per_prompt", "block_alignment"),
        )
        return


def _cut_with_block(settings: Settings, rules: ReleaseRules) -> int:
    """How far before a refused item a chunk ends at most, after alignment (tokens)."""
    cut = int(rules.shifts(settings.shift).cut)
    return cut + max(block_after_cut(settings, rules) - 1, 0)


def cut_exceeds_budget(settings: Settings, rules: ReleaseRules, *, starts_inside: bool) -> bool:
    """Whether items within a cut before a refused one can exceed the encoder budget with it.

    Args:
        starts_inside: whether a request may start inside an item.
    """
    rows, budget = settings.largest_rows, settings.encoder_budget
    cut = _cut_with_block(settings, rules)
    return bool(rows) and bool(budget_can_stop(budget, rows, cut, starts_inside))


def reservation_exceeds_budget(
    settings: Settings, rules: ReleaseRules, *, starts_inside: bool
) -> bool:
    """The same of items in what the reservation keeps together, where a cut goes back to none."""
    rows, budget = settings.largest_rows, settings.encoder_budget
    if not rows or rules.reservation != "insisting" or _cut_with_block(settings, rules):
        return False
    shift = rules.shifts(settings.shift).window
    return bool(reserving_budget_can_stop(budget, rows, shift, starts_inside))


def _at_start(settings: Settings, rules: ReleaseRules, *, starts_inside: bool) -> Layout | None:
    """Items side by side with one row more than the encoder budget, the last one cut to nothing."""

    def stops(row: _Row) -> bool:
        return row.stop == 0 or (starts_inside and row.stop < row.first_end)

    row = _smallest_row(settings, rules, settings.encoder_budget, stops)
    if row is None:
        return None
    return alone(row.num_tokens, *row.items(settings), prefix_hit=row.stop)


def _within_shift(settings: Settings, shift: int, *, starts_inside: bool) -> Layout | None:
    """Items side by side with one row more than the encoder budget, at a prompt's end."""
    rows, budget = settings.largest_rows, settings.encoder_budget
    first = min(budget, rows)
    items = (Place(0, first, first), *side_by_side(first, budget + 1 - first, rows))
    hit = max(budget + 1 - shift, 0) if starts_inside else 0
    if not settings.allows(budget + 1, len(items)):
        return None
    return alone(budget + 1, *items, prefix_hit=hit)


def reservation(settings: Settings, rules: ReleaseRules) -> Iterator[Stop]:
    """Such items near a prompt's end, where the reservation keeps one from being finished."""
    shifts = rules.shifts(settings.shift)
    rows, cache = settings.largest_rows, settings.cache_size
    if not rows or rules.reservation != "insisting" or shifts.reach:
        return
    if not reservation_can_stop(cache, rows, shifts.window):
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
