"""The runs that every cell of the matrix is tried on, the smallest first.

One request that has a synchronous engine for itself, and its drafts are rejected: what the guards
of the matrix decide happens while a prompt is computed. Two items side by side or with a gap, dense
or with a mask that starts with text, which fit the cache together or do not, and do not all fit the
encoder budget; prompts that end with the last item or later; chunks as short as the drafts allow,
and longer ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

from proofs.search.runs.reduce import size
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest

MAX_GAP = 4
"""Longest gap between two items (tokens): a margin of 1 and a cut shifted by 3 stop at less."""

MAX_TAIL = 4
"""Most prompt tokens after the last item: a shift of 3 reserves 2 at most."""

MAX_LEADING_TEXT = 4
"""Most positions without a row at the start of a masked item: a look-ahead of 3 reads past 3."""


def _features() -> Iterator[tuple[Feature, ...]]:
    for lead, text, tail_text in product((0, 1, 2), range(MAX_LEADING_TEXT + 1), (0, 1)):
        mask = (False,) * text + (True,) + (False,) * tail_text
        yield (Feature(lead, len(mask), "A", mask if len(mask) > 1 else None),)
    for first, gap, second in product((1, 2), range(MAX_GAP + 1), (1, 2)):
        yield (Feature(0, first, "A"), Feature(first + gap, second, "B"))
    for first, gap, text in product((1, 2), (0, 1), (1, 2)):
        mask = (False,) * text + (True,)
        yield (Feature(0, first, "A"), Feature(first + gap, len(mask), "B", mask))


@cache
def scope(scheduler_lookahead: int, gather_lookahead: int) -> tuple[Scenario, ...]:
    """All runs for a shift and a look-ahead (tokens), the smallest first."""
    drafts = max(scheduler_lookahead, gather_lookahead)
    found: dict[Scenario, None] = {}
    for features, tail in product(_features(), range(MAX_TAIL + 1)):
        prompt = features[-1].end + tail
        rows = [feature.num_rows for feature in features]
        sizes = sorted({max(rows), sum(rows)})
        longest = max(prompt, 1 + drafts)
        budgets = sorted({1 + drafts, min(2 + drafts, longest), longest})
        for cache_size, encoder_budget, budget in product(sizes, sizes, budgets):
            if encoder_budget > cache_size:
                continue
            config = EngineConfig(
                max_num_batched_tokens=budget,
                encoder_compute_budget=encoder_budget,
                encoder_cache_size=cache_size,
                num_kv_blocks=prompt + 2 + drafts,
                scheduler_lookahead=scheduler_lookahead,
                gather_lookahead=gather_lookahead,
                num_speculative_tokens=drafts,
            )
            found[Scenario(config, (ScenarioRequest(prompt, features),))] = None
    return tuple(sorted(found, key=size))
