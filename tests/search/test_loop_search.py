"""Random search over whole runs: what is drawn, what it covers, and how findings come out small."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, find, given, settings

from impl.target import Runner
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from proofs.commands.main import main
from proofs.describe.scenarios import describe_scenario
from proofs.describe.shape import has_derived_sizes, shape, tags
from proofs.report.pages.reproduce import Links
from proofs.run.record import record
from proofs.search.runs.build import build_scenario
from proofs.search.runs.choices import SeededChoices
from proofs.search.runs.draws import draw
from proofs.search.runs.frame import LARGE, SMALL, Assumption
from proofs.search.runs.reduce import reduce_scenario, size
from proofs.search.runs.results import LoopCheckSettings
from proofs.search.runs.scenarios import FAMILIES, families, large_scenarios, scenarios
from proofs.search.runs.search import run_loop_check
from proofs.search.runs.search_text import print_loop_report
from proofs.search.two_phases import Limits
from spec.errors import InputError
from spec.record.config import EngineConfig
from spec.record.document import load
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import Step
from spec.verdict import Verdict
from tests.support.coverage import OUTCOMES, RELATIONS, coverage
from tests.support.nightly import sampled
from tests.support.results_files import read_results

_ASSUMPTIONS: tuple[Assumption, ...] = (
    "hash-is-content",
    "hash-has-one-row-count",
    "scheduler-looks-as-far",
)
_DRAWS = 1200
_FULL_CACHE = Scenario(
    EngineConfig(
        max_num_batched_tokens=4,
        encoder_compute_budget=8,
        encoder_cache_size=4,
        num_kv_blocks=14,
        scheduler_lookahead=1,
        gather_lookahead=1,
        num_speculative_tokens=1,
    ),
    (ScenarioRequest(9, (Feature(0, 4, "A"), Feature(4, 4, "B"))),),
)


@given(scenarios())
def test_drawn_scenarios_are_legal(scenario: Scenario) -> None:
    """An illegal draw would be refused, or would show a stall that the configuration asks for."""
    scenario.validate()
    assert scenario.content_is_hashed
    assert scenario.config.scheduler_lookahead >= scenario.config.gather_lookahead
    assert scenario.config.num_speculative_tokens >= scenario.config.scheduler_lookahead
    assert set(families(scenario)) <= set(FAMILIES)


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(large_scenarios())
def test_large_scenarios_are_legal(scenario: Scenario) -> None:
    """A large draw that is not legal would end the search with an error."""
    scenario.validate()


@pytest.mark.parametrize("broken", _ASSUMPTIONS)
def test_a_broken_assumption_is_broken_and_nothing_else(broken: Assumption) -> None:
    """Draws that break nothing would leave claims unchecked; illegal ones would break more."""
    choices = SeededChoices(Random(0))
    drawn = [build_scenario(choices, SMALL, frozenset({broken})) for _ in range(200)]
    for scenario in drawn:
        scenario.validate()
    breaking = [
        scenario.config.scheduler_lookahead < scenario.config.gather_lookahead
        if broken == "scheduler-looks-as-far"
        else not scenario.content_is_hashed
        for scenario in drawn
    ]
    assert sum(breaking) > 60


def test_large_scenarios_are_large() -> None:
    """Dozens of requests and prompts of thousands of tokens would not be tried."""
    choices = SeededChoices(Random(0))
    drawn = [build_scenario(choices, LARGE) for _ in range(10)]
    assert max(len(scenario.requests) for scenario in drawn) >= 36
    assert max(r.num_prompt_tokens for scenario in drawn for r in scenario.requests) >= 3000


def test_every_family_is_drawn_often() -> None:
    """A family that is hardly drawn would pass for want of runs."""
    check_settings = LoopCheckSettings()
    counts = Counter(
        family
        for number in range(_DRAWS)
        for family in families(draw(check_settings, number).scenario)
    )
    assert counts.pop("large") >= _DRAWS // 200
    rest = set(FAMILIES) - {"large"}
    assert {family: counts[family] for family in rest if counts[family] < _DRAWS // 40} == {}


def test_a_draw_depends_on_its_number_and_seed_alone() -> None:
    """A violation could not be drawn again."""
    check_settings = LoopCheckSettings(seed=3)
    assert draw(check_settings, 17) == draw(LoopCheckSettings(seed=3, examples=5), 17)
    assert draw(check_settings, 17) != draw(LoopCheckSettings(seed=4), 17)


def test_hypothesis_shrinks_a_scenario_to_what_it_needs() -> None:
    """A failing state-machine test would show a scenario nobody can read."""
    smallest = find(
        scenarios(),
        lambda scenario: any(len(request.features) > 1 for request in scenario.requests),
        settings=settings(database=None, derandomize=True, max_examples=500),
    )
    assert len(smallest.requests) == 1
    assert tags(smallest)[-1:] == ("two items",), describe_scenario(smallest)


_RARE = {
    "rejected for rows": 5,
    "notice withheld": 3,
    "cancelled": 4,
    "encoded for another request": 1,
}
"""Floors of what takes several traits at once; everything else must be seen 25 times."""

_CLOSES = ("close of a paused request", "close of another request")


@pytest.fixture(scope="module")
def covered() -> Counter[str]:
    target = ReferenceLoop()
    choices = SeededChoices(Random(11))
    counts: Counter[str] = Counter()
    for _ in range(_DRAWS):
        scenario = build_scenario(choices)
        counts += coverage(record(target, scenario, "V1", max_passes=500).trace)
    for _ in range(_DRAWS // 20):
        # Rows are compared by the book, and refused, only where a hash comes with two counts.
        scenario = build_scenario(choices, SMALL, frozenset({"hash-has-one-row-count"}))
        rejections = coverage(record(target, scenario, "V1", max_passes=500).trace)
        counts["rejected for rows"] += rejections["rejected for rows"]
    for _ in range(_DRAWS // 5):
        # A session is closed late only where that is asked for, as the search does.
        scenario = build_scenario(choices, SMALL, frozenset(), frozenset({"late closes"}))
        closes = coverage(record(target, scenario, "V1", max_passes=500).trace)
        counts.update({name: closes[name] for name in _CLOSES})
    return counts


@pytest.mark.parametrize("outcome", [*OUTCOMES, *RELATIONS])
def test_every_outcome_is_reached(covered: Counter[str], outcome: str) -> None:
    """A rule that the search no longer reaches would look right for ever."""
    assert covered[outcome] >= _RARE.get(outcome, 25)


def test_nothing_is_counted_that_is_not_listed(covered: Counter[str]) -> None:
    """A count without a floor could fall to nothing unseen."""
    assert set(covered) <= {*OUTCOMES, *RELATIONS}


def test_coverage_of_a_full_cache() -> None:
    """Counts that are wrong on a run told by hand would be wrong on all."""
    counts = coverage(record(ReferenceLoop(), _FULL_CACHE, "V1", max_passes=50).trace)
    assert counts["allocated"] == 2
    assert counts["refused for room"] == 1
    assert counts["evicted"] == 1
    assert counts["boundary item not resident"] == 1
    assert counts["item starts at the processed end"] == 1


def _needs_two_items_and_a_full_cache(scenario: Scenario) -> bool:
    rows = {f.identifier: f.num_rows for r in scenario.requests for f in r.all_features()}
    return len(rows) > 1 and scenario.config.encoder_cache_size < sum(rows.values())


def test_reduction_keeps_the_condition_and_drops_the_rest() -> None:
    """Counterexamples would carry what does not matter, or stop being counterexamples."""
    choices = SeededChoices(Random(5))
    drawn = (build_scenario(choices) for _ in range(400))
    large = [
        scenario
        for scenario in drawn
        if _needs_two_items_and_a_full_cache(scenario) and not scenario.config.is_encoder_decoder
    ]
    shapes = set()
    for scenario in large[:10]:
        smallest = reduce_scenario(scenario, _needs_two_items_and_a_full_cache)
        smallest.validate()
        assert _needs_two_items_and_a_full_cache(smallest)
        assert size(smallest) <= size(scenario)
        assert smallest == reduce_scenario(scenario, _needs_two_items_and_a_full_cache)
        assert {f.identifier for f in smallest.requests[0].features} == {"A", "B"}
        shapes.add(shape(smallest))
        assert has_derived_sizes(smallest.config)
    assert shapes == {"two items, cache below all items, encoder budget below all items"}


def test_reduction_stops_after_so_many_tries() -> None:
    """A slow target would be run without end."""
    asked: list[Scenario] = []

    def refuse(scenario: Scenario) -> bool:
        asked.append(scenario)
        return False

    assert reduce_scenario(_FULL_CACHE, refuse, max_tries=7) == _FULL_CACHE
    assert len(asked) == 7


def test_reduction_finds_nothing_smaller_twice() -> None:
    """A smallest scenario that can still be made smaller is not the smallest."""
    smallest = reduce_scenario(_FULL_CACHE, _needs_two_items_and_a_full_cache)
    assert reduce_scenario(smallest, _needs_two_items_and_a_full_cache) == smallest


def test_a_scenario_is_told_on_one_line() -> None:
    """People could not tell what a counterexample needs."""
    assert describe_scenario(_FULL_CACHE) == ("A[0,4) B[4,8) of 9; B=4, C=4, ks=1, kg=1, 1 draft")
    two = replace(
        _FULL_CACHE,
        requests=(
            *_FULL_CACHE.requests,
            ScenarioRequest(2, arrival=3, max_tokens=2, priority=1, abort=5),
        ),
        resets=(4,),
    )
    assert describe_scenario(two) == (
        "R0: A[0,4) B[4,8) of 9; R1: text of 2, generates 2, arrives at 3, priority 1, aborted at "
        "5; B=4, C=4, 14 KV blocks, ks=1, kg=1, 1 draft; cache reset before pass 4"
    )


def test_the_reference_is_clean() -> None:
    """The engine or the monitor is wrong."""
    report = run_loop_check(ReferenceLoop(), LoopCheckSettings(examples=300))
    violations = [
        f"{e.finding.claim}: {e.finding.mechanism}: {describe_scenario(e.trace.scenario)}"
        for e in report.counterexamples
    ]
    assert violations == []
    assert {result.verdict for result in report.results} == {Verdict.HELD}


def test_one_violation_hides_no_other() -> None:
    """Two faults at once would be found one after the other was mended only."""
    faults = ("no-boundary-tolerance", "finish-needs-references")
    claims = ("boundary-miss-tolerated", "no-error")
    report = run_loop_check(ReferenceLoop(faults), LoopCheckSettings(examples=200, claims=claims))
    assert {e.finding.claim for e in report.counterexamples} == set(claims)


def test_a_fault_has_one_fingerprint_whatever_the_seed() -> None:
    """The same fault would be told as a new one with each seed."""
    claims = ("boundary-miss-tolerated",)
    found = {
        e.finding.fingerprint
        for seed in sampled("seeds that find a fault", range(6), lambda seed: seed > 0)
        for e in run_loop_check(
            ReferenceLoop(["no-boundary-tolerance"]),
            LoopCheckSettings(claims=claims, examples=400, seed=seed),
        ).counterexamples
    }
    assert len(found) == 1


class _Failing:
    """A target that cannot finish a run."""

    name = "failing"

    def missing(self, scenario: Scenario, runner: Runner) -> str | None:
        return "no V2" if runner == "V2" else None

    def run(
        self, scenario: Scenario, runner: Runner, tensors: TensorSettings | None = None
    ) -> Iterator[Step]:
        raise ZeroDivisionError("on purpose")


def test_a_run_that_fails_is_an_error_and_a_missing_runner_has_no_verdict() -> None:
    """A target that never ran would pass."""
    report = run_loop_check(_Failing(), LoopCheckSettings(examples=3))
    by_runner = {
        part: {result.verdict for result in report.results if result.part == part}
        for part in ("V1", "V2", "V1 with V2")
    }
    assert by_runner == {"V1": {Verdict.ERROR}, "V2": {None}, "V1 with V2": {Verdict.ERROR}}
    assert len(report.failures) == 1
    assert "ZeroDivisionError: on purpose" in report.failures[0]


def test_a_search_that_is_stopped_says_so() -> None:
    """What was not run would count as held."""
    stop = iter([False, False, True])
    report = run_loop_check(
        ReferenceLoop(), LoopCheckSettings(examples=50), should_stop=lambda: next(stop)
    )
    assert report.interrupted
    assert report.num_scenarios == 2
    assert {result.verdict for result in report.results} == {Verdict.UNKNOWN}


@pytest.mark.parametrize(
    "wrong",
    [
        LoopCheckSettings(examples=0),
        LoopCheckSettings(minutes=0),
        LoopCheckSettings(claims=("window-exact",)),
        LoopCheckSettings(claims=("runners-agree",), runners=("V1",)),
    ],
)
def test_settings_that_ask_for_nothing_are_refused(wrong: LoopCheckSettings) -> None:
    """A check that does no work would pass."""
    with pytest.raises(InputError):
        wrong.validate()


def test_the_command_finds_a_fault_and_writes_its_run(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """The files of a finding could not be replayed."""
    options = "--level loop --device none --examples 60 --fault no-boundary-tolerance"
    result = CliRunner().invoke(
        main,
        ["check", *options.split(), "--json", str(tmp_path / "r.json"), "--report", str(tmp_path)],
    )
    assert result.exit_code == 1, result.output
    (target,) = read_results(tmp_path / "r.json", "check-runs")["targets"]
    (finding,) = target["violations"]
    assert finding["claim"] == "boundary-miss-tolerated"
    assert finding["fingerprint"] in result.output
    folder = tmp_path / f"{finding['claim']}-{finding['fingerprint']}"
    for kind in ("scenario", "trace"):
        document = load(folder / f"{kind}.json")
        assert [f.claim for f in document.findings] == [finding["claim"]]
    assert {path.name for path in folder.iterdir()} == set(Links().all)
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    for name in Links().all:
        assert f'href="{folder.name}/{name}"' in index


@pytest.mark.parametrize(
    "options",
    [
        "--level loop --minutes 1 --examples 5",
        "--minutes 1",
        "--level loop --device abacus",
    ],
)
def test_the_command_refuses_what_it_cannot_do(options: str) -> None:
    """A wrong option would be ignored."""
    result = CliRunner().invoke(main, ["check", *options.split()])
    assert result.exit_code == 2, result.output


class _Clock:
    """A clock that a run moves on by a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class _Slow(ReferenceLoop):
    """A target each run of which takes a second of a clock."""

    def __init__(self, clock: _Clock) -> None:
        super().__init__(["no-boundary-tolerance"])
        self._clock = clock

    def run(
        self, scenario: Scenario, runner: Runner, tensors: TensorSettings | None = None
    ) -> Iterator[Step]:
        self._clock.now += 1
        return super().run(scenario, runner, tensors)


