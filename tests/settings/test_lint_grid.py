"""``lint-config`` says of small settings what engines do with them: no verdict is another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from impl.targets.runs import ReferenceLoop
from impl.vllm.launch.fetch import CI_RELEASES
from proofs.describe.scenarios import describe_scenario
from proofs.settings.judge import Setup, judge
from proofs.settings.stuck.layouts import as_scenario
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import RELEASES, ReleaseRules, rules_of
from spec.verdict import Verdict
from tests.recorders.record_lint_grid import disagrees, extent, observed_apart, recorded
from tests.support.lint_grid import (
    SWITCHES,
    first_that_stops,
    reference_cells,
    stops,
    telling_settings,
)
from tests.support.releases import require_release

SEED = 5
_CELLS = reference_cells(SEED, 26 * len(SWITCHES))
_PROBES = 60


@pytest.mark.parametrize("names", SWITCHES, ids=lambda names: "+".join(names) or "none")
def test_verdict_is_what_the_reference_does(names: tuple[str, ...]) -> None:
    """Wrong: settings are called safe that are not, or prompts are named that go on."""
    target = ReferenceLoop(names)
    verdicts = set()
    for cell in (cell for cell in _CELLS if cell.switches == names):
        judgement = cell.judged()
        verdicts.add(judgement.verdict)
        for stop in judgement.stops:
            scenario = as_scenario(stop.layout, cell.settings)
            scenario.validate()
            assert stops(target, scenario), (stop.name, cell.settings)
        if judgement.verdict is Verdict.PROVED:
            found, tried = first_that_stops(target, cell, SEED, _PROBES)
            assert found is None, (cell.settings, found)
            assert tried == _PROBES
    assert Verdict.PROVED in verdicts
    assert (Verdict.REFUTED in verdicts) == bool(names)


RECORDED = recorded()


def _judged(settings: dict[str, Any], rules: ReleaseRules) -> Verdict:
    return judge(Setup(Settings(**settings), rules, None)).verdict


@pytest.mark.parametrize("release", RELEASES)
def test_verdict_is_what_the_release_did(release: str) -> None:
    """Wrong: settings are called safe with which the release stopped, or the other way round."""
    cells = RECORDED[release]
    verdicts = [_judged(cell["settings"], rules_of(release)) for cell in cells]
    assert len(cells) == len(telling_settings(rules_of(release))) + extent(release)[0]
    wrong = [
        cell for verdict, cell in zip(verdicts, cells, strict=True) if disagrees(verdict, cell)
    ]
    assert wrong == []
    assert Verdict.PROVED in verdicts
    assert Verdict.REFUTED in verdicts
    # What is left open is the exception: more requests than were tried may wait for each other.
    assert verdicts.count(Verdict.UNKNOWN) <= 3


@pytest.mark.parametrize("release", RELEASES)
def test_the_prompt_that_is_named_is_what_stopped_the_release(release: str) -> None:
    """Wrong: settings are rightly called unsafe, by a prompt that goes on."""
    named = 0
    for cell in RECORDED[release]:
        settings = Settings(**cell["settings"])
        stops = judge(Setup(settings, rules_of(release), None)).stops
        if stops:
            scenario = as_scenario(stops[0].layout, settings)
            assert cell["stopped_by"] == describe_scenario(scenario), stops[0].name
            named += 1
    assert named >= 20


@pytest.mark.parametrize("release", RELEASES)
def test_rules_of_another_release_disagree_with_what_it_did(release: str) -> None:
    """Wrong: the row of a release in the table could be another one, and nobody would see."""
    # Whether a cached item may be split stops nobody, so that no grid can tell.
    apart = dict.fromkeys(replace(rules, splits_cached=False) for rules in RELEASES.values())
    for rules in apart:
        if rules == replace(rules_of(release), splits_cached=False):
            continue
        wrong = [c for c in RECORDED[release] if disagrees(_judged(c["settings"], rules), c)]
        assert wrong, rules


@pytest.mark.vllm
@pytest.mark.parametrize("release", CI_RELEASES)
def test_release_does_what_was_recorded_of_it(release: str) -> None:
    """Wrong: the record is of another program, and what it says of lint-config too."""
    require_release(release)
    drawn = 3
    seen = observed_apart(release, drawn, extent(release)[1])
    kept = RECORDED[release][: len(seen)]
    assert [c["settings"] for c in seen] == [c["settings"] for c in kept]
    assert [bool(c["stopped_by"]) for c in seen] == [bool(c["stopped_by"]) for c in kept]
    assert len(seen) == len(telling_settings(rules_of(release))) + drawn
