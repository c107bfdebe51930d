"""What was found in the newest release shows there, and a correct engine does without it."""

from __future__ import annotations

import json

import pytest

from impl.target import RUNNERS
from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from spec.claims.texts import loop_claim
from spec.monitor.monitor import LoopMonitor
from spec.record.document import dumps_scenario
from tests.recorders.record_found import FOLDER, files
from tests.support.releases import ask, require_release
from tests.support.vllm_found_faults import FOUND, RELEASE, FoundFault
from tests.vllm.test_vllm_loop import OBSERVE


@pytest.fixture(scope="module")
def observed() -> list[dict[str, dict[str, object]]]:
    """What each scenario shows on the release; one process for all."""
    require_release(RELEASE)
    inputs = [(dumps_scenario(fault.scenario), False) for fault in FOUND]
    result: list[dict[str, dict[str, object]]] = ask(RELEASE, OBSERVE, given=json.dumps(inputs))
    return result


@pytest.mark.vllm
@pytest.mark.parametrize("number", range(len(FOUND)), ids=[fault.name for fault in FOUND])
def test_the_fault_shows_on_the_release(observed, number: int) -> None:
    """Wrong: a release is blamed for what it does not do."""
    fault = FOUND[number]
    shown = {r for r, run in observed[number].items() if fault.claim in run.get("claims", [])}
    assert shown == set(fault.runners)


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("fault", FOUND, ids=lambda fault: fault.name)
def test_a_correct_engine_does_without_it(fault: FoundFault, runner) -> None:
    """Wrong: the scenario asks for what no engine could do, or is not legal."""
    fault.scenario.validate()
    monitor = LoopMonitor(fault.scenario, runner)
    recording = record(ReferenceLoop(), fault.scenario, runner, monitor=monitor)
    assert recording.findings == ()
    assert recording.trace.ending == "idle"
    assert monitor.premises[loop_claim(fault.claim).id] > 0


def test_the_record_is_what_is_tested() -> None:
    """Wrong: the files that users replay, and the README's table, tell of other scenarios."""
    assert {p.name: p.read_text(encoding="utf-8") for p in FOLDER.glob("*.json")} == files()
