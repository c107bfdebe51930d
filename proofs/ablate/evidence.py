"""What the model shows of a cell: the smallest run with a miss, and the smallest that stops.

A miss that raises ends a run, and what comes after it is never seen. Whether requests get to their
end is therefore asked of runs in which no miss ends anything. That changes no schedule, since
nothing of a gather's result is an input of scheduling; so one run answers for both kinds of
gather.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from proofs.ablate.cells import Scheduling
from proofs.search.runs.reduce import size
from spec.errors import NoVerdictError
from spec.model.layout import Layout
from spec.model.run import ModelPass, run_layout
from spec.model.state import PassRecord, State
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest

MAX_PASSES = 200
"""A run of the scope ends or stands still in far fewer."""


@dataclass(frozen=True)
class Evidence:
    """What one choice of scheduling and a look-ahead showed in the scope.

    Attributes:
        interior: the smallest run in which a gather reads a missing feature that is not at the
            boundary; ``None`` where there is none.
        boundary: the smallest in which the drafter reads a missing feature at the boundary.
        stops: the smallest that stands still, or turns in a circle.
    """

    interior: Scenario | None
    boundary: Scenario | None
    stops: Scenario | None


class UnfinishedRunError(NoVerdictError):
    """A run neither ended nor came back to a state: the scope says nothing of progress."""


def evidence(scheduling: Scheduling, gather_lookahead: int) -> Evidence:
    """Try every run of the scope.

    Raises:
        UnfinishedRunError: a run took more passes than any should.
    """
    first: dict[str, Scenario] = {}
    for scenario in scope(scheduling.scheduler_lookahead, gather_lookahead):
        for name in _shown(scenario, scheduling):
            first.setdefault(name, scenario)
    return Evidence(first.get("interior"), first.get("boundary"), first.get("stops"))


def _shown(scenario: Scenario, scheduling: Scheduling) -> set[str]:
    rules = replace(scheduling.rules, tolerates_boundary=True, raises_interior=False)
    layout = Layout(scenario.config, scenario.requests, rules)
    shown: set[str] = set()
    seen: set[State] = set()
    for step in run_layout(scenario, layout):
        if not isinstance(step, ModelPass):
            continue
        if step.index > MAX_PASSES:
            raise UnfinishedRunError(f"{scenario} did not end in {MAX_PASSES} passes")
        shown.update(_misses(layout, step.record, step.state))
        if step.state in seen:
            return shown | {"stops"}
        seen.add(step.state)
    return shown


def _misses(layout: Layout, record: PassRecord, state: State) -> Iterator[str]:
    for request, start, num_tokens, *_ in record.scheduled:
        reads = layout.window_reads(request, start, num_tokens)
        if layout.hashes_of(reads.target | reads.interior) & ~state.worker:
            yield "interior"
        if layout.hashes_of(reads.boundary) & ~state.worker:
            yield "boundary"


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
    """All runs for a shift and a look-ahead (tokens), the smallest first.

    One request that has a synchronous engine for itself, and its drafts are rejected: what the
    guards of the matrix decide happens while a prompt is computed. Two items side by side or with a
    gap, dense or with a mask that starts with text, which fit the cache together or do not, and do
    not all fit the encoder budget; prompts that end with the last item or later; chunks as short as
    the drafts allow, and longer ones.
    """
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
