"""Each fault breaks, in the running loop, exactly the claims that its record names."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from impl.faults.switches import FAULTS, Fault, fault
from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from proofs.run.record import record
from spec.claims.texts import LOOP_CLAIMS
from spec.monitor.monitor import LoopMonitor, compare_runners
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import Trace

MAX_PASSES = 100
"""Far more than any of the scenarios needs."""

IN_LOOP = [switch for switch in FAULTS if switch.scenario is not None]

NOT_HELD_WITHOUT: dict[str, set[str]] = {
    "": set(),
    "hash-is-content": set(),
    "scheduler-looks-as-far": {"drafter-resident-or-boundary", "need-agrees"},
}
"""What the reference breaks, too, where a scenario breaks an assumption. It refuses a hash that
comes with other rows, so that nothing else is broken there."""

WITH_AND_WITHOUT_TENSORS = pytest.mark.parametrize(
    "tensors", [None, TensorSettings()], ids=["rows", "tensors"]
)

EACH_FAULT_IN_LOOP = pytest.mark.parametrize("switch", IN_LOOP, ids=lambda switch: switch.name)


def broken(
    faults: Iterable[str], scenario: Scenario, tensors: TensorSettings | None
) -> dict[Runner, set[str]]:
    """The claims that each runner breaks; what only both together show counts for both."""
    target = ReferenceLoop(faults)
    found: dict[Runner, set[str]] = {}
    traces: dict[Runner, Trace] = {}
    for runner in RUNNERS:
        recording = record(
            target,
            scenario,
            runner,
            tensors=tensors,
            max_passes=MAX_PASSES,
            monitor=LoopMonitor(scenario, runner),
        )
        assert recording.trace.ending != "limit"
        found[runner] = {finding.claim for finding in recording.findings}
        traces[runner] = recording.trace
    differences = {finding.claim for finding in compare_runners(traces["V1"], traces["V2"])}
    return {runner: claims | differences for runner, claims in found.items()}


@WITH_AND_WITHOUT_TENSORS
@EACH_FAULT_IN_LOOP
def test_scenario_breaks_the_claims_that_the_fault_names_and_no_others(
    switch: Fault, tensors: TensorSettings | None
):
    """Otherwise a claim is blind to its fault, or one effect counts twice."""
    assert switch.scenario is not None
    named = set(switch.breaks_in_loop)
    only_by_comparison = named & {"runners-agree"}
    found = broken([switch.name], switch.scenario, tensors)
    for runner in RUNNERS:
        expected = named if switch.runner in (None, runner) else only_by_comparison
        assert found[runner] == expected | NOT_HELD_WITHOUT[switch.without]


@WITH_AND_WITHOUT_TENSORS
@EACH_FAULT_IN_LOOP
def test_reference_holds_on_the_scenario_of_each_fault(
    switch: Fault, tensors: TensorSettings | None
):
    """Otherwise what is found need not come from the fault."""
    assert switch.scenario is not None
    expected = dict.fromkeys(RUNNERS, NOT_HELD_WITHOUT[switch.without])
    assert broken([], switch.scenario, tensors) == expected


@EACH_FAULT_IN_LOOP
def test_scenario_is_legal_and_breaks_the_assumption_that_the_fault_names(switch: Fault):
    """Otherwise an engine could not be given it, or claims are left unjudged for nothing."""
    scenario = switch.scenario
    assert scenario is not None
    scenario.validate()
    without = set()
    if not scenario.content_is_hashed:
        without.add("hash-is-content")
    if scenario.config.scheduler_lookahead < scenario.config.gather_lookahead:
        without.add("scheduler-looks-as-far")
    assert without == ({switch.without} if switch.without else set())


@pytest.mark.parametrize("switch", FAULTS, ids=lambda switch: switch.name)
def test_record_of_a_fault_says_what_shows_and_why(switch: Fault):
    """Otherwise a fault shows nowhere, or more than it can without saying why."""
    assert bool(switch.breaks_in_loop) == (switch.scenario is not None)
    assert bool(switch.not_in_loop) == (switch.scenario is None)
    assert switch.breaks or switch.breaks_in_loop
    several = len(switch.breaks_in_loop) > 1 or bool(switch.may_also_break)
    assert bool(switch.why_several) == several
    assert not set(switch.breaks_in_loop) & set(switch.may_also_break)
    assert {*switch.breaks_in_loop, *switch.may_also_break} <= set(LOOP_CLAIMS)


MARGIN_UNDER_KV_PRESSURE = Scenario(
    EngineConfig(1, 3, 2, num_kv_blocks=4),
    (
        ScenarioRequest(3, (Feature(0, 2, "A"), Feature(2, 1, "B"))),
        ScenarioRequest(1, max_tokens=3),
    ),
)
"""One request is stuck with the room it needs; the other needs a KV block that the first holds."""

KEPT_ROOM_IS_NEEDED = Scenario(
    EngineConfig(6, 2, 1, num_kv_blocks=5),
    (
        ScenarioRequest(3, (Feature(1, 1, "A"), Feature(2, 1, "B"))),
        ScenarioRequest(4, (Feature(0, 1, "A"),)),
    ),
)
"""The second request hits A and gets no KV blocks; the first needs the room of A for B."""

SPLIT_BY_EARLY_CUT = Scenario(
    EngineConfig(2, 3, 2, num_kv_blocks=6, scheduler_lookahead=1, whole_items=True),
    (ScenarioRequest(3, (Feature(0, 2, "A"), Feature(2, 1, "B"))),),
)
"""A cut one token before B, which finds no room, lies inside A."""


@pytest.mark.parametrize(
    ("name", "scenario", "expected"),
    [
        ("deferred-free-margin", MARGIN_UNDER_KV_PRESSURE, {"no-thrash"}),
        (
            "waiting-keeps-references",
            KEPT_ROOM_IS_NEEDED,
            {"no-idle-references", "no-stall"},
        ),
        ("shifted-cut", SPLIT_BY_EARLY_CUT, {"no-stall", "item-whole"}),
        (
            "boundary-never-encoded",
            fault("masked-leading-gap").scenario,
            {"need-agrees", "drafter-resident-or-boundary"},
        ),
    ],
)
def test_other_scenario_of_a_fault_breaks_more(name: str, scenario: Scenario, expected: set[str]):
    """Otherwise what the record says of other scenarios is hearsay."""
    assert not any(broken([], scenario, None).values())
    assert broken([name], scenario, None) == dict.fromkeys(RUNNERS, expected)
    assert expected <= {*fault(name).breaks_in_loop, *fault(name).may_also_break}
