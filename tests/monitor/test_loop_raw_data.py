"""Raw data that comes to the worker: with a request that starts, or with the input to encode."""

from __future__ import annotations

from dataclasses import replace

import pytest

from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from spec.monitor.monitor import check_trace
from spec.record.steps import PassSeen, Trace
from tests.support.healthy_runs import LOAD_FAILS_OVER_ITEM


def _sent_again(runner: Runner, in_pass: int) -> Trace:
    """A run in which the item's raw data comes again with the given pass."""
    trace = record(ReferenceLoop(), LOAD_FAILS_OVER_ITEM, runner).trace
    steps = list(trace.steps)
    for place, step in enumerate(steps):
        if isinstance(step, PassSeen) and step.index == in_pass:
            assert step.worker is not None
            worker = replace(step.worker, received=((0, 0),))
            steps[place] = replace(step, worker=worker)
    return replace(trace, steps=tuple(steps))


@pytest.mark.parametrize("runner", RUNNERS)
def test_raw_data_may_come_again_with_the_input_that_is_to_be_encoded(runner: Runner) -> None:
    """Wrong: an engine that mends a failed load on purpose is blamed for it."""
    trace = _sent_again(runner, in_pass=1)
    assert [step.encoder_inputs for step in trace.steps if step.kind == "pass"] == [(), ((0, 0),)]
    assert check_trace(trace) == ()


def test_raw_data_that_nobody_encodes_is_found() -> None:
    """Wrong: data that no request of the pass needs is sent, and nobody sees the traffic."""
    trace = _sent_again("V2", in_pass=1)
    steps = [
        replace(step, encoder_inputs=()) if step.kind == "pass" else step for step in trace.steps
    ]
    mechanisms = {found.mechanism for found in check_trace(replace(trace, steps=tuple(steps)))}
    assert "raw data that nobody needs" in mechanisms
