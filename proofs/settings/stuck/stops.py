"""The stuck states that settings allow, each with its theorems and the smallest prompt."""

from __future__ import annotations

from proofs.settings.stuck.block_ends import boundaries
from proofs.settings.stuck.chunk_ends import padded_decodes, short_chunks, whole_items
from proofs.settings.stuck.each_other import each_other
from proofs.settings.stuck.kinds import Stop
from proofs.settings.stuck.room import budget_at_start, neighbours, never_fits, reservation
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import ReleaseRules


def stops(settings: Settings, rules: ReleaseRules) -> tuple[Stop, ...]:
    """All stuck states that the settings allow under the rules, the smallest first."""
    found = [
        *never_fits(settings),
        *neighbours(settings, rules),
        *budget_at_start(settings, rules),
        *whole_items(settings, rules),
        *reservation(settings, rules),
        *short_chunks(settings, rules),
        *boundaries(settings, rules),
        *padded_decodes(settings, rules),
    ]
    if not found:
        found = list(each_other(settings, rules))
    return tuple(sorted(found, key=lambda stop: stop.layout.size))