def test_the_minutes_bound_making_small_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong: a search of two minutes prints nothing for ten, or hides what it left."""
    clock = _Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    report = run_loop_check(
        _Slow(clock),
        LoopCheckSettings(
            runners=("V1",), claims=("boundary-miss-tolerated",), examples=None, minutes=2
        ),
        began=clock(),
    )
    monkeypatch.undo()
    assert 80 <= report.num_scenarios <= 81
    assert 120 <= clock.now <= 121
    assert report.num_not_shrunk == len(report.counterexamples) == 1
    assert report.counterexamples[0].finding.shape == ""
    print_loop_report(report)
    output = capsys.readouterr().out
    assert "The minutes were over: 1 of 1 violation may have a smaller run." in output
    assert "needs: not shrunk" in output


def test_the_minutes_include_what_came_before_the_search() -> None:
    """Wrong: a release that takes a minute to start is searched for a minute longer."""
    report = run_loop_check(
        ReferenceLoop(),
        LoopCheckSettings(examples=None, minutes=1),
        began=time.monotonic() - 60,
    )
    assert report.num_scenarios == 0
    assert {result.verdict for result in report.results} == {Verdict.ERROR}


def test_a_search_without_a_violation_draws_to_the_end_of_its_minutes() -> None:
    """Wrong: a third of the time is kept for what there is not."""
    limits = Limits(None, 1, clock=iter([0.0, 59.0, 39.0, 41.0, 60.0]).__next__)
    assert limits.may_draw(7, has_found=False)
    assert limits.may_draw(7, has_found=True)
    assert not limits.may_draw(7, has_found=True)
    assert not limits.may_draw(7, has_found=False)
