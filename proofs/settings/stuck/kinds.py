"""What a stuck state of some settings is, and what a release's rules come to under them."""

from __future__ import annotations

from dataclasses import dataclass

from proofs.settings.stuck.layouts import Layout
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import ReleaseRules


@dataclass(frozen=True)
class Stop:
    """A stuck state that the settings allow.

    Attributes:
        theorems: ids of the theorems that say when.
        layout: the smallest requests that come to it.
        settings: names of the settings that decide it, the one to change first.
    """

    name: str
    sentence: str
    theorems: tuple[str, ...]
    layout: Layout
    settings: tuple[str, ...]


@dataclass(frozen=True)
class Unknown:
    """What the theorems do not settle for the settings.

    Attributes:
        assumption: the assumption that the settings break.
        sentence: why, and what would settle it.
    """

    assumption: str
    sentence: str


def chunk_limits(settings: Settings, rules: ReleaseRules) -> list[tuple[bool, int]]:
    """Most tokens of a chunk in a pass that nobody else uses: alone, and beside another request.

    The second only where it is another.
    """
    budget, threshold = settings.token_budget, settings.threshold
    beside = min(budget, threshold) if threshold else budget
    alone_ = budget if rules.spares_lone else beside
    limits = [(True, alone_)]
    if settings.can_repeat and beside != alone_:
        limits.append((False, beside))
    return limits


def longest_chunk(settings: Settings) -> int:
    """Most tokens of a chunk while another request is there."""
    return min(settings.token_budget, settings.threshold or settings.token_budget)


def runs_within_block(settings: Settings, rules: ReleaseRules) -> bool:
    """Whether a block exceeds a chunk, and chunks end inside it nevertheless."""
    return rules.runs_within_block and settings.block_alignment > longest_chunk(settings)


def block_after_cut(settings: Settings, rules: ReleaseRules) -> int:
    """The block to which a chunk is aligned after it was cut; 0 for none."""
    if not rules.aligns_after_cut or runs_within_block(settings, rules):
        return 0
    return settings.block_alignment


def reserves_at_boundaries(settings: Settings, rules: ReleaseRules) -> bool:
    """Whether a block boundary can lie in what the reservation keeps together of a prompt."""
    is_aligned = bool(settings.block_alignment) and rules.stops_at_boundaries
    return is_aligned and rules.insists(settings.shift)
