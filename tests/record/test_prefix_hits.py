"""How long a prefix a scenario lets a request find."""

from __future__ import annotations

from dataclasses import replace

import pytest

from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from spec.errors import InputError
from spec.monitor.monitor import check_trace
from spec.record.config import EngineConfig
from spec.record.document import dumps_scenario
from spec.record.scenario import Scenario, ScenarioRequest
from tests.support.releases import ask, require_release

PREEMPTED = 1
"""The request that starts again, with two tokens that it generated."""


def _finds(*hits: int) -> Scenario:
    """Two requests whose KV blocks run out while both generate; one finds these prefixes."""
    config = EngineConfig(8, 8, 8, num_kv_blocks=11, prefix_caching=True)
    first = ScenarioRequest(4, max_tokens=6)
    return Scenario(config, (first, replace(first, prefix_hits=hits)))


FINDS_WHAT_IT_GENERATED = _finds(0, 5)
"""Blocks of its whole prompt, and of a token that it generated before it was preempted."""


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_resumed_request_may_find_what_it_generated(runner: Runner) -> None:
    """Wrong: a record of an engine with a prefix cache is refused, or the engine is blamed."""
    trace = record(ReferenceLoop(), FINDS_WHAT_IT_GENERATED, runner).trace
    starts = [
        entry.num_computed_tokens
        for step in trace.steps
        if step.kind == "pass"
        for entry in step.scheduled
        if entry.started and entry.request == PREEMPTED
    ]
    assert starts == [0, 5]
    assert check_trace(trace) == ()


@pytest.mark.parametrize("runner", RUNNERS)
def test_the_last_token_is_always_computed(runner: Runner) -> None:
    """Wrong: a request finds all that it has, and there is nothing to sample from."""
    trace = record(ReferenceLoop(), _finds(0, 9), runner).trace
    assert check_trace(trace) == ()
    for step in trace.steps:
        if step.kind == "pass":
            for entry in step.scheduled:
                assert entry.num_computed_tokens < entry.prefill_len


@pytest.mark.parametrize("hits", [(4,), (0, 10), (-1,)], ids=["prompt", "all", "negative"])
def test_no_request_finds_more_than_it_can_have(hits: tuple[int, ...]) -> None:
    """Wrong: a scenario that no engine can be given is taken."""
    with pytest.raises(InputError, match="a prefix hit of"):
        _finds(*hits).validate()


RUN = """
import json, sys
from impl.vllm.runs.target import VllmLoop
from impl.vllm.launch.source import cache_folder, unpacked
from proofs.run.record import record
from spec.record.config import EngineConfig
from spec.record.document import loads
from spec.monitor.monitor import LoopMonitor

target = VllmLoop(unpacked(cache_folder(), sys.argv[1]))
scenario = loads(sys.stdin.read()).scenario
found = {}
for runner in ("V1", "V2"):
    recording = record(target, scenario, runner, monitor=LoopMonitor(scenario, runner))
    found[runner] = [recording.trace.ending, *[f.mechanism for f in recording.findings]]
print("RESULT" + json.dumps(found))
"""


@pytest.mark.vllm
def test_a_release_may_find_what_a_request_generated() -> None:
    """Wrong: a release is blamed for a prefix longer than the prompt."""
    require_release("0.33.0")
    found = ask("0.33.0", RUN, given=dumps_scenario(FINDS_WHAT_IT_GENERATED))
    assert found == {"V1": ["idle"], "V2": ["idle"]}


def test_a_request_longer_than_its_engine_can_hold_is_told_what_to_do() -> None:
    """Wrong: a request that a release ends at its longest length is refused without a word."""
    scenario = Scenario(EngineConfig(4, 1, 1, 8), (ScenarioRequest(4, max_tokens=5),))
    with pytest.raises(InputError, match=r"needs 9 KV blocks, and there are 8; .* generate fewer"):
        scenario.validate()
    replace(scenario, requests=(ScenarioRequest(4, max_tokens=4),)).validate()


@pytest.mark.vllm
def test_the_place_that_refuses_longer_prompts_is_there() -> None:
    """Wrong: a page names a check that the release does not have."""
    package = require_release("0.33.0").package
    processor = (package / "v1" / "engine" / "input_processor.py").read_text(encoding="utf-8")
    assert "def _validate_prompt_len(" in processor
    assert "if prompt_len > max_prompt_len:" in processor
    assert "elif prompt_len == max_prompt_len" in processor
