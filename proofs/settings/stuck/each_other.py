"""Requests that hold room and wait for that of others: layouts that come to it.

A request that stands before an item that was refused holds the one before it. Two of them keep each
other waiting where what both hold and the smaller of the items that they wait for exceed the cache.
They come there in one of three ways: each has a chunk that takes the first item only, because a
threshold on long prefills ends it; or because the encoder cannot take both in one pass; or a
request that is soon done keeps room for a pass, so that the second items are refused. Every layout
is run before it is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proofs.settings.stuck.block_ends import stops_elsewhere
from proofs.settings.stuck.kinds import Stop, block_after_cut
from proofs.settings.stuck.layouts import Layout, Place, Prompt, side_by_side
from proofs.settings.stuck.passes import stand_still
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import ReleaseRules

_MOST_REQUESTS = 64
"""Requests of a layout; more are nothing that a person follows."""

_MOST_PASSES = 64
"""Passes until they stand still; likewise."""


def each_other(settings: Settings, rules: ReleaseRules) -> Iterator[Stop]:
    """Two requests or more of which each waits for the room of another."""
    shifts = rules.shifts(settings.shift)
    insists = rules.insists(settings.shift)
    if not settings.largest_rows or settings.most_running == 1 or settings.items_per_prompt == 1:
        return
    held = shifts.reach + max(block_after_cut(settings, rules) - 1, 0)
    if not (held or insists) or stops_elsewhere(settings, rules):
        return
    found = [
        layout
        for layout in _layouts(settings, rules)
        if _is_allowed(layout, settings) and stand_still(layout, settings, rules)
    ]
    if not found:
        return
    yield Stop(
        "requests-wait-for-each-other",
        "each request holds an item and waits for the room of another one, which waits as well",
        (f"progress.{'each-other' if held else 'each-other-near-the-end'}-stay",),
        min(found, key=lambda layout: layout.size),
        ("cache_size", "release", "shift", "items_per_prompt"),
    )


def _is_allowed(layout: Layout, settings: Settings) -> bool:
    count, most = len(layout.prompts), settings.most_running
    fits = most is None or count <= most
    return fits and all(
        settings.allows(prompt.num_tokens, len(prompt.items)) for prompt in layout.prompts
    )


def _layouts(settings: Settings, rules: ReleaseRules) -> Iterator[Layout]:
    # Text between the two, as much as may be.
    for gap in sorted({0, max(rules.shifts(settings.shift).reach - 1, 0)}):
        for second in _seconds(settings, rules):
            yield from _chunked(settings, rules, second, gap)
            yield from _at_once(settings, rules, second, gap)
            yield from _behind_another(settings, rules, second, gap)


def _seconds(settings: Settings, rules: ReleaseRules) -> list[int]:
    """Rows of the items that are waited for: at most what lies behind cut or reservation."""
    shifts = rules.shifts(settings.shift)
    is_cut_early = shifts.reach or block_after_cut(settings, rules)
    most = settings.largest_rows if is_cut_early else shifts.window - 1
    most = min(most, settings.largest_rows, settings.cache_size - 1)
    return sorted({*range(1, min(most, 4) + 1), most} - {0})


def _together(leads: Sequence[int], firsts: Sequence[int], second: int, gap: int) -> Layout:
    """Prompts that each end with two items; given are the tokens before, and the items' rows."""
    return Layout(
        tuple(
            Prompt(
                lead + first + gap + second,
                (Place(lead, first, first), Place(lead + first + gap, second, second)),
            )
            for lead, first in zip(leads, firsts, strict=False)
        )
    )


def _chunked(settings: Settings, rules: ReleaseRules, second: int, gap: int) -> Iterator[Layout]:
    """Chunks that end where the first item is asked for and the second is not yet."""
    threshold, shift = settings.threshold, rules.shifts(settings.shift).window
    sizes = _sizes(settings, second)
    if not threshold or not sizes:
        return
    whole = settings.token_budget // threshold
    chunks = [threshold] * min(whole, _MOST_REQUESTS)
    if settings.token_budget % threshold:
        chunks.append(settings.token_budget % threshold)
    if not 2 <= len(sizes) <= len(chunks):
        return
    for firsts in (sizes, sizes[::-1]):
        pairs = list(zip(firsts, chunks, strict=False))
        # As many passes as it takes until every first item fits into what its request has run.
        passes = max(1, *(-(-(first + gap - shift) // chunk) for first, chunk in pairs))
        if passes > _MOST_PASSES:
            return
        before = [passes * chunk + shift - first - gap for first, chunk in pairs]
        yield _together(before, firsts, second, gap)


def _sizes(settings: Settings, second: int) -> list[int]:
    """Rows that requests hold, so that what is left of the cache is too small by one row."""
    most = min(settings.largest_rows, settings.cache_size - second)
    rest = settings.cache_size + 1 - second
    sizes: list[int] = []
    while rest > 0 and most > 0 and len(sizes) < _MOST_REQUESTS:
        sizes.append(min(most, rest))
        rest -= sizes[-1]
    return sizes if rest <= 0 else []


def _leads(settings: Settings, rules: ReleaseRules) -> list[int]:
    """Tokens before a first item: a chunk that is cut back must leave one."""
    return sorted({0, 1, rules.shifts(settings.shift).window})


def _at_once(settings: Settings, rules: ReleaseRules, second: int, gap: int) -> Iterator[Layout]:
    """Prompts as short as can be, one pass after the other for all."""
    sizes = _sizes(settings, second)
    if len(sizes) < 2:
        return
    for lead in _leads(settings, rules):
        for firsts in (sizes, sizes[::-1]):
            yield _together([lead] * len(firsts), firsts, second, gap)


def _behind_another(
    settings: Settings, rules: ReleaseRules, second: int, gap: int
) -> Iterator[Layout]:
    """Two requests behind one that is done after a pass, and holds rows until then."""
    rows, cache = settings.largest_rows, settings.cache_size
    # The first of the two takes its item at once, or only when the other one has taken its own.
    most = min(rows, cache - second)
    pairs = {(most, max(1, cache + 1 - second - most))}
    pairs.update((first, cache - first) for first in (most, cache // 2 + 1))
    for first, third in sorted(pairs):
        if not (1 <= first <= rows and 1 <= third <= rows):
            continue
        least = cache + 1 - first - second
        for held in sorted({least, cache - first - third, cache - third}):
            if held < 1:
                continue
            keeper = Prompt(held, side_by_side(0, held, rows))
            for lead in _leads(settings, rules):
                pair = _together((lead, lead), (first, third), second, gap)
                yield Layout((keeper, *pair.prompts))
