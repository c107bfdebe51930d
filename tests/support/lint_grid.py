"""A grid of small settings, the requests that try them, and what an engine does with those.

The same draws each time. A cell's probes are the smallest prompts that ``lint-config`` names, and
prompts and pairs of requests that it knows nothing of.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from impl.target import LoopTarget, Runner
from proofs.run.record import record
from proofs.settings.judge import Judgement, Setup, judge
from proofs.settings.stuck.layouts import Layout, Place, Prompt, as_scenario
from proofs.settings.stuck.settings import Settings
from spec.monitor.monitor import LoopMonitor
from spec.record.scenario import Scenario
from spec.rules.releases import ReleaseRules, rules_of

LONGEST = 10
"""Most tokens of a prompt; no cache here is larger than 8 rows."""

MAX_PASSES = 100
_RUNNERS: tuple[Runner, ...] = ("V2", "V1")
"""The newer first; an older release may have only the other."""

_STOPS = {"no-stall", "no-error"}
"""An engine that stands still, or that an assertion stops."""

SWITCHES: dict[tuple[str, ...], ReleaseRules] = {
    (): ReleaseRules(),
    ("shifted-cut",): ReleaseRules(cut_shift="shift"),
    ("deferred-free-margin",): ReleaseRules(margin=1),
    ("deferred-free-margin", "shifted-cut"): ReleaseRules(margin=1, cut_shift="shift"),
    ("whole-item-cut-short",): ReleaseRules(whole_cut_shift="shift"),
    ("threshold-below-whole-item",): ReleaseRules(extends_items=False),
    ("threshold-below-whole-item", "whole-item-cut-short"): ReleaseRules(
        whole_cut_shift="shift", extends_items=False
    ),
    ("reservation-after-cut",): ReleaseRules(reservation="insisting"),
    ("align-after-cut",): ReleaseRules(aligns_after_cut=True, largest_shift=1),
    ("align-after-cut", "shifted-cut"): ReleaseRules(
        aligns_after_cut=True, cut_shift="shift", largest_shift=1
    ),
    ("align-after-cut", "deferred-free-margin"): ReleaseRules(
        aligns_after_cut=True, margin=1, largest_shift=1
    ),
    ("reservation-after-cut", "threshold-below-whole-item", "whole-item-cut-short"): ReleaseRules(
        whole_cut_shift="shift", extends_items=False, reservation="insisting"
    ),
    ("deferred-free-margin", "reservation-after-cut"): ReleaseRules(
        margin=1, reservation="insisting"
    ),
    ("deferred-free-margin", "reservation-after-cut", "shifted-cut"): ReleaseRules(
        margin=1, cut_shift="shift", reservation="insisting"
    ),
    (
        "deferred-free-margin",
        "item-split-at-start",
        "reservation-after-cut",
        "shifted-cut",
        "whole-item-cut-short",
    ): ReleaseRules(
        margin=1,
        cut_shift="shift",
        whole_cut_shift="shift",
        splits_at_start=True,
        reservation="insisting",
    ),
}
"""Sets of switches over the reference, and the rules that it follows with them."""


@dataclass(frozen=True)
class Cell:
    """Settings under a release's rules, or those of the reference with switches."""

    settings: Settings
    rules: ReleaseRules
    release: str | None = None
    switches: tuple[str, ...] = ()

    def judged(self) -> Judgement:
        """What ``lint-config`` says."""
        return judge(Setup(self.settings, self.rules, self.release))


def reference_cells(seed: int, count: int) -> list[Cell]:
    """Cells of the reference, each set of switches as often as any other."""
    draw = random.Random(seed)
    cells = []
    for names in itertools.islice(itertools.cycle(SWITCHES), count):
        rules = SWITCHES[names]
        # Without its own shift before whole items, a release shifts no other cut.
        may_be_whole = rules.whole_cut_shift == rules.cut_shift or rules.cut_shift == 0
        settings = _settings(draw, rules, may_be_whole=may_be_whole, requests=(1, 1, 1, 2))
        cells.append(Cell(settings, rules, switches=names))
    return cells


def release_cells(release: str, seed: int, count: int) -> list[Cell]:
    """Cells of a release: those that tell releases apart, then so many others."""
    draw, rules = random.Random(seed), rules_of(release)
    drawn = [
        _settings(draw, rules, may_be_whole=True, requests=(1, 1, 2, None), has_drafter=True)
        for _ in range(count)
    ]
    return [Cell(settings, rules, release) for settings in (*telling_settings(rules), *drawn)]


def telling_settings(rules: ReleaseRules) -> tuple[Settings, ...]:
    """Settings under which a single rule decides, whatever the others are."""
    plain = Settings(
        token_budget=8,
        encoder_budget=8,
        cache_size=8,
        largest_item=2,
        largest_rows=2,
        num_requests=1,
        items_per_prompt=3,
        longest_prompt=LONGEST,
        prefix_hits=False,
    )
    eagle = replace(plain, num_drafts=1, shift=1)
    text = replace(plain, largest_item=1, largest_rows=1, num_requests=2)
    found = (
        # The cut's shift, and the margin: two items do not fit, or two and a single row.
        replace(eagle, cache_size=3),
        replace(eagle, cache_size=4),
        # The cut before a whole item, the item on which a chunk starts, and who is spared.
        replace(eagle, token_budget=2, whole_items=True),
        replace(plain, whole_items=True, threshold=1, num_requests=2),
        replace(eagle, whole_items=True, threshold=2),
        # Decodes that are padded, and chunks that are aligned after a cut.
        replace(text, threshold=1, num_drafts=1),
        replace(plain, block_alignment=8, cache_size=3),
        # Whether a prompt's last blocks are spared: no prompt here has another block behind them.
        replace(plain, block_alignment=8, cache_size=3, longest_prompt=7),
        replace(eagle, block_alignment=4, cache_size=5, longest_prompt=7),
        # Requests that wait for each other's room.
        replace(eagle, cache_size=5, threshold=4, num_requests=2, items_per_prompt=2),
        replace(eagle, cache_size=6, threshold=4, num_requests=2, items_per_prompt=2),
    )
    if rules.largest_shift is not None:
        return found
    modules = replace(plain, num_drafts=2, shift=2)
    more: tuple[Settings, ...] = (
        *found,
        replace(text, threshold=1, num_drafts=2, shift=2),
        replace(modules, cache_size=2),
        # A boundary near the prompt's end: alone, with items, and beside others.
        replace(modules, block_alignment=4, items_per_prompt=1),
        replace(modules, block_alignment=4, token_budget=4),
        replace(modules, block_alignment=4, cache_size=5),
        replace(modules, block_alignment=4, num_requests=2, items_per_prompt=1),
    )
    if not rules.asserts_padding:
        return more
    # A decode that is padded behind a prefix hit, while nobody else runs.
    return (*more, replace(text, threshold=1, num_drafts=1, num_requests=1, prefix_hits=True))


