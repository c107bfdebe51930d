"""What the theorems leave open: settings that break an assumption of theirs."""

from __future__ import annotations

from collections.abc import Iterator

from proofs.lint_config.kinds import Unknown, block_after_cut, leaves_last_blocks, shifted
from proofs.lint_config.releases import Rules
from proofs.lint_config.settings import Settings
from spec.stuck_settings import requests_may_stop_each_other


def unknowns(settings: Settings, rules: Rules) -> tuple[Unknown, ...]:
    """What the theorems leave open for settings under which no stuck state is known."""
    return (
        *_aligned_modules(settings, rules),
        *_aligned_beside_drafter(settings, rules),
        *_shifts_apart(settings, rules),
        *_each_other(settings, rules),
    )


def _aligned_modules(settings: Settings, rules: Rules) -> Iterator[Unknown]:
    """A reservation that insists, under a rule on block boundaries that is not modelled."""
    shift = shifted(settings, rules).shift
    if settings.block_alignment and shift >= 2 and rules.stops_at_boundaries and rules.reserves:
        yield Unknown(
            "alignment-of-one-module",
            "chunks that stop at block boundaries and the reservation for a drafter of several "
            "modules can undo each other near a prompt's end; which prompts stop is not settled "
            "(text of 9 in blocks of 8 does, with two modules and a token budget of 8)",
        )


def _aligned_beside_drafter(settings: Settings, rules: Rules) -> Iterator[Unknown]:
    if leaves_last_blocks(settings, rules):
        yield Unknown(
            "alignment-without-drafter",
            "with a drafter this release aligns chunks to blocks after they were cut, but not in a "
            "prompt's last blocks; which prompts stop by that is not settled",
        )


def _shifts_apart(settings: Settings, rules: Rules) -> Iterator[Unknown]:
    """Cuts before whole items that end behind those before refused ones: in no release."""
    sizes = shifted(settings, rules)
    if settings.whole_items and sizes.whole_cut < sizes.cut:
        yield Unknown(
            "cuts-shifted-alike",
            "a chunk ends closer to a whole item than to a refused one, which no release does; "
            "what is held between the two is not settled",
        )
    if rules.reserves and sizes.shift >= 2 and sizes.reach and sizes.cut < sizes.shift:
        yield Unknown(
            "cut-shifted-as-far-as-reserved",
            "a chunk cut less than the shift before a refused item is shortened again near a "
            "prompt's end, and items are held past their end or the cut, which no release does; "
            "which prompts stop is not settled (three items of one token do, with a margin of 1, a "
            "cache of 2 rows and three modules)",
        )
    if settings.block_alignment and rules.aligns_after_cut and sizes.shift >= 2:
        yield Unknown(
            "alignment-of-one-module",
            "chunks are aligned after the reservation for several modules, which no release does",
        )


def _each_other(settings: Settings, rules: Rules) -> Iterator[Unknown]:
    """Requests that hold room and wait for that of others."""
    sizes = shifted(settings, rules)
    rows = settings.largest_rows
    few_items = settings.items_per_prompt is not None and settings.items_per_prompt < 2
    if not rows or few_items or settings.most_running == 1:
        return
    block = block_after_cut(settings, rules)
    reach = sizes.reach + max(block - 1, 0)
    if reach:
        held, refused = rows + reach - 1, rows
    elif rules.reserves and sizes.shift >= 2:
        held, refused = rows + sizes.shift - 2, 1
    else:
        return
    requests = settings.most_running
    if requests is not None and not requests_may_stop_each_other(
        requests, held, refused, settings.cache_size
    ):
        if settings.by_priority and reach:
            yield Unknown(
                "first-come-first-served",
                "by priority, a request that waits may hold items besides those of the requests "
                "that run; only the order of arrival is settled",
            )
        return
    yield Unknown(
        "requests-do-not-wait-for-each-other",
        f"a request alone goes on, but one may hold up to {held} rows while it waits for room, and "
        f"{'any number of' if requests is None else requests} such requests may fill the cache of "
        f"{settings.cache_size} rows; whether they come to it depends on how their passes "
        "interleave",
    )
