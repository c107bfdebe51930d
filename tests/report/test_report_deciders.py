"""What decides a violation, and where its edge lies: each line is a run, and says what it did."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from impl.faults.switches import FAULTS, fault
from impl.target import RUNNERS
from impl.targets.runs import ReferenceLoop
from proofs.report.near.deciders import Tried, deciders, neighbours
from proofs.report.near.neighbours import variations
from proofs.report.near.rerun import most_runs, reference_rerun, runners_for
from proofs.run.judge import run_and_judge
from proofs.search.runs.results import LoopCounterexample
from spec.record.scenario import Scenario
from tests.report.test_report_timeline import long_example
from tests.support.report_runs import SWITCHES, of_switch, violations
from tests.support.vllm_loop_faults import RECORDED

_SWITCH = re.compile(r"with the switch (\S+) instead")


def breaks(example: LoopCounterexample, scenario: Scenario, faults: tuple[str, ...]) -> bool:
    """Whether the claim is violated, asked in another way than the report does."""
    judged = run_and_judge(ReferenceLoop(faults), scenario, RUNNERS, None)
    claims = {f.claim for f in judged.findings[example.trace.runner]}
    return example.finding.claim in claims | {f.claim for f in judged.differences}


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_taken_back_decides_its_violations(switch: str) -> None:
    """A report on a switch that passes with the switch on, or fails without it, is wrong."""
    for example in of_switch(switch):
        if example.finding.claim not in fault(switch).breaks_in_loop:
            continue  # The scenario breaks an assumption, which no switch decides.
        first = deciders(example, (switch,))[0]
        assert first.what == f"the reference without the switch {switch}"
        assert first.outcome == "passes"
        assert reference_rerun(example, (switch,))([example.trace.scenario]) == [True]


@pytest.mark.parametrize("switch", ["shifted-cut", "encoder-decoder-credit", "own-size-free"])
def test_other_switches_say_what_they_did(switch: str) -> None:
    """A guard that is blamed without a run is a guess."""
    for example in of_switch(switch):
        scenario = example.trace.scenario
        accounts = deciders(example, (switch,))
        found = [_SWITCH.search(account.what) for account in accounts]
        named = {match[1] for match in found if match}
        can_break = {
            other.name
            for other in FAULTS
            if example.finding.claim in (*other.breaks_in_loop, *other.may_also_break)
        }
        for name in can_break - {switch}:
            is_broken = breaks(example, scenario, (name,))
            same = [other.name for other in FAULTS if other.apply is fault(name).apply]
            assert is_broken == bool(named & set(same)), name


def test_two_switches_together_explain_what_none_does_alone() -> None:
    """A release misses at the boundary where an item is not encoded, and where a gather raises."""
    scenario = next(
        record.scenario for record in RECORDED if record.name == "no-boundary-tolerance"
    )
    switches = ("no-boundary-tolerance", "boundary-never-encoded")
    (example,) = (
        example
        for example in violations(scenario, switches)
        if example.finding.claim == "boundary-miss-tolerated"
    )
    # As of a real engine, whose switches nobody knows.
    accounts = deciders(example, ())
    assert accounts[0] == Tried("the reference, all guards as they should be", "passes")
    pairs = [account for account in accounts if "with the switches" in account.what]
    assert any(switches[0] in account.what and switches[1] in account.what for account in pairs)
    assert {account.outcome for account in pairs} == {"breaks"}
    assert not any(_SWITCH.search(account.what) for account in accounts)


@pytest.mark.parametrize("switch", ["no-boundary-tolerance", "shifted-cut", "own-size-free"])
def test_the_edge_is_made_of_runs(switch: str) -> None:
    """A neighbour that is said to pass and does not hides the fault's reach."""
    for example in of_switch(switch):
        accounts = neighbours(example, reference_rerun(example, (switch,)))
        by_name = {
            near.what: near.scenario
            for distance in (1, 2, 3)
            for near in variations(example.trace.scenario, distance)
        }
        assert any(account.outcome == "passes" for account in accounts)
        for account in accounts:
            is_broken = breaks(example, by_name[account.what], (switch,))
            assert account.outcome == ("breaks" if is_broken else "passes"), account.what


def test_no_edge_is_said_not_to_be_found() -> None:
    """Silence would read as if every other scenario passed."""
    (example, *_) = of_switch("shifted-cut")
    (account,) = neighbours(example, lambda scenarios: [True] * len(scenarios))
    assert account.outcome == "breaks"
    assert account.note == "none of them passes"
    assert neighbours(example, lambda scenarios: [None] * len(scenarios)) == ()


def test_the_nearest_neighbour_that_passes_is_told() -> None:
    """One that lies further away would make the fault look larger than it is."""
    (example, *_) = of_switch("shifted-cut")
    scenario = example.trace.scenario
    second = {near.scenario for near in variations(scenario, 2)}
    accounts = neighbours(example, lambda asked: [candidate not in second for candidate in asked])
    passing = {account.what for account in accounts if account.outcome == "passes"}
    assert passing
    assert passing <= {near.what for near in variations(scenario, 2)}


def test_a_claim_on_both_runners_is_asked_of_both() -> None:
    """One runner alone can never disagree."""
    (example, *_) = of_switch("v2-splits-rows")
    assert runners_for(example) == RUNNERS
    assert reference_rerun(example, ("v2-splits-rows",))([example.trace.scenario]) == [True]
    assert reference_rerun(example, ())([example.trace.scenario]) == [False]


def test_a_long_run_is_not_made_again_a_hundred_times() -> None:
    """A report on a run of thousands of steps would take longer than the search that found it."""
    example = long_example()
    assert len(example.trace.steps) > 1000
    asked: list[Scenario] = []

    def rerun(scenarios: Sequence[Scenario]) -> list[bool | None]:
        asked.extend(scenarios)
        return [True] * len(scenarios)

    neighbours(example, rerun)
    assert 1 <= len(asked) == most_runs(example) < 20
    (short, *_) = of_switch("shifted-cut")
    assert most_runs(short) > 1000
