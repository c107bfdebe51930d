"""Chunks of a prefill on traces built by hand: too long for the others, or leaving too little."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import Status
from tests.support.progress_steps import CONFIG, a_pass, event, ran, request, state

LIMITED = replace(CONFIG, long_prefill_token_threshold=4)
MODULES = replace(
    CONFIG, scheduler_lookahead=3, gather_lookahead=1, num_speculative_tokens=3, whole_items=False
)
PROMPT = ScenarioRequest(12)


def found(
    config: EngineConfig,
    num_tokens: int,
    *,
    start: int = 0,
    other: Status | None = "running",
    prompt: ScenarioRequest = PROMPT,
    known: int = 12,
) -> set[str]:
    """The claims on chunks that a pass breaks in which request 0 runs so many tokens."""
    others = [] if other is None else [request(1, other, 0)]
    before = state(request(0, "running", start, tokens=known), *others)
    entry = replace(ran(0, start, num_tokens), prefill_len=known)
    monitor = LoopMonitor(Scenario(config, (prompt, ScenarioRequest(5))), "V1")
    steps = (event(0, before), a_pass(0, before, entry))
    claims = {finding.claim for step in steps for finding in monitor.observe(step)}
    return claims & {"threshold-kept", "reservation-kept"}


def test_a_chunk_is_no_longer_than_the_threshold() -> None:
    """Wrong: a long prompt takes the tokens of short ones, although a threshold is set."""
    assert found(LIMITED, 5) == {"threshold-kept"}
    assert not found(LIMITED, 4)
    assert found(LIMITED, 5, other="waiting") == {"threshold-kept"}
    # What is known is no longer than the threshold: the rest are drafts.
    assert not found(LIMITED, 5, start=8)


@pytest.mark.parametrize("other", [None, "paused", "finished"])
def test_nobody_else_is_there(other: Status | None) -> None:
    """Wrong: an engine is blamed for a prefill that keeps nobody waiting."""
    assert not found(LIMITED, 8, other=other)


def test_a_whole_item_may_be_longer_than_the_threshold() -> None:
    """Wrong: an item that is not to be split could never run."""
    whole = replace(LIMITED, whole_items=True)
    item = ScenarioRequest(12, (Feature(2, 6, "A"),))
    assert not found(whole, 6, start=2, prompt=item)
    assert found(whole, 7, start=2, prompt=item) == {"threshold-kept"}
    assert found(whole, 6, start=1, prompt=item) == {"threshold-kept"}
    assert found(LIMITED, 6, start=2, prompt=item) == {"threshold-kept"}


def test_a_chunk_leaves_what_the_modules_read() -> None:
    """Wrong: a module of the drafter finds no known token, and nobody sees it."""
    assert found(MODULES, 10) == found(MODULES, 11) == {"reservation-kept"}
    assert not found(MODULES, 9)
    assert not found(MODULES, 12)
    # A request that starts again has generated tokens to compute, too.
    assert found(MODULES, 12, known=14) == {"reservation-kept"}
    assert not found(replace(MODULES, scheduler_lookahead=1), 11)


def test_nothing_is_asked_where_no_shorter_chunk_could_run() -> None:
    """Wrong: an engine that would rather draft badly than stand still is blamed for it."""
    assert not found(MODULES, 1, start=9)
    assert found(MODULES, 2, start=8) == {"reservation-kept"}
    whole = replace(MODULES, whole_items=True)
    item = ScenarioRequest(12, (Feature(4, 6, "A"),))
    assert not found(whole, 6, start=4, prompt=item)
    assert found(whole, 7, start=3, prompt=item) == {"reservation-kept"}
    assert not found(replace(MODULES, block_alignment=8), 3, start=8)
    assert found(replace(MODULES, block_alignment=8), 11) == {"reservation-kept"}
