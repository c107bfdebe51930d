"""What the theorems leave open: settings that break an assumption of theirs."""

from __future__ import annotations

from collections.abc import Iterator

from proofs.settings.stuck.block_ends import stops_elsewhere
from proofs.settings.stuck.chunk_ends import least_beside_decode, pads
from proofs.settings.stuck.kinds import (
    Unknown,
    block_after_cut,
    reserves_at_boundaries,
)
from proofs.settings.stuck.room import cut_exceeds_budget, reservation_exceeds_budget
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import ReleaseRules
from spec.rules.stop_conditions import padded_decode_breaks
from spec.rules.stop_settings import requests_may_stop_each_other

OVERLAPPING = "synchronous-scheduling"
"""The assumption that engines break that schedule passes ahead."""


def unknowns(settings: Settings, rules: ReleaseRules) -> tuple[Unknown, ...]:
    """What the theorems leave open for settings under which no stuck state is known."""
    return (
        *_aligned_modules(settings, rules),
        *_shifts_apart(settings, rules),
        *_each_other(settings, rules),
        *_fewer_drafts(settings, rules),
        *_overlapping(settings, rules),
    )


def _overlapping(settings: Settings, rules: ReleaseRules) -> Iterator[Unknown]:
    """Passes that are scheduled before the update of an earlier one.

    An engine stands still only where nothing is in flight. Everything was updated then, so that a
    request holds what *free* leaves at its progress: a state that the theorems are about, however
    it was reached. What they say of such a state alone is therefore said of asynchronous engines,
    too. What follows here is what they say of the way to it.
    """
    if not settings.async_depth:
        return
    exceeds_budget = cut_exceeds_budget(
        settings, rules, starts_inside=True
    ) or reservation_exceeds_budget(settings, rules, starts_inside=True)
    reasons = []
    if reserves_at_boundaries(settings, rules):
        reasons.append(
            "a chunk may be cut before an item for whose room it need not wait once the pass in "
            "flight is updated, and then stops at a block close to the prompt's end"
        )
    if settings.items_per_prompt != 1 and exceeds_budget:
        reasons.append(
            "items may be asked for again, more of them than the encoder takes in a pass, after a "
            "chunk was cut for want of room that the pass in flight gives back"
        )
    if pads(settings, rules) and padded_decode_breaks(settings.num_drafts, settings.threshold):
        reasons.append(
            "a decode may run with fewer drafts while others are in flight, and leave another one "
            "room to be padded"
        )
    for reason in reasons:
        yield Unknown(
            OVERLAPPING,
            f"passes overlap with asynchronous scheduling, which is on unless "
            f"--no-async-scheduling is given: {reason}; the theorems say nothing of it",
        )


def _fewer_drafts(settings: Settings, rules: ReleaseRules) -> Iterator[Unknown]:
    """A padded decode that finds room only beside one with fewer drafts than the drafter makes.

    Of a decode at the longest request's end, or whose drafter proposed nothing, only the sampled
    token runs; where all drafts run, :func:`proofs.settings.stuck.chunk_ends.padded_decodes`
    judges.
    """
    drafts, threshold = settings.num_drafts, settings.threshold
    if not pads(settings, rules) or settings.most_running == 1:
        return
    least = 2 + drafts
    if padded_decode_breaks(drafts, threshold) and (
        least <= settings.token_budget < least_beside_decode(settings)
    ):
        yield Unknown(
            "drafts-always-proposed",
            f"a decode that runs fewer than its {drafts} drafts, because the drafter proposed none "
            "or the longest request ends, leaves another one room to be padded with drafts; the "
            "threshold on long prefills then cuts it, and an assertion stops the engine",
        )


def _aligned_modules(settings: Settings, rules: ReleaseRules) -> Iterator[Unknown]:
    """A reservation that insists and stops at block boundaries, and others that share a pass."""
    if not reserves_at_boundaries(settings, rules):
        return
    block, shift = settings.block_alignment, rules.shifts(settings.shift).window
    if stops_elsewhere(settings, rules):
        yield Unknown(
            "blocks-not-below-the-shift",
            f"blocks of {block} tokens are shorter than the drafter reads ahead; with prefix "
            "caching this release then stops at other boundaries, which were not looked at",
        )
    if settings.most_running != 1 and settings.allows(block + 1, 0):
        yield Unknown(
            "no-others-in-a-pass",
            "a request alone goes on, but where others leave it less of a pass than a block and "
            f"{shift - 1} tokens, it stops for ever at a block boundary near its prompt's end; "
            "no other requests of text were found that do so under these settings, and none "
            "are proved not to be there",
        )


def _shifts_apart(settings: Settings, rules: ReleaseRules) -> Iterator[Unknown]:
    """Cuts before whole items that end behind those before refused ones: in no release."""
    shifts = rules.shifts(settings.shift)
    if settings.whole_items and shifts.whole_cut < shifts.cut:
        yield Unknown(
            "cuts-shifted-alike",
            "a chunk ends closer to a whole item than to a refused one, which no release does; "
            "what is held between the two is not settled",
        )
    if rules.insists(settings.shift) and shifts.reach and shifts.cut < shifts.window:
        yield Unknown(
            "cut-shifted-as-far-as-reserved",
            "a chunk cut less than the shift before a refused item is shortened again near a "
            "prompt's end, and items are held past their end or the cut, which no release does; "
            "which prompts stop is not settled (three items of one token do, with a margin of 1, a "
            "cache of 2 rows and three modules)",
        )
    if settings.block_alignment and rules.aligns_after_cut and shifts.window >= 2:
        yield Unknown(
            "alignment-of-one-module",
            "chunks are aligned after the reservation for several modules, which no release does",
        )


def _each_other(settings: Settings, rules: ReleaseRules) -> Iterator[Unknown]:
    """Requests that hold room and wait for that of others."""
    shifts = rules.shifts(settings.shift)
    rows = settings.largest_rows
    few_items = settings.items_per_prompt is not None and settings.items_per_prompt < 2
    if not rows or few_items or settings.most_running == 1:
        return
    block = block_after_cut(settings, rules)
    reach = shifts.reach + max(block - 1, 0)
    if reach:
        held, refused = rows + reach - 1, rows
    elif rules.insists(settings.shift):
        held, refused = rows + shifts.window - 2, 1
    else:
        return
    if settings.items_per_prompt is not None:
        # One of its items is the one that it waits for.
        held = min(held, rows * (settings.items_per_prompt - 1))
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
        "interleave. Tried without a stop: prompts that end with two items side by side, one for "
        "each request, at once, in chunks that the threshold ends, and behind one that keeps room "
        "for a pass",
    )
