"""Requests that wait for each other: the passes that lint-config runs are those of the reference.

What it names is run there before it is named, so that a difference would be a false alarm.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from impl.targets.runs import ReferenceLoop
from proofs.settings.judge import Setup, judge
from proofs.settings.stuck.each_other import each_other
from proofs.settings.stuck.layouts import Layout, Place, Prompt, as_scenario
from proofs.settings.stuck.passes import stand_still
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import ReleaseRules, rules_of
from spec.rules.stop_settings import others_keep_out
from spec.verdict import Verdict
from tests.support.lint_grid import SWITCHES, stops

_SHARED = (
    ("shifted-cut",),
    ("deferred-free-margin",),
    ("deferred-free-margin", "shifted-cut"),
    ("reservation-after-cut",),
    ("whole-item-cut-short",),
    ("reservation-after-cut", "threshold-below-whole-item", "whole-item-cut-short"),
)
"""Switches under which requests can stop; the rules that each stands for are in the grid."""


def drawn(draw: random.Random, rules: ReleaseRules) -> tuple[Settings, Layout]:
    largest = draw.choice([1, 2, 3])
    shift = draw.choice([2, 3] if rules.reservation == "insisting" else [1, 1, 2, 3])
    cache = draw.randint(largest, 7)
    may_be_whole = rules.whole_cut_shift == rules.cut_shift or rules.cut_shift == 0
    whole = not rules.spares_start or (may_be_whole and draw.random() < 0.5)
    budget = draw.randint(max(largest, 1 + shift), 9)
    settings = Settings(
        budget,
        draw.choice([cache, draw.randint(largest, 7)]),
        cache,
        largest,
        largest,
        whole_items=whole,
        num_drafts=shift,
        shift=shift,
        threshold=draw.choice([0, 3, 4, 5]),
        max_num_seqs=draw.choice([None, None, 2]),
        prefix_hits=False,
    )
    requests = []
    for _ in range(draw.choice([2, 2, 3])):
        place, items = draw.randint(0, 3), list[Place]()
        for _ in range(draw.randint(0, 3)):
            place += draw.choice([0, 0, 0, 1, 2])
            items.append(Place(place, length := draw.randint(1, largest), length))
            place += length
        requests.append(Prompt(max(place, 1) + draw.choice([0, 0, 1]), tuple(items)))
    return settings, Layout(tuple(requests))


@pytest.mark.parametrize("names", _SHARED, ids="+".join)
def test_several_requests_stand_still_where_the_reference_does(names: tuple[str, ...]) -> None:
    """Wrong: a layout is named that goes on, or a stop of several requests is not seen."""
    rules, draw, stopped = SWITCHES[names], random.Random(str(names)), 0
    for _ in range(120):
        settings, layout = drawn(draw, rules)
        scenario = as_scenario(layout, settings)
        scenario.validate()
        expected = stops(ReferenceLoop(names), scenario)
        found = stand_still(layout, settings, rules)
        assert found == expected, (settings, layout)
        stopped += found
    assert 0 < stopped < 120


def test_where_nobody_waits_the_passes_end() -> None:
    """Wrong: an engine that goes on is said to stand still."""
    draw = random.Random(3)
    for _ in range(200):
        settings, layout = drawn(draw, ReleaseRules())
        fits = replace(settings, whole_items=False)
        assert not stand_still(layout, fits, ReleaseRules())


def keep_each_other_out(prompts: tuple[Prompt, ...], cache: int) -> bool:
    pairs = [prompt.items for prompt in prompts if len(prompt.items) == 2]
    held = sum(first.rows for first, _ in pairs)
    return len(pairs) == len(prompts) >= 2 and all(
        others_keep_out(first.rows, second.rows, held - first.rows, cache)
        and not others_keep_out(first.rows, second.rows, 0, cache)
        for first, second in pairs
    )


@pytest.mark.parametrize("release", ["0.23.0", "0.32.0", "0.33.0"])
def test_what_is_named_fulfils_the_condition(release: str) -> None:
    """Wrong: requests are said to wait for each other, and one of them could take its item."""
    rules, named = rules_of(release), 0
    shift = 3 if release == "0.33.0" else 1
    for cache, budget, threshold in itertools.product(range(5, 9), range(5, 10), (0, 4)):
        settings = Settings(
            budget, cache, cache, 3, 3, num_drafts=shift, shift=shift, threshold=threshold
        )
        for stop in judge(Setup(settings, rules, release)).stops:
            if stop.name != "requests-wait-for-each-other":
                continue
            named += 1
            prompts = stop.layout.prompts
            # The first may be one that is soon done, and only keeps room for a pass.
            assert any(keep_each_other_out(some, cache) for some in (prompts, prompts[1:]))
    assert named


def test_what_was_not_found_stays_open() -> None:
    """Wrong: where no layout was found, the settings would be called safe."""
    settings = Settings(9, 8, 8, 1, 1, num_drafts=1, shift=1)
    setup = Setup(settings, rules_of("0.32.0"), "0.32.0")
    assert list(each_other(settings, setup.rules)) == []
    judgement = judge(setup)
    assert judgement.verdict is Verdict.UNKNOWN
    (unknown,) = judgement.unknowns
    assert "Tried without a stop" in unknown.sentence
    two = replace(setup, settings=replace(settings, items_per_prompt=2))
    assert judge(two).verdict is Verdict.UNKNOWN
    three = replace(settings, cache_size=3, num_requests=3, items_per_prompt=2)
    assert judge(replace(setup, settings=three)).verdict is not Verdict.PROVED
    alone = replace(settings, max_num_seqs=1)
    assert judge(replace(setup, settings=alone)).verdict is Verdict.PROVED


def test_large_settings_are_judged_at_once() -> None:
    """Wrong: counts of an engine that people run would be walked through one by one."""
    rules = rules_of("0.32.0")
    settings = Settings(
        1 << 34, 9000, 9000, 4000, 4000, num_drafts=3, shift=1, threshold=1, longest_prompt=1 << 40
    )
    assert judge(Setup(settings, rules, "0.32.0")).verdict is not Verdict.PROVED


def test_an_item_where_a_chunk_ends_is_taken_with_it_from_0_28_on() -> None:
    """Wrong: a layout is named for older releases that goes on there: the real 0.25.0 runs it."""
    settings = Settings(5, 3, 3, 1, 1, num_drafts=1, shift=1, threshold=2, items_per_prompt=2)
    prompts = [
        Prompt(length, (Place(length - 2, 1, 1), Place(length - 1, 1, 1))) for length in (4, 4, 3)
    ]
    layout = Layout(tuple(prompts))
    stopped = {
        release: stand_still(layout, settings, rules_of(release))
        for release in ("0.25.0", "0.27.1", "0.28.0", "0.32.0")
    }
    assert stopped == {"0.25.0": False, "0.27.1": False, "0.28.0": True, "0.32.0": True}


TWICE = Layout(
    tuple(Prompt(6, (Place(0, 3, 3), Place(3, 3, 3))) for _ in range(2)),
)
"""Two requests of two items each, side by side."""


@pytest.mark.parametrize(
    ("names", "settings"),
    [
        (
            ("deferred-free-margin",),
            Settings(5, 8, 8, 3, 3, whole_items=True, threshold=4, max_num_seqs=2),
        ),
        (
            ("deferred-free-margin", "reservation-after-cut"),
            Settings(4, 8, 8, 3, 3, whole_items=True, num_drafts=2, shift=2),
        ),
    ],
    ids=["a threshold", "a reservation"],
)
def test_whole_items_that_are_taken_whole_are_not_split(
    names: tuple[str, ...], settings: Settings
) -> None:
    """Wrong: requests are named that the reference brings to an end; found on the grid."""
    rules = SWITCHES[names]
    settings = replace(settings, prefix_hits=False)
    assert not stops(ReferenceLoop(names), as_scenario(TWICE, settings))
    assert not stand_still(TWICE, settings, rules)
    assert stand_still(TWICE, settings, replace(rules, extends_items=False, splits_at_start=True))
    assert all(stop.layout != TWICE for stop in judge(Setup(settings, rules, None)).stops)