def _settings(
    draw: random.Random,
    rules: ReleaseRules,
    *,
    may_be_whole: bool,
    requests: tuple[int | None, ...],
    has_drafter: bool = False,
) -> Settings:
    largest = draw.choice([1, 2, 3, 4])
    rows = draw.choice([largest, largest, max(1, largest - 1)])
    cache = draw.randint(rows, 8)
    shift = draw.choice([0, 1, 1, 2, 3])
    if rules.largest_shift is not None:
        shift = min(shift, rules.largest_shift)
    drafts = shift or draw.choice([0, 1, 2]) if has_drafter else draw.choice([0, shift])
    # Of the reference it is a switch; a release's rules on whole items are to be seen as well.
    aligns = (rules.aligns_after_cut and not has_drafter) or draw.random() < 0.2
    # Only whole items tell rules apart that differ in how they are treated.
    whole = may_be_whole and not aligns and draw.random() < (0.5 if rules.spares_start else 0.8)
    budget = draw.randint(max(1 + drafts, largest if whole else 1), 9)
    block = draw.randint(1, budget) if aligns and not whole else 0
    threshold = draw.choice([0, draw.randint(1, 5)])
    return Settings(
        token_budget=budget,
        encoder_budget=draw.choice([cache, cache, draw.randint(rows, 8)]),
        cache_size=cache,
        largest_item=largest,
        largest_rows=rows,
        whole_items=whole,
        num_drafts=drafts,
        shift=shift,
        threshold=0 if threshold < block else threshold,
        block_alignment=block,
        num_requests=draw.choice(requests),
        max_num_seqs=draw.choice([None, None, 1, 2]),
        items_per_prompt=draw.choice([1, 2, 2, 3]),
        longest_prompt=LONGEST,
        prefix_hits=not block and draw.random() < 0.3,
    )


def small_prompts(settings: Settings) -> Iterator[Prompt]:
    """Text, and items of every size in every place, up to two tokens apart."""
    for length in range(1, 6):
        yield Prompt(length)
    sizes = [
        (length, min(length, settings.largest_rows))
        for length in range(1, settings.largest_item + 1)
    ]
    for count in range(1, (settings.items_per_prompt or 3) + 1):
        for chosen in itertools.product(sizes, repeat=count):
            for gaps in itertools.product(range(3), repeat=count + 1):
                place, items = 0, []
                for (length, rows), gap in zip(chosen, gaps, strict=False):
                    items.append(Place(place + gap, length, rows))
                    place = items[-1].end
                if settings.allows(place + gaps[-1], count):
                    yield Prompt(place + gaps[-1], tuple(items))


def probes(cell: Cell, seed: int, count: int) -> Iterator[Layout]:
    """Requests that try the cell: those that lint-config names, then as many others."""
    settings = cell.settings
    for stop in cell.judged().stops:
        yield stop.layout
    draw = random.Random(f"{seed} {settings}")
    prompts = list(small_prompts(settings))

    def prompt() -> Prompt:
        chosen = draw.choice(prompts)
        hit = draw.randrange(chosen.num_tokens)
        starts_inside = settings.prefix_hits and draw.random() < 0.5
        return replace(
            chosen, max_tokens=draw.choice([1, 1, 2, 3]), prefix_hit=hit if starts_inside else 0
        )

    for _ in range(count):
        if not settings.can_repeat or draw.random() < 0.3:
            yield Layout((prompt(),))
            continue
        number = settings.num_requests or draw.choice([2, 3])
        yield Layout(
            tuple(replace(prompt(), arrival=draw.choice([0, 0, 1, 2])) for _ in range(number))
        )


def stops(target: LoopTarget, scenario: Scenario) -> bool | None:
    """Whether the engine comes to stand still or breaks down; ``None`` if it cannot be asked."""
    runner = next((r for r in _RUNNERS if target.missing(scenario, r) is None), None)
    if runner is None:
        return None
    monitor = LoopMonitor(scenario, runner)
    recording = record(target, scenario, runner, monitor=monitor, max_passes=MAX_PASSES)
    assert recording.trace.ending != "limit"
    return any(finding.claim in _STOPS for finding in recording.findings)


def first_that_stops(
    target: LoopTarget, cell: Cell, seed: int, count: int
) -> tuple[Scenario | None, int]:
    """The first probe that stops the target, and how many were tried."""
    tried = 0
    for layout in probes(cell, seed, count):
        scenario = as_scenario(layout, cell.settings)
        scenario.validate()
        stopped = stops(target, scenario)
        tried += stopped is not None
        if stopped:
            return scenario, tried
    return None, tried
