"""No-stall on traces built by hand: each way to stand still, and what only looks like one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spec.record.scenario import Continuation, FailedLoad
from spec.record.steps import (
    Call,
    EngineState,
    ErrorSeen,
    Status,
)
from tests.support.progress_steps import (
    A_HELD,
    ASKED_BEFORE,
    STUCK,
    TEXT,
    TWO_ITEMS,
    a_pass,
    event,
    held_by,
    judge,
    refused,
    request,
    state,
    stuck,
    to_the_second_item,
    update,
)


def test_a_stall_is_told_once_with_its_loop_and_who_holds_the_room() -> None:
    """Otherwise a run that stands still passes, or fills the report with one finding a pass."""
    findings, monitor = judge([*to_the_second_item(), *stuck(last=6)], TWO_ITEMS)
    (finding,) = findings
    assert (finding.claim, finding.pass_index, finding.loop) == ("no-stall", 1, (1, 1))
    assert (finding.request, finding.feature) == (0, 1)
    assert finding.mechanism == (
        "a running request waits for encoder cache room held by its own item that it has passed"
    )
    assert "A[0,4) is referenced by request 0" in finding.observed
    assert monitor.settled
    assert monitor.premises["no-stall"] == 6


def test_a_stall_shows_at_the_update_of_its_pass_where_there_is_one() -> None:
    """Otherwise a run that is stopped after that update is not judged."""
    steps = [*to_the_second_item(), *stuck(last=2), update(1, STUCK)]
    findings, _ = judge(steps, TWO_ITEMS)
    assert [finding.claim for finding in findings] == ["no-stall"]


def test_an_update_that_changes_the_state_is_progress() -> None:
    """A pass is judged with its update."""
    freed = state(request(0, "running", 4), book=replace(A_HELD, num_freeable_slots=4))
    findings, monitor = judge([*to_the_second_item(), *stuck(last=2), update(1, freed)], TWO_ITEMS)
    assert not findings
    assert not monitor.settled


def test_a_single_pass_that_has_no_end_yet_is_not_judged() -> None:
    """Its update may still change the state."""
    findings, _ = judge([*to_the_second_item(), *stuck(last=2)], TWO_ITEMS, ending="limit")
    assert not findings


def test_nothing_stands_still_while_a_pass_is_in_flight() -> None:
    """Its update may free the room."""
    steps = [step for step in to_the_second_item() if step.kind != "update"]
    findings, monitor = judge([*steps, *stuck()], TWO_ITEMS)
    assert not findings
    assert monitor.premises["no-stall"] == 1


@pytest.mark.parametrize(
    ("changes", "resets"),
    [
        ({"abort": 5}, ()),
        ({}, (5,)),
        ({"failed_loads": (FailedLoad(5, 0),)}, ()),
        ({"continuations": (Continuation(5, 1),)}, ()),
    ],
)
def test_nothing_stands_still_while_an_event_is_pending(
    changes: dict[str, object], resets: tuple[int, ...]
) -> None:
    """It may change everything; only after the last one the same passes are a stall."""
    source = replace(TWO_ITEMS, **changes)
    before, _ = judge([*to_the_second_item(), *stuck(last=5)], source, resets=resets)
    assert not before
    after, _ = judge([*to_the_second_item(), *stuck(last=8)], source, resets=resets)
    assert [(f.claim, f.pass_index) for f in after] == [("no-stall", 5)]


@pytest.mark.parametrize("status", ["paused", "finished", "rejected"])
def test_nobody_stands_still_who_does_not_want_to_run(status: Status) -> None:
    """A paused request waits for input, the others for nothing."""
    ended = state(request(0, status, 4))
    steps = [*to_the_second_item(), update(0, ended), a_pass(1, ended), a_pass(2, ended)]
    findings, monitor = judge([*steps, a_pass(3, ended)], TWO_ITEMS)
    assert not findings
    assert monitor.premises["no-stall"] == 1


@pytest.mark.parametrize(
    "change",
    [
        {"book": replace(A_HELD, freeable=("B",))},
        {"book": replace(A_HELD, references=())},
        {"book": replace(A_HELD, num_free_slots=1)},
        {"requests": (request(0, "running", 4, drafts=1),)},
        {"requests": (request(0, "running", 4, blocks=1),)},
        {"running": (), "waiting": (0,)},
    ],
)
def test_a_pass_without_tokens_that_changes_anything_is_progress(change: dict[str, object]) -> None:
    """Whatever ``schedule()`` reads may let the next pass run."""
    steps = [*to_the_second_item(), *stuck(last=2, after=replace(STUCK, **change)), *stuck(2, 3)]
    findings, _ = judge(steps, TWO_ITEMS)
    assert "no-stall" not in [finding.claim for finding in findings]


def test_the_order_of_holders_is_no_state() -> None:
    """A set that a target lists in any order would hide a stall."""
    two = [request(0, "running", 4), request(1, "running", 4)]
    first, second = (state(*two, book=held_by(*holders)) for holders in ((0, 1), (1, 0)))
    steps = [event(0, first), a_pass(0, second), a_pass(1, first), a_pass(2, first)]
    findings, _ = judge(steps, TWO_ITEMS, TWO_ITEMS)
    assert [finding.claim for finding in findings] == ["no-stall"]


@pytest.mark.parametrize(
    ("stands", "calls", "mechanism"),
    [
        (
            state(request(0, "running", 3), book=A_HELD),
            (refused(0, 1),),
            "a running request waits for encoder cache room held by its own unfinished item",
        ),
        (
            state(request(0, "waiting", 0), request(1, "waiting", 0), book=held_by(1)),
            (refused(0, 0),),
            "a waiting request waits for encoder cache room held by another waiting request",
        ),
        (
            state(request(0, "waiting", 0), request(1, "paused", 0), book=held_by(1)),
            (refused(0, 0),),
            "a waiting request waits for encoder cache room held by a paused request",
        ),
        (
            state(request(0, "waiting", 0), request(1, "finished", 4), book=held_by(1)),
            (refused(0, 0),),
            "a waiting request waits for encoder cache room held by a finished request",
        ),
        (
            state(request(0, "waiting", 0), book=replace(A_HELD, references=())),
            (refused(0, 0),),
            "a waiting request waits for encoder cache room held by nobody",
        ),
        (
            state(request(0, "waiting", 0)),
            (refused(0, 1, chosen=4),),
            f"a waiting request waits for encoder cache room held by {ASKED_BEFORE}",
        ),
        (
            state(request(0, "waiting", 0)),
            (refused(0, 1, budget=1, chosen=4),),
            f"a waiting request waits for encoder budget spent on {ASKED_BEFORE}",
        ),
        (
            state(request(0, "waiting", 0), request(1, "paused", 0, blocks=60)),
            (Call("allocate_slots", 0, -1, False, 8),),
            "a waiting request waits for KV blocks held by a paused request",
        ),
        (
            state(request(0, "waiting", 0)),
            (Call("check_and_update_cache", 0, 0, True),),
            "a waiting request gets a chunk of zero tokens without any refusal",
        ),
        (
            state(request(0, "waiting", 0)),
            (),
            "a waiting request gets no tokens and nothing is asked for it",
        ),
    ],
)
def test_a_stall_tells_who_waits_for_what(
    stands: EngineState, calls: tuple[Call, ...], mechanism: str
) -> None:
    """Stalls of different causes would be one group, and only one of them shrunk."""
    steps = [event(0, stands), *(a_pass(index, stands, calls=calls) for index in range(2))]
    findings, _ = judge(steps, TWO_ITEMS, TWO_ITEMS)
    assert [f.mechanism for f in findings if f.claim == "no-stall"] == [mechanism]


def test_a_run_that_comes_to_rest_leaves_nobody_behind() -> None:
    """An engine that believes itself idle would never show a pass that changes nothing."""
    waiting = state(request(0, "waiting", 0))
    findings, _ = judge([event(0, waiting), a_pass(0, waiting)], TEXT, ending="idle")
    assert [finding.claim for finding in findings] == ["no-stall"]
    ended = state(request(0, "finished", 0))
    findings, _ = judge([event(0, waiting), a_pass(0, ended)], TEXT, ending="idle")
    assert not findings


def test_a_pass_that_raised_is_no_stall() -> None:
    """It counts as an error already."""
    raised = a_pass(1, STUCK, error=ErrorSeen("AssertionError", ""))
    findings, _ = judge([*to_the_second_item(), raised], TWO_ITEMS, ending="error")
    assert not findings
