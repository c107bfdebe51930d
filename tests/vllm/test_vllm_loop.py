"""Real releases in the closed loop: the public faults show where they are, and nowhere else."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest
from packaging.version import Version

from impl.faults.scenarios import MISS_OF_DRAFTER, OTHER_ROWS
from impl.vllm.launch.fetch import CI_RELEASES
from impl.vllm.launch.worker_order import worker_order
from spec.claims.witnesses import FULL_CACHE, TWO_ITEMS
from spec.record.document import dumps_scenario
from spec.record.scenario import Scenario
from tests.recorders import record_picture
from tests.support.healthy_runs import (
    LOAD_FAILS_OVER_ITEM,
    OTHER_ROWS_ASYNC,
    WIDE_BLOCK,
    WITHOUT_ROWS,
)
from tests.support.releases import ask, require_release
from tests.support.vllm_loop_faults import RECORDED, RecordedFault

OBSERVE = """
import json, sys
from impl.vllm.runs.target import VllmLoop
from impl.vllm.launch.fetch import CI_RELEASES
from impl.vllm.launch.source import cache_folder, unpacked
from impl.tensors import TensorSettings
from proofs.run.record import record
from spec.record.consistency import require_consistent
from spec.record.document import loads
from spec.monitor.monitor import LoopMonitor

target = VllmLoop(unpacked(cache_folder(), sys.argv[1]))
found = []
for text, with_tensors in json.load(sys.stdin):
    scenario = loads(text).scenario
    runs = {}
    for runner in ("V1", "V2"):
        reason = target.missing(scenario, runner)
        if reason is not None:
            runs[runner] = {"missing": reason}
            continue
        monitor = LoopMonitor(scenario, runner)
        tensors = TensorSettings() if with_tensors else None
        recording = record(
            target, scenario, runner, tensors=tensors, monitor=monitor, max_passes=100
        )
        require_consistent(recording.trace)
        runs[runner] = {
            "claims": sorted({finding.claim for finding in recording.findings}),
            "ending": recording.trace.ending,
            "errors": sorted({
                read.error.message
                for step in recording.trace.steps
                if step.kind == "pass" and step.worker is not None
                for read in (step.worker.target, step.worker.drafter)
                if read is not None and read.error is not None
            }),
        }
    found.append(runs)
print("RESULT" + json.dumps(found))
"""


LATE = replace(TWO_ITEMS, requests=(replace(TWO_ITEMS.requests[0], arrival=1),))
"""A pass without tokens comes first."""

PLAIN: tuple[tuple[Scenario, bool], ...] = (
    (TWO_ITEMS, False),
    (TWO_ITEMS, True),
    (FULL_CACHE, False),
    (LATE, True),
)

OWN_WAY: tuple[Scenario, ...] = (OTHER_ROWS, OTHER_ROWS_ASYNC, LOAD_FAILS_OVER_ITEM)
"""Scenarios that the newest release runs in another way than the reference."""

ALLOWED: tuple[Scenario, ...] = (WIDE_BLOCK, WITHOUT_ROWS)
"""Scenarios that a release runs, or refuses by a rule of its own."""


@cache
def observed(release: str) -> list[dict[str, dict[str, object]]]:
    """What each recorded fault's scenario shows on a release, and then each plain one."""
    inputs = [(dumps_scenario(fault.scenario), False) for fault in RECORDED]
    inputs += [(dumps_scenario(scenario), with_tensors) for scenario, with_tensors in PLAIN]
    inputs += [(dumps_scenario(scenario), False) for scenario in OWN_WAY]
    inputs += [(dumps_scenario(scenario), False) for scenario in ALLOWED]
    inputs += [(dumps_scenario(MISS_OF_DRAFTER), False)]
    result: list[dict[str, dict[str, object]]] = ask(release, OBSERVE, given=json.dumps(inputs))
    return result


def is_affected(fault: RecordedFault, release: str) -> bool:
    version = Version(release)
    if fault.first_affected is not None and version < Version(fault.first_affected):
        return False
    return version <= Version(fault.last_affected)


