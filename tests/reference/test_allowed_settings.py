"""Settings and requests that releases allow, and that look odd: the reference runs them, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from spec.model.run import ModelPass, run_model
from spec.monitor.monitor import check_trace
from spec.record.scenario import Scenario
from tests.support.healthy_runs import WIDE_BLOCK, WITHOUT_ROWS


def chunks(scenario: Scenario, runner: Runner = "V1") -> list[int]:
    """Tokens of each pass that runs any."""
    trace = record(ReferenceLoop(), scenario, runner).trace
    assert check_trace(trace) == ()
    assert trace.ending == "idle"
    return [
        sum(entry.num_scheduled_tokens for entry in step.scheduled)
        for step in trace.steps
        if step.kind == "pass" and step.scheduled
    ]


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_block_wider_than_any_chunk_is_run_piece_by_piece(runner: Runner) -> None:
    """Wrong: settings that releases start with stop the reference for ever."""
    assert chunks(WIDE_BLOCK, runner) == [4, 4, 4, 4, 4]
    narrow = replace(WIDE_BLOCK.config, long_prefill_token_threshold=3)
    # A chunk ends at the boundary that lies in it, and goes on behind it.
    assert chunks(replace(WIDE_BLOCK, config=narrow), runner) == [3, 3, 2, 3, 3, 2, 3, 1]


def test_the_model_runs_inside_a_wide_block_as_the_reference_does() -> None:
    """Wrong: the exhaustive search is about another engine."""
    passes = [step for step in run_model(WIDE_BLOCK) if isinstance(step, ModelPass)]
    assert [entry[2] for step in passes for entry in step.record.scheduled] == chunks(WIDE_BLOCK)


@pytest.mark.parametrize("runner", RUNNERS)
def test_an_item_without_rows_is_never_encoded(runner: Runner) -> None:
    """Wrong: an item that a release accepts is refused, or room is taken for nothing."""
    trace = record(ReferenceLoop(), WITHOUT_ROWS, runner).trace
    assert check_trace(trace) == ()
    assert not any(step.encoder_inputs for step in trace.steps if step.kind == "pass")
