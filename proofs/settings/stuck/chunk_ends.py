"""Stuck states by where chunks end: whole items, chunks too short, padded decodes."""

from __future__ import annotations

from collections.abc import Iterator

from proofs.settings.stuck.kinds import Stop, chunk_limits
from proofs.settings.stuck.layouts import Layout, Place, Prompt, alone, twice
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import ReleaseRules
from spec.rules.stop_conditions import padded_decode_breaks
from spec.rules.stop_settings import whole_items_can_stop


def whole_items(settings: Settings, rules: ReleaseRules) -> Iterator[Stop]:
    """An item that must not be split and exceeds a chunk."""
    if not settings.whole_items or not settings.largest_item:
        return
    cut = rules.shifts(settings.shift).whole_cut
    for is_alone, limit in chunk_limits(settings, rules):
        if not whole_items_can_stop(settings.largest_item, limit, cut, rules.spares_start):
            continue
        least_lead = 1 if rules.spares_start else 0
        length = min(settings.largest_item, limit + 1 - least_lead)
        lead = limit + 1 - length
        item = Place(lead, length, min(length, settings.largest_rows))
        if not settings.allows(lead + length, 1):
            continue
        at_threshold = limit < settings.token_budget
        yield Stop(
            "whole-item-exceeds-chunk",
            "an item that must not be split, with the tokens that a chunk ends before it, exceeds "
            + ("the threshold on long prefills" if at_threshold else "the token budget"),
            ("progress.whole-item-stays", "progress.whole-item-gets-there"),
            (alone if is_alone else twice)(lead + length, item),
            ("threshold" if at_threshold else "token_budget", "whole_items", "shift", "release"),
        )


def short_chunks(settings: Settings, rules: ReleaseRules) -> Iterator[Stop]:
    """Chunks shorter than what the reservation leaves of a prompt."""
    shift = rules.shifts(settings.shift).window
    if rules.reservation != "insisting":
        return
    for is_alone, limit in chunk_limits(settings, rules):
        if limit < shift and settings.allows(limit + 1, 0):
            yield Stop(
                "chunks-below-shift",
                "no chunk near a prompt's end is long enough for the reservation, text or not",
                ("progress.short-chunks-stay", "progress.short-chunks-are-exact"),
                (alone if is_alone else twice)(limit + 1),
                ("threshold" if limit < settings.token_budget else "token_budget", "shift"),
            )


def pads(settings: Settings, rules: ReleaseRules) -> bool:
    """Whether decodes are padded, and asserted to be; where chunks are aligned, that is dropped."""
    return rules.asserts_padding and bool(settings.num_drafts) and not settings.block_alignment


def padded_decodes(settings: Settings, rules: ReleaseRules) -> Iterator[Stop]:
    """A padded decode that the threshold on long prefills cuts."""
    drafts, threshold = settings.num_drafts, settings.threshold
    if not pads(settings, rules) or not padded_decode_breaks(drafts, threshold):
        return
    layout = _padded_beside(settings) or _padded_behind_hit(settings, rules)
    if layout is None:
        return
    yield Stop(
        "padded-decode-above-threshold",
        "a decode that was padded with drafts is cut by the threshold on long prefills, and an "
        "assertion stops the engine",
        ("progress.padded-decode-breaks",),
        layout,
        ("threshold", "num_drafts"),
    )


def least_beside_decode(settings: Settings) -> int:
    """Tokens of a pass that holds a decode with all drafts, or the threshold, and a padded one."""
    return min(settings.threshold, 1 + settings.num_drafts) + 1 + settings.num_drafts


def _padded_beside(settings: Settings) -> Layout | None:
    """A request of one token, padded since another one decodes with all its drafts."""
    is_small = settings.token_budget < least_beside_decode(settings)
    if settings.most_running == 1 or is_small:
        return None
    return Layout((Prompt(1, max_tokens=3), Prompt(1, max_tokens=3, arrival=1)))


def _padded_behind_hit(settings: Settings, rules: ReleaseRules) -> Layout | None:
    """A request that finds all but one token computed: padded though nobody else runs."""
    if not (rules.pads_behind_hits and settings.prefix_hits):
        return None
    may_be_cut = settings.can_repeat or not rules.spares_lone
    # It is padded only where its drafts and a sampled token fit the longest request.
    if not may_be_cut or not settings.allows(2 + settings.num_drafts, 0):
        return None
    prompt = Prompt(2, max_tokens=2 + settings.num_drafts, prefix_hit=1)
    return Layout((prompt,) * (2 if rules.spares_lone else 1))