@pytest.mark.vllm
@pytest.mark.parametrize("release", CI_RELEASES)
def test_public_faults_show_where_they_are_and_nowhere_else(release: str) -> None:
    """Else a fault that is there goes unseen, or a release without it is blamed."""
    require_release(release)
    wrong = []
    for fault, runs in zip(RECORDED, observed(release), strict=False):
        for runner, run in runs.items():
            if "claims" not in run:
                continue
            claims = run["claims"]
            assert isinstance(claims, list)
            if (fault.claim in claims) != is_affected(fault, release):
                wrong.append((fault.name, runner, claims))
    assert not wrong


@pytest.mark.vllm
@pytest.mark.parametrize("release", ["0.33.0"])
def test_the_newest_release_is_clean_on_plain_runs(release: str) -> None:
    """Else the harness itself breaks claims: orders, gathers, tensors or what it records."""
    require_release(release)
    plain = observed(release)[len(RECORDED) : len(RECORDED) + len(PLAIN)]
    found = [run for runs in plain for run in runs.values()]
    assert len(found) == 2 * len(PLAIN)
    assert all(run.get("ending") == "idle" and run["claims"] == [] for run in found), found


@pytest.mark.vllm
@pytest.mark.parametrize("release", ["0.33.0"])
def test_the_newest_release_may_do_things_in_its_own_way(release: str) -> None:
    """Wrong: a release is blamed for when it ends a request, or for sending raw data once more.

    V1 does not send it, and lacks it: that is a fault of the release.
    """
    require_release(release)
    first = len(RECORDED) + len(PLAIN)
    own_way = observed(release)[first : first + len(OWN_WAY)]
    assert [runs["V2"]["claims"] for runs in own_way] == [[], [], []]
    assert [runs["V1"]["claims"] for runs in own_way] == [
        [],
        [],
        ["payload-available", "target-resident", "views-agree"],
    ]


@pytest.mark.vllm
@pytest.mark.parametrize("release", CI_RELEASES)
def test_what_a_release_allows_is_run_and_what_it_refuses_it_refuses_itself(release: str) -> None:
    """Wrong: a release is refused settings that it starts with, or given those that it refuses."""
    require_release(release)
    wide, without_rows = observed(release)[-1 - len(ALLOWED) : -1]
    clean = {"claims": [], "ending": "idle", "errors": []}
    assert without_rows == {"V1": clean, "V2": clean}
    if Version(release) >= Version("0.27"):
        assert wide == {"V1": clean, "V2": clean}
        return
    for run in wide.values():
        assert str(run["missing"]).startswith("it refuses to start: AssertionError: ")
        assert "block_size (8) must be <= max_num_batched_tokens (4)" in str(run["missing"])


@pytest.mark.vllm
@pytest.mark.parametrize("release", ["0.33.0"])
def test_a_draft_model_reads_ahead_of_a_scheduler_that_does_not(release: str) -> None:
    """Wrong: a drafter that a release accepts is refused, though its runners miss what it reads."""
    require_release(release)
    runs = observed(release)[-1]
    assert {runner: run.get("errors") for runner, run in runs.items()} == {
        runner: ["Encoder cache miss for A."] for runner in ("V1", "V2")
    }


@pytest.mark.vllm
@pytest.mark.parametrize("release", CI_RELEASES)
def test_the_workers_order_is_read_from_the_source(release: str) -> None:
    """Else loop claims would be judged on an order that the release's runner does not have."""
    source = require_release(release)
    for runner in ("V1", "V2"):
        order = worker_order(source, runner)
        assert not isinstance(order, str), order
        duties = [duty for duty in order.duties if duty != "payload"]
        assert duties == ["forget", "free", "add", "update", "encode"]


@pytest.mark.vllm
def test_the_run_that_is_drawn_is_the_releases_own() -> None:
    """Wrong: the first picture that a reader sees is of another program."""
    require_release(record_picture.RELEASE)
    code = "import json; from tests.recorders.record_picture import text; "
    text = ask(record_picture.RELEASE, f"{code}print('RESULT' + json.dumps(text()))")
    assert text == record_picture.RECORD.read_text(encoding="utf-8")
