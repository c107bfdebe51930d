"""Which settings and which events drawn scenarios have."""

from __future__ import annotations

from random import Random

import pytest

from impl.targets.runs import ReferenceLoop
from proofs.describe.shape import has_derived_sizes
from proofs.run.record import record
from proofs.search.runs.build import build_scenario
from proofs.search.runs.choices import SeededChoices
from proofs.search.runs.draws import draw
from proofs.search.runs.frame import ALL_TRAITS, SMALL, Trait, draw_traits
from proofs.search.runs.reduce import reduce_scenario
from proofs.search.runs.results import LoopCheckSettings
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest

_DRAWS = 1000


@pytest.mark.parametrize(
    ("tokens", "cache", "encoder", "is_derived"),
    [(4, 4, 4, True), (4, 6, 6, True), (4, 3, 3, False), (4, 4, 6, False), (4, 6, 4, False)],
)
def test_sizes_that_a_vllm_derives(tokens: int, cache: int, encoder: int, is_derived: bool) -> None:
    """Wrong: a finding is told as one of vLLM that no command line leads to."""
    assert has_derived_sizes(EngineConfig(tokens, encoder, cache, 8)) is is_derived


def test_most_draws_have_sizes_that_a_vllm_derives() -> None:
    """Wrong: the search spends itself on engines that nobody runs, or never fills a cache."""
    drawn = [draw(LoopCheckSettings(), number).scenario for number in range(_DRAWS)]
    derived = [scenario for scenario in drawn if has_derived_sizes(scenario.config)]
    assert 0.6 < len(derived) / _DRAWS < 0.85
    tight = [
        scenario
        for scenario in derived
        if scenario.config.encoder_cache_size
        < sum({f.identifier: f.num_rows for r in scenario.requests for f in r.features}.values())
    ]
    assert len(tight) > _DRAWS / 8


def test_what_can_be_reached_is_preferred_to_what_is_smaller() -> None:
    """Wrong: a fault that a real server shows is reported with sizes that it cannot have."""
    scenario = Scenario(
        EngineConfig(8, 8, 4, 40),
        (ScenarioRequest(8, (Feature(0, 4, "A"), Feature(4, 4, "B"))),),
    )

    def has_two_items(candidate: Scenario) -> bool:
        features = candidate.requests[0].features
        rows = sum(feature.num_rows for feature in features)
        return len(features) == 2 and candidate.config.encoder_cache_size < rows

    smallest = reduce_scenario(scenario, has_two_items)
    assert has_derived_sizes(smallest.config)
    assert smallest.config.max_num_batched_tokens == smallest.config.encoder_cache_size == 1


@pytest.mark.parametrize(
    ("trait", "implied"),
    [
        ("crowds", {"usurpers", "priority", "few KV blocks"}),
        ("failing prefixes", {"prefix hits", "failed loads"}),
        ("aborts while paused", {"streaming", "aborts", "few sequences"}),
        ("late closes", {"streaming"}),
        ("last chunks", {"drafter", "wide shift", "few KV blocks"}),
    ],
)
def test_a_family_has_all_that_it_takes(trait: Trait, implied: set[Trait]) -> None:
    """Wrong: the family is drawn, and the place that it aims at is not reached."""
    for seed in range(50):
        traits = draw_traits(SeededChoices(Random(seed)), frozenset({trait}))
        assert trait in ALL_TRAITS
        assert {trait, *implied} <= traits


def test_loads_fail_inside_items_behind_a_prefix() -> None:
    """Wrong: raw data that is gone when a load fails over its item is never asked for again."""
    choices = SeededChoices(Random(0))
    drawn = [build_scenario(choices, SMALL) for _ in range(3 * _DRAWS)]
    first_loads = [
        request
        for scenario in drawn
        for request in scenario.requests
        if request.prefix_hits
        and any(
            f.offset <= load.num_computed_tokens < min(f.end, request.prefix_hits[0])
            for load in request.failed_loads
            for f in request.features
        )
    ]
    assert len(first_loads) > _DRAWS / 20
    for scenario in drawn:
        scenario.validate()


def test_misses_inside_a_range_are_drawn_as_real_releases_take_them() -> None:
    """Wrong: a runner that swallows such misses passes, since none ever happens."""
    settings = LoopCheckSettings()
    numbers = [n for n in range(400) if draw(settings, n).only == {"interior-miss-raises"}]
    met = 0
    for number in numbers:
        scenario = draw(settings, number).scenario
        config = scenario.config
        monitor = LoopMonitor(scenario, "V2")
        record(ReferenceLoop(), scenario, "V2", monitor=monitor)
        is_taken = (config.scheduler_lookahead, config.gather_lookahead) == (0, 1)
        met += is_taken and monitor.premises["interior-miss-raises"] > 0
    assert len(numbers) == 18
    assert met >= 8
