"""Drafts that follow no token any more: where they may stay, and where they may not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.scenario import Continuation, FailedLoad, Scenario, ScenarioRequest
from spec.record.steps import Step

_CONFIG = EngineConfig(
    2,
    8,
    8,
    num_kv_blocks=60,
    scheduler_lookahead=1,
    gather_lookahead=1,
    num_speculative_tokens=1,
    prefix_caching=True,
)
_NEXT_TURN = Scenario(_CONFIG, (ScenarioRequest(1, continuations=(Continuation(0, 5),)),))
_FAILED_LOAD = Scenario(
    _CONFIG, (ScenarioRequest(4, prefix_hits=(3,), failed_loads=(FailedLoad(0, 0),)),)
)


def _claims(scenario: Scenario, kept: Collection[tuple[str, int]]) -> set[str]:
    """Claims that the reference's run contradicts with drafts kept after some of its steps."""
    monitor = LoopMonitor(scenario, "V1")
    found = set()
    for step in record(ReferenceLoop(), scenario, "V1").trace.steps:
        seen: Step = step
        if step.kind != "event" and (step.kind, step.index) in kept:
            requests = tuple(
                replace(request, num_draft_tokens=1) for request in step.state.requests
            )
            seen = replace(step, state=replace(step.state, requests=requests))
        found.update(finding.claim for finding in monitor.observe(seen))
    return found


@pytest.mark.parametrize(
    "kept",
    [
        [("update", 0)],
        [("update", 0), ("pass", 1)],
        [("update", 0), ("pass", 1), ("update", 1)],
    ],
)
def test_drafts_of_a_turn_that_ended_may_stay_until_the_next_runs_on(kept) -> None:
    """Wrong: a release that leaves them is blamed, though the target verifies them."""
    assert _claims(_NEXT_TURN, kept) == set()


def test_drafts_proposed_with_a_token_taken_back_may_stay() -> None:
    """Wrong: a release is blamed for a proposal that can do no harm."""
    assert _claims(_FAILED_LOAD, [("update", 0)]) == set()


@pytest.mark.parametrize("scenario", [_NEXT_TURN, _FAILED_LOAD])
def test_drafts_of_a_running_request_do_not_survive_its_pass(scenario: Scenario) -> None:
    """Wrong: drafts could be run twice, and nobody would say so."""
    kept = [("update", 0), ("pass", 1), ("update", 1), ("pass", 2)]
    assert _claims(scenario, kept) == {"counts-agree"}


def test_drafts_that_nobody_had_are_found() -> None:
    """Wrong: drafts may appear on a request out of nothing."""
    assert _claims(_NEXT_TURN, [("pass", 1)]) == {"counts-agree"}
    assert _claims(_NEXT_TURN, [("update", 1)]) == {"counts-agree"}
