"""A state machine that decides what comes next while the reference runs, on rows and on tensors.

The engine is deterministic, so that running the scenario as it stands once more from the start is
the same as going on from where it was.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from impl.target import RUNNERS
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from proofs.describe.scenarios import describe_scenario
from proofs.run.record import record
from proofs.search.runs.scenarios import scenarios
from spec.monitor.monitor import LoopMonitor
from spec.monitor.residency.runners import compare_runners
from spec.record.scenario import Scenario, ScenarioRequest
from tests.support.coverage import OUTCOMES, RELATIONS, coverage

_MOST_PASSES = 400

FLOORS = {
    "hit": 50,
    "allocated": 80,
    "evicted": 10,
    "refused for room": 8,
    "freed by progress": 80,
    "drafts rejected": 20,
    "abort of a running request": 5,
    "reset of a cache in use": 10,
    "rows for the drafter only": 12,
    "boundary item read": 8,
    "item ends before the processed end": 12,
    "item ends at the processed end": 15,
    "item ends after the processed end": 30,
    "item starts at the processed end": 12,
}
"""What one run of the machine must come to; below this it no longer tries what it is for."""


class LoopMachine(RuleBasedStateMachine):
    """Requests of a drawn scenario arrive and are aborted, and the cache is reset, when it says."""

    tensors: TensorSettings | None = None
    covered: Counter[str]

    @initialize(drawn=scenarios())
    def start(self, drawn: Scenario) -> None:
        """Take settings, and requests that are yet to come, from a drawn scenario."""
        self.config = drawn.config
        self.to_come = list(drawn.requests)
        self.requests: list[ScenarioRequest] = []
        self.resets: list[int] = []
        self.now = 0

    @precondition(lambda self: self.to_come)
    @rule()
    def arrive(self) -> None:
        """The next request arrives now, and what follows it as much later as it was drawn."""
        request = self.to_come.pop(0)
        later = self.now - request.arrival
        self.requests.append(
            replace(
                request,
                arrival=self.now,
                abort=None,
                close=None if request.close is None else request.close + later,
                continuations=tuple(
                    replace(turn, arrival=turn.arrival + later) for turn in request.continuations
                ),
                failed_loads=tuple(
                    replace(load, at=max(load.at + later, 0)) for load in request.failed_loads
                ),
            )
        )

    @precondition(lambda self: self.requests)
    @rule(which=st.integers(0, 10))
    def abort(self, which: int) -> None:
        """One of the requests is aborted now."""
        index = which % len(self.requests)
        if self.requests[index].abort is None:
            self.requests[index] = replace(self.requests[index], abort=self.now)

    @precondition(lambda self: self.requests)
    @rule()
    def reset(self) -> None:
        """The encoder cache is reset now."""
        if self.now not in self.resets:
            self.resets.append(self.now)

    @precondition(lambda self: self.requests)
    @rule(passes=st.integers(1, 4))
    def run(self, passes: int) -> None:
        """Some passes run."""
        self.now += passes
        self._check(self.now)

    def teardown(self) -> None:
        """Run to the end."""
        if getattr(self, "requests", None):
            self._check(_MOST_PASSES)

    def _check(self, max_passes: int) -> None:
        scenario = Scenario(self.config, tuple(self.requests), tuple(self.resets))
        traces = []
        for runner in RUNNERS:
            monitor = LoopMonitor(scenario, runner)
            recording = record(
                ReferenceLoop(),
                scenario,
                runner,
                tensors=self.tensors,
                max_passes=max_passes,
                monitor=monitor,
            )
            assert recording.findings == (), describe_scenario(scenario)
            traces.append(recording.trace)
        assert compare_runners(*traces) == (), describe_scenario(scenario)
        if max_passes == _MOST_PASSES:
            assert traces[0].ending == "idle", describe_scenario(scenario)
            self.covered.update(coverage(traces[0]))


def _run_machine(tensors: TensorSettings | None, share: int) -> Counter[str]:
    covered: Counter[str] = Counter()
    machine = type("Machine", (LoopMachine,), {"tensors": tensors, "covered": covered})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max(settings().max_examples // share, 1),
            stateful_step_count=12,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return covered


def test_the_reference_is_clean_whatever_comes_next() -> None:
    """Wrong: the engine or the monitor; or the machine no longer comes to what it is for."""
    covered = _run_machine(None, 1)
    if settings().max_examples >= 200:
        assert {
            name: covered[name] for name, floor in FLOORS.items() if covered[name] < floor
        } == {}


def test_the_reference_is_clean_with_tensors(device: str) -> None:
    """Wrong: the gathers in the loop, where whole runs made what is resident."""
    covered = _run_machine(TensorSettings(device=device), 4)
    assert covered["allocated"] > 0


@pytest.mark.parametrize("outcome", FLOORS)
def test_floors_are_about_what_is_counted(outcome: str) -> None:
    """Wrong: a floor for something that was renamed, which nothing could reach."""
    assert outcome in {*OUTCOMES, *RELATIONS}
