"""Who waits before whom, and who is preempted: what traces leave an engine free to choose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impl.reference.scheduling.queues import WaitingQueue
from impl.reference.scheduling.scheduled_request import SchedulerRequest
from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Continuation, Scenario, ScenarioRequest
from spec.record.steps import PassSeen


def _requests(priorities: list[int]) -> list[SchedulerRequest]:
    return [
        SchedulerRequest(f"r{index}", (), index=index, priority=priority, arrival=index)
        for index, priority in enumerate(priorities)
    ]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_priority_order_is_by_number_then_arrival(priorities: list[int], data) -> None:
    """Wrong: a request with a lower number, or an earlier one of the same, waits behind another."""
    queue = WaitingQueue("priority")
    for request in data.draw(st.permutations(_requests(priorities))):
        put = data.draw(st.sampled_from([queue.add, queue.put_back]))
        put(request)
    order = [queue.pop() for _ in range(len(queue))]
    assert [(r.priority, r.arrival) for r in order] == sorted(
        (r.priority, r.arrival) for r in order
    )


def test_first_come_first_served_and_back_to_the_front() -> None:
    """Wrong: a preempted request waits behind requests that came after it."""
    queue = WaitingQueue("fcfs")
    first, second, third = _requests([2, 1, 0])
    queue.add(second)
    queue.add(third)
    queue.put_back(first)
    assert [r.index for r in queue.last_first()] == [2, 1, 0]
    queue.remove(second)
    assert [queue.pop(), queue.pop()] == [first, third]


def _passes(scenario: Scenario) -> list[PassSeen]:
    scenario.validate()
    return [step for step in ReferenceLoop().run(scenario, "V1") if step.kind == "pass"]


def _three(policy, priorities: tuple[int, int, int]) -> Scenario:
    """Three requests that generate until the KV blocks are too few."""
    return Scenario(
        EngineConfig(12, 8, 8, num_kv_blocks=10, policy=policy),
        tuple(ScenarioRequest(2, max_tokens=6, priority=priority) for priority in priorities),
    )


@pytest.mark.parametrize(
    ("policy", "priorities", "victim"),
    [
        ("fcfs", (2, 0, 1), 2),
        ("priority", (2, 0, 1), 0),
        ("priority", (0, 1, 1), 2),
        ("priority", (0, 2, 1), 1),
    ],
)
def test_the_victim_is_who_comes_last(policy, priorities, victim: int) -> None:
    """Wrong: a request is thrown back although another one should make room."""
    preempted = [p for step in _passes(_three(policy, priorities)) for p in step.preempted]
    assert preempted[0] == victim


def test_skipped_requests_keep_their_order() -> None:
    """Wrong: requests that could not run in a pass change places for the next one."""
    scenario = Scenario(
        EngineConfig(8, 8, 8, num_kv_blocks=4, block_size=4, max_num_seqs=3),
        (
            ScenarioRequest(8, max_tokens=4),
            ScenarioRequest(12, max_tokens=1, arrival=1),
            ScenarioRequest(9, max_tokens=1, arrival=1),
            ScenarioRequest(10, max_tokens=1, arrival=1),
        ),
    )
    for step in _passes(scenario):
        waiting = [index for index in step.state.waiting if index > 0]
        assert waiting == sorted(waiting)


def test_every_running_request_is_tried_after_one_before_it_was_preempted() -> None:
    """Wrong: when the running list gets shorter in the middle of a pass, somebody is skipped."""
    scenario = Scenario(
        EngineConfig(16, 8, 8, num_kv_blocks=12, policy="priority"),
        (
            ScenarioRequest(2, max_tokens=6, priority=9),
            ScenarioRequest(2, max_tokens=6, priority=0),
            ScenarioRequest(2, max_tokens=6, priority=1),
            ScenarioRequest(2, max_tokens=6, priority=2),
        ),
    )
    step = next(step for step in _passes(scenario) if step.preempted)
    assert step.preempted == (0,)
    assert {entry.request for entry in step.scheduled} == {1, 2, 3}


def test_a_streaming_request_gives_its_blocks_when_nothing_else_can() -> None:
    """Wrong: the last request waits for blocks that a paused one keeps."""
    scenario = Scenario(
        EngineConfig(8, 8, 8, num_kv_blocks=9),
        (
            ScenarioRequest(4, max_tokens=1, continuations=(Continuation(30, 1),)),
            ScenarioRequest(7, max_tokens=2, arrival=2),
        ),
    )
    ends = next(
        step.index
        for step in _passes(scenario)
        if any(s.request == 1 and s.status == "finished" for s in step.state.requests)
    )
    assert ends < 30


def test_a_repeated_item_behind_a_refused_one_does_not_keep_its_room() -> None:
    """Wrong: the request waits for room that its own later occurrence holds, and never runs again.

    Found by a search of half an hour: the drafter's modules let the scheduler look over two items.
    """
    scenario = Scenario(
        EngineConfig(
            3, 1, 1, 60, scheduler_lookahead=2, gather_lookahead=1, num_speculative_tokens=2
        ),
        (ScenarioRequest(3, (Feature(0, 1, "A"), Feature(1, 1, "B"), Feature(2, 1, "A"))),),
    )
    monitor = LoopMonitor(scenario, "V1")
    recording = record(ReferenceLoop(), scenario, "V1", monitor=monitor)
    assert recording.findings == ()
    assert recording.trace.ending == "idle"
