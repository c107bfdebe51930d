"""Requests that are refused for good, since their hash comes with another number of rows.

An engine may end such a request in the pass that refuses it, or mark it there and end it in the
update, as releases from 0.31.0 on do.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from impl.faults import scenarios
from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from spec.monitor.monitor import check_trace
from spec.record.steps import PassSeen, RequestState, Status, Trace, UpdateSeen

REFUSED = 1
"""The request that is refused in :data:`impl.faults.scenarios.OTHER_ROWS`, in its first pass."""


def _in_the_pass(runner: Runner, async_depth: int = 0) -> Trace:
    """A run that ends the request in the pass, as the reference does."""
    config = replace(scenarios.OTHER_ROWS.config, async_depth=async_depth)
    return record(ReferenceLoop(), replace(scenarios.OTHER_ROWS, config=config), runner).trace


def _with_status(states: tuple[RequestState, ...], status: Status) -> tuple[RequestState, ...]:
    return tuple(
        replace(state, status=status) if state.request == REFUSED else state for state in states
    )


def _in_the_update(runner: Runner, async_depth: int = 0) -> Trace:
    """The same run, but for the request's end: the pass marks it, and the update ends it.

    Passes that are scheduled before that update look at it once more.
    """
    trace = _in_the_pass(runner, async_depth)
    steps = list(trace.steps)
    place = next(i for i, step in enumerate(steps) if step.kind == "pass" and step.rejected)
    refusing = steps[place]
    assert isinstance(refusing, PassSeen)
    end = [call for call in refusing.calls if (call.method, call.request) == ("free", REFUSED)]
    looks = tuple(call for call in refusing.calls if call.request == REFUSED and call not in end)
    steps[place] = replace(refusing, calls=tuple(c for c in refusing.calls if c not in end))
    while steps[place].kind == "pass":
        state = steps[place].state
        calls = steps[place].calls
        steps[place] = replace(
            steps[place],
            calls=calls if steps[place].index == refusing.index else (*calls, *looks),
            state=replace(
                state,
                requests=_with_status(state.requests, "waiting"),
                waiting=(*state.waiting, REFUSED),
            ),
        )
        place += 1
    assert isinstance(steps[place], UpdateSeen)
    steps[place] = replace(steps[place], calls=(*steps[place].calls, *end))
    return replace(trace, steps=tuple(steps))


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_refused_request_may_end_in_the_pass_or_in_its_update(runner: Runner) -> None:
    """Wrong: an engine is blamed for when it ends a request that it refuses."""
    assert check_trace(_in_the_pass(runner)) == ()
    assert check_trace(_in_the_update(runner)) == ()


def _never_told(trace: Trace, status: Status) -> Trace:
    """The run with another status of the request from the update on."""
    steps = list(trace.steps)
    first = next(i for i, step in enumerate(steps) if step.kind == "update")
    waiting = (REFUSED,) if status == "waiting" else ()
    for place in range(first, len(steps)):
        state = steps[place].state
        steps[place] = replace(
            steps[place],
            state=replace(
                state,
                requests=_with_status(state.requests, status),
                waiting=(*state.waiting, *waiting),
            ),
        )
    return replace(trace, steps=tuple(steps))


def test_a_refused_request_that_goes_on_is_found() -> None:
    """Wrong: a client waits for ever for the end of a request that was refused."""
    found = check_trace(_never_told(_in_the_update("V1"), "waiting"))
    assert ("counts-agree", "request refused for good goes on") in {
        (finding.claim, finding.mechanism) for finding in found
    }


def test_a_refused_request_that_finishes_without_an_error_is_found() -> None:
    """Wrong: a request that ran nothing passes for one that was answered."""
    found = check_trace(_never_told(_in_the_update("V1"), "finished"))
    assert ("counts-agree", "status differs") in {
        (finding.claim, finding.mechanism) for finding in found
    }


def test_a_refused_request_may_be_refused_again_before_its_update() -> None:
    """Wrong: passes that are scheduled before the update are blamed for another look at it."""
    trace = _in_the_update("V1", async_depth=1)
    looks = [
        step.index
        for step in trace.steps
        if step.kind == "pass" and any(call.request == REFUSED for call in step.calls)
    ]
    assert looks == [0, 1]
    assert check_trace(trace) == ()
