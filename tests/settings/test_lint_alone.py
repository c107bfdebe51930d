"""A request alone, under the rules of each release, against the verdict on its settings.

The passes here are written down once more, straight from what releases do, in plain integers and
without a rule of the project: of every small prompt, not of a few.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from proofs.settings.judge import Setup, judge
from proofs.settings.stuck.layouts import Place, Prompt
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import ReleaseRules, rules_of
from spec.verdict import Verdict

LONGEST = 12


class Passes:
    """One request's passes under a release's rules."""

    def __init__(self, settings: Settings, rules: ReleaseRules, prompt: Prompt) -> None:
        self.settings, self.rules, self.prompt = settings, rules, prompt
        largest = rules.largest_shift
        self.shift = settings.shift if largest is None else min(settings.shift, largest)
        self.margin = self.shift if rules.margin == "shift" else int(rules.margin)
        self.cut = self.shift if rules.cut_shift == "shift" else int(rules.cut_shift)
        self.longest = min(settings.token_budget, settings.threshold or settings.token_budget)
        block = settings.block_alignment or 1
        last = prompt.num_tokens - prompt.num_tokens % block
        self.last_cacheable = max(last - block, 0) if self.shift else last

    def aligned(self, start: int, end: int) -> int:
        """Where a chunk ends after alignment."""
        block = self.settings.block_alignment
        if not self.rules.runs_within_block:
            if end < self.last_cacheable:
                return start + (end - start) // block * block
            if start < self.last_cacheable < end:
                return self.last_cacheable
            return end
        if end < self.prompt.num_tokens:
            floor = end // block * block
            end = floor if floor > start or block <= self.longest else end
        stops = [self.last_cacheable]
        if start % block:
            stops.append((start // block + 1) * block)
        return max(min([stop for stop in stops if start < stop < end], default=end), start)

    def stops(self) -> bool:
        """Whether a pass comes that runs nothing."""
        settings, prompt = self.settings, self.prompt
        spares = self.rules.spares_lone or not settings.threshold
        limit = settings.token_budget if spares else self.longest
        start, held = prompt.prefix_hit, set[Place]()
        while start < prompt.num_tokens:
            end = min(start + limit, prompt.num_tokens)
            if settings.block_alignment and not self.rules.aligns_after_cut:
                end = self.aligned(start, end)
            end, taken = self.cut_at_items(start, end, held)
            if settings.block_alignment and self.rules.aligns_after_cut:
                end = self.aligned(start, end)
            left = prompt.num_tokens - end
            if self.rules.reservation == "insisting" and 0 < left < self.shift:
                end -= self.shift - left
            if end <= start:
                return True
            start = end
            held = {item for item in (*held, *taken) if item.end + self.margin > start}
        return False

    def cut_at_items(self, start: int, end: int, held: set[Place]) -> tuple[int, list[Place]]:
        """Where it ends before a refused item, and the items that it takes."""
        taken: list[Place] = []
        free = self.settings.cache_size - sum(item.rows for item in held)
        window = end + self.shift
        for item in self.prompt.items if end > start else ():
            if item.end <= start or item.offset >= window or item in held:
                continue
            chosen = sum(earlier.rows for earlier in taken)
            room = min(free, self.settings.encoder_budget)
            if item.rows + chosen > room:
                end = min(end, max(item.offset - self.cut, start))
                break
            taken.append(item)
        return end, taken


def prompts(settings: Settings) -> Iterator[Prompt]:
    """Every prompt that the settings allow."""
    sizes = range(1, settings.largest_item + 1)
    for count in range((settings.items_per_prompt or 0) + 1):
        for lengths in itertools.product(sizes, repeat=count):
            most = min(settings.longest_prompt or LONGEST, LONGEST)
            for total in range(max(sum(lengths), 1), most + 1):
                text = total - sum(lengths)
                for before in itertools.combinations_with_replacement(range(text + 1), count):
                    places, length = [], 0
                    for gap, size in zip(before, lengths, strict=True):
                        rows = min(size, settings.largest_rows)
                        places.append(Place(gap + length, size, rows))
                        length += size
                    yield Prompt(total, tuple(places))


def settings_of(draw: random.Random, rules: ReleaseRules, *, aligned: bool) -> Settings:
    largest = draw.choice([1, 2, 3])
    rows = draw.choice([largest, max(1, largest - 1)])
    shift = draw.choice([0, 1, 2, 2, 3])
    if rules.largest_shift is not None:
        shift = min(shift, rules.largest_shift)
    block = draw.randint(1, 5) if aligned else 0
    least = 1 + shift if rules.runs_within_block else max(block, 1 + shift)
    budget = draw.randint(least, 9)
    cache = draw.randint(rows, 7)
    return Settings(
        budget,
        draw.choice([cache, cache, draw.randint(rows, 7)]),
        cache,
        largest,
        rows,
        num_drafts=shift,
        shift=shift,
        threshold=draw.choice([0, 0, draw.randint(block or 1, 9)]),
        block_alignment=block,
        num_requests=1,
        items_per_prompt=draw.choice([1, 2, 2, 3]),
        longest_prompt=LONGEST,
        prefix_hits=False,
    )


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("release", ["0.23.0", "0.25.0", "0.27.1", "0.28.0", "0.32.0", "0.33.0"])
def test_verdict_is_what_every_small_prompt_shows(release: str, aligned: bool) -> None:
    """Wrong: a prompt stops that the verdict lets pass, or one is named that goes on."""
    rules, draw = rules_of(release), random.Random(f"{release} {aligned}")
    verdicts = []
    for _ in range(40):
        settings = settings_of(draw, rules, aligned=aligned)
        judgement = judge(Setup(settings, rules, release))
        verdicts.append(judgement.verdict)
        for stop in judgement.stops:
            (prompt,) = stop.layout.prompts
            assert Passes(settings, rules, prompt).stops(), (stop.name, settings)
        if judgement.verdict is Verdict.PROVED:
            found = (p for p in prompts(settings) if Passes(settings, rules, p).stops())
            assert next(found, None) is None, settings
    assert {Verdict.PROVED, Verdict.REFUTED} <= set(verdicts)
    assert Verdict.UNKNOWN not in verdicts


def test_the_rule_on_last_blocks_is_told_apart() -> None:
    """Wrong: both ways to align would pass the comparison above, and it would show nothing."""
    settings = Settings(8, 8, 3, 2, 2, block_alignment=8, num_requests=1, longest_prompt=7)
    verdicts = [
        judge(Setup(settings, rules_of(release), release)).verdict
        for release in ("0.25.0", "0.27.1")
    ]
    assert verdicts == [Verdict.PROVED, Verdict.REFUTED]
    prompt = Prompt(4, (Place(0, 2, 2), Place(2, 2, 2)))
    assert not Passes(settings, rules_of("0.25.0"), prompt).stops()
    assert Passes(settings, rules_of("0.27.1"), prompt).stops()


@pytest.mark.parametrize("release", ["0.28.0", "0.33.0"])
@pytest.mark.parametrize("block", [2, 3])
def test_the_room_for_items_in_the_last_blocks_is_exact(release: str, block: int) -> None:
    """Wrong: the cache that suffices is off by one row."""
    rules, verdicts = rules_of(release), []
    for cache in range(1, 8):
        settings = Settings(
            9,
            9,
            cache,
            1,
            1,
            num_drafts=2,
            shift=2,
            block_alignment=block,
            num_requests=1,
            items_per_prompt=7,
            longest_prompt=2 * block + 3,
            prefix_hits=False,
        )
        verdict = judge(Setup(settings, rules, release)).verdict
        found = any(Passes(settings, rules, prompt).stops() for prompt in prompts(settings))
        assert (verdict is Verdict.REFUTED) == found, cache
        verdicts.append(verdict)
    assert {Verdict.PROVED, Verdict.REFUTED} == set(verdicts)


def test_a_block_above_a_chunk_aligns_no_cut() -> None:
    """Wrong: a false alarm from 0.27 on, where chunks end inside such a block."""
    rules = rules_of("0.27.1")
    settings = Settings(
        4, 4, 3, 2, 2, block_alignment=6, num_requests=1, items_per_prompt=3, prefix_hits=False
    )
    assert judge(Setup(settings, rules, "0.27.1")).verdict is Verdict.PROVED
    assert not any(Passes(settings, rules, prompt).stops() for prompt in prompts(settings))
    wider = replace(settings, token_budget=6)
    assert judge(Setup(wider, rules, "0.27.1")).verdict is Verdict.REFUTED
