"""That random search shrinks to the shortest run: the exhaustive search knows how short one is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from impl.faults.switches import fault
from proofs.explore.case import Case
from proofs.explore.choices import Choices, Disturbance
from proofs.explore.chunk import broken_in
from proofs.explore.graph import explore
from proofs.explore.search import confirm
from proofs.search.runs.reduce import size
from spec.model.layout import Layout
from spec.model.rules import FAULTY_RULES
from spec.record.document import loads
from spec.record.scenario import Scenario
from tests.recorders.record_explore import RECORD

RECORDED: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))["faults"]
FOUND = [
    (name, claim)
    for name, entry in RECORDED.items()
    for claim, found in entry["claims"].items()
    if found["search"] is not None
]
"""Switches, and the claims that both searches say they break."""


def _shrunk(name: str) -> Scenario:
    """The scenario to which random search shrinks."""
    scenario = fault(name).scenario
    assert scenario is not None
    return scenario


def _as_a_case(scenario: Scenario) -> Case:
    """The scenario's requests and settings, with all that may be chosen within a run left open."""
    disturbances: list[Disturbance] = []
    if any(request.abort is not None for request in scenario.requests):
        disturbances.append("abort")
    if scenario.resets:
        disturbances.append("reset")
    if any(request.failed_loads for request in scenario.requests):
        disturbances.append("failed load")
    assert len(disturbances) < 2
    arrivals = [request.arrival for request in scenario.requests]
    assert arrivals == sorted(arrivals)
    assert arrivals[0] == 0
    requests = tuple(
        replace(request, arrival=0, abort=None, failed_loads=(), accepted_drafts=())
        for request in scenario.requests
    )
    choices = Choices((0,), tuple(range(1, len(requests))), (disturbances or ["none"])[0])
    return Case(0, scenario.config, requests, choices)


@pytest.mark.parametrize(("name", "claim"), FOUND)
def test_no_run_of_the_shrunk_scenario_is_shorter(name: str, claim: str) -> None:
    """Wrong: the reducer gave up early, or one search misses what the other finds.

    Of all runs of the requests under the settings to which random search shrinks, the shortest that
    breaks the claim is as long as the run that it shrinks to.
    """
    case = _as_a_case(_shrunk(name))
    layout = Layout(case.config, case.requests, FAULTY_RULES[name])
    (found,) = (
        violation
        for violation in broken_in(case, layout, explore(layout, case.choices))
        if violation.claim == claim
    )
    assert confirm(found, name).passes == RECORDED[name]["claims"][claim]["search"]


@pytest.mark.parametrize(("name", "claim"), FOUND)
def test_a_shorter_run_needs_a_larger_scenario(name: str, claim: str) -> None:
    """Wrong: the exhaustive search finds a scenario that is shorter and no larger.

    Random search makes scenarios plain before it makes their runs short, so that a run may be
    shorter than the one to which it shrinks only where its scenario is larger.
    """
    entry = RECORDED[name]["claims"][claim]
    assert entry["passes"] <= entry["search"]
    if entry["passes"] < entry["search"]:
        assert size(loads(json.dumps(entry["scenario"])).scenario) > size(_shrunk(name))
