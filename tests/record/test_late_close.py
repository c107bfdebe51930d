"""A streaming session that its client closes after its last input."""

from __future__ import annotations

from dataclasses import replace

import pytest

from impl.reference.engine import Engine
from impl.reference.parts import Parts
from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from spec.errors import InputError
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.document import dumps_scenario
from spec.record.feature import Feature
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Continuation, Scenario, ScenarioRequest
from spec.record.steps import EventSeen, Status, Trace
from tests.record.test_prefix_hits import RUN
from tests.support.releases import ask, require_release

CONFIG = EngineConfig(8, 8, 8, 60)
ITEM = Feature(0, 2, "A")
SESSION = ScenarioRequest(3, (ITEM,), continuations=(Continuation(3, 2, (Feature(0, 2, "B"),)),))
WHILE_PAUSED = Scenario(CONFIG, (replace(SESSION, close=7),))
WHILE_BUSY = Scenario(
    CONFIG, (replace(SESSION, continuations=(Continuation(3, 2, max_tokens=4),), close=4),)
)
BEFORE_LAST_TURN = Scenario(CONFIG, (replace(SESSION, max_tokens=6, close=4),))
ONE_INPUT = Scenario(CONFIG, (ScenarioRequest(3, (ITEM,), close=4), ScenarioRequest(3, (ITEM,))))
AFTER_ABORT = Scenario(CONFIG, (replace(SESSION, abort=5, close=6),))
SCENARIOS = {
    "while it is paused": WHILE_PAUSED,
    "while it is busy": WHILE_BUSY,
    "before its last turn": BEFORE_LAST_TURN,
    "one input": ONE_INPUT,
    "after its abort": AFTER_ABORT,
}


def _statuses(trace: Trace) -> list[Status]:
    """The statuses of request 0, one after the other."""
    statuses = [s.status for step in trace.steps for s in step.state.requests if s.request == 0]
    return [
        status
        for status, before in zip(statuses, [None, *statuses], strict=False)
        if status != before
    ]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
@pytest.mark.parametrize("depth", [0, 1])
def test_a_correct_engine_ends_the_session_without_a_finding(scenario, depth: int) -> None:
    """Wrong: a healthy session is refuted because its client was slow to close it."""
    scenario = replace(scenario, config=replace(scenario.config, async_depth=depth))
    scenario.validate()
    monitor = LoopMonitor(scenario, "V2")
    recording = record(ReferenceLoop(), scenario, "V2", monitor=monitor)
    assert recording.findings == ()
    assert recording.trace.ending == "idle"
    closes = [s for s in recording.trace.steps if isinstance(s, EventSeen) and s.event == "close"]
    assert [step.before for step in closes] == [scenario.requests[0].close]


def test_it_waits_for_its_client_after_its_last_input() -> None:
    """Wrong: the session ends with its last turn, so that nothing is closed late."""
    trace = record(ReferenceLoop(), WHILE_PAUSED, "V2").trace
    assert _statuses(trace)[-3:] == ["running", "paused", "finished"]
    trace = record(ReferenceLoop(), WHILE_BUSY, "V2").trace
    assert _statuses(trace) == ["waiting", "running", "paused", "waiting", "running", "finished"]


class _KeepsPaused(Engine):
    """Takes no notice where the session pauses."""

    def close(self, request: int) -> None:
        if self._requests[request].status != "paused":
            super().close(request)


class _EndsBusy(Engine):
    """Ends a session at once, with what it has not run."""

    def close(self, request: int) -> None:
        self.abort(request)


@pytest.mark.parametrize(
    ("engine", "scenario", "mechanism"),
    [
        (_KeepsPaused, WHILE_PAUSED, "status differs"),
        (_EndsBusy, WHILE_BUSY, "request changes without a cause"),
    ],
)
def test_an_engine_that_ends_it_at_another_time_is_refuted(
    engine: type[Engine], scenario: Scenario, mechanism: str
) -> None:
    """Wrong: nobody sees a session that holds its KV blocks for ever, or loses its last answer."""
    monitor = LoopMonitor(scenario, "V2")
    found: list[LoopFinding] = []
    for step, _ in zip(
        engine(scenario, Parts(), "V2", record=True).steps(), range(60), strict=False
    ):
        found += monitor.observe(step)
    assert ("counts-agree", mechanism) in {(f.claim, f.mechanism) for f in found}


def test_no_session_is_closed_before_its_last_input() -> None:
    """Wrong: an input comes after the end of all input, which no release takes."""
    with pytest.raises(InputError, match="closed at 2, before its last input"):
        replace(WHILE_PAUSED, requests=(replace(SESSION, close=2),)).validate()


@pytest.mark.vllm
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_release_ends_the_session_as_well(name: str) -> None:
    """Wrong: a release is blamed for waiting until its client closes the session."""
    require_release("0.33.0")
    found = ask("0.33.0", RUN, given=dumps_scenario(SCENARIOS[name]))
    assert found == {"V1": ["idle"], "V2": ["idle"]}
