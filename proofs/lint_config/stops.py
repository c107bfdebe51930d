"""The stuck states that settings allow, each with its theorems and the smallest prompt."""

from __future__ import annotations

from proofs.lint_config.block_ends import boundaries
from proofs.lint_config.chunk_ends import padded_decodes, short_chunks, whole_items
from proofs.lint_config.each_other import each_other
from proofs.lint_config.kinds import Stop
from proofs.lint_config.releases import Rules
from proofs.lint_config.room import budget_at_start, neighbours, never_fits, reservation
from proofs.lint_config.settings import Settings


def stops(settings: Settings, rules: Rules) -> tuple[Stop, ...]:
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
