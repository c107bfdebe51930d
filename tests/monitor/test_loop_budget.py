"""Pass-uses-budget on traces built by hand: who got too little, and what excuses it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spec.monitor.progress.least_chunk import Wish, least_chunk
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.run_findings import LoopFinding
from spec.record.scenario import ScenarioRequest
from spec.record.steps import Call, EngineState, PassSeen
from tests.support.progress_steps import (
    CONFIG,
    TEXT,
    TWO_ITEMS,
    A,
    B,
    a_pass,
    event,
    judge,
    ran,
    refused,
    request,
    state,
)

CLAIM = "pass-uses-budget"
BY_PRIORITY = replace(CONFIG, policy="priority")


def short(
    before: EngineState,
    step: PassSeen,
    *sources: ScenarioRequest,
    config: EngineConfig = CONFIG,
) -> list[LoopFinding]:
    """What the claim says of one pass."""
    findings, _ = judge([event(0, before), step], *sources, config=config, all_claims=True)
    return [finding for finding in findings if finding.claim == CLAIM]


def slots(index: int, *, answer: bool = True, end: int = 0) -> Call:
    return Call("allocate_slots", index, -1, answer, end)


def freed(index: int) -> Call:
    return Call("free", index)


def test_a_running_request_that_is_passed_over() -> None:
    """Wrong: an index that slips past a request costs it a pass, and nobody sees it."""
    runs = state(request(0, "running", 7), request(1, "running", 2))
    (finding,) = short(runs, a_pass(0, runs, ran(0, 7, 3)), TEXT, TEXT)
    assert (finding.claim, finding.request) == ("pass-uses-budget", 1)
    assert finding.mechanism == (
        "a running request that is not tried gets no tokens and lacks nothing"
    )
    assert not short(runs, a_pass(0, runs, ran(0, 2, 8)), TEXT, TEXT)
    assert not short(runs, a_pass(0, runs, ran(0, 7, 3), ran(1, 2, 5)), TEXT, TEXT)


def test_a_waiting_request_that_is_not_admitted() -> None:
    """Wrong: a pass that ends early leaves its tokens to nobody."""
    waits = state(request(0, "running", 7), request(1, "waiting", 0))
    step = a_pass(0, waits, ran(0, 7, 3))
    assert [finding.request for finding in short(waits, step, TEXT, TEXT)] == [1]
    assert not short(waits, step, TEXT, TEXT, config=replace(CONFIG, max_num_seqs=1))
    denied = replace(step, calls=(slots(1, answer=False),))
    assert not short(waits, denied, TEXT, TEXT)
    assert not short(waits, replace(step, preempted=(0,)), TEXT, TEXT)
    assert not short(waits, replace(step, rejected=(1,)), TEXT, TEXT)


def test_one_that_goes_before_it_may_end_the_admissions() -> None:
    """Wrong: engines that keep the order of arrival are blamed for what they lack."""
    waits = state(request(0, "waiting", 0), request(1, "waiting", 0))
    behind = a_pass(0, waits, calls=(slots(0, answer=False),))
    assert not short(waits, behind, TEXT, TEXT)
    other_way = a_pass(0, waits, calls=(slots(1, answer=False),))
    assert [finding.request for finding in short(waits, other_way, TEXT, TEXT)] == [0]
    assert not short(waits, other_way, TEXT, TEXT, config=BY_PRIORITY)
    whole = replace(CONFIG, whole_items=True)
    long = ScenarioRequest(10, (Feature(0, 4, "A"),))
    seven = a_pass(0, waits, ran(2, 0, 5))
    assert short(waits, seven, TEXT, TEXT, TEXT, config=whole)
    assert not short(waits, seven, long, TEXT, TEXT, config=whole)


def test_who_stands_behind_a_refused_request_is_for_another_claim() -> None:
    """Wrong: one cause is told under two claims."""
    waits = state(request(0, "waiting", 0), request(1, "waiting", 0))
    findings, _ = judge(
        [event(0, waits), a_pass(0, waits, calls=(refused(0),))], TWO_ITEMS, TEXT, all_claims=True
    )
    assert [finding.claim for finding in findings][:1] == ["work-conserving"]
    assert CLAIM not in [finding.claim for finding in findings]


def test_a_chunk_that_is_shorter_than_what_is_left() -> None:
    """Wrong: tokens that were charged twice are missing from somebody's chunk only."""
    runs = state(request(0, "running", 2))
    (finding,) = short(runs, a_pass(0, runs, ran(0, 2, 5)), TEXT)
    assert finding.mechanism == "a running request gets fewer tokens than there are for it"
    assert not short(runs, a_pass(0, runs, ran(0, 2, 8)), TEXT)
    limited = replace(CONFIG, long_prefill_token_threshold=5)
    assert not short(runs, a_pass(0, runs, ran(0, 2, 5)), TEXT, config=limited)
    cut = a_pass(0, runs, ran(0, 2, 2), calls=(refused(0, 1),))
    assert not short(runs, cut, TWO_ITEMS)
    assert short(runs, replace(cut, scheduled=(ran(0, 2, 1),)), TWO_ITEMS)


def test_tokens_of_a_victim_come_back_to_those_behind() -> None:
    """Wrong: what a victim was to run stays charged to the pass."""
    runs = state(request(0, "running", 2), request(1, "running", 7), request(2, "running", 2))
    gone = state(request(0, "preempted", 0), request(1, "running", 10), request(2, "running", 4))
    calls = (
        slots(0, end=5),
        slots(1, answer=False, end=10),
        freed(0),
        slots(1, end=10),
        slots(2, end=4),
    )
    step = a_pass(0, gone, ran(1, 7, 3), ran(2, 2, 2), calls=calls, preempted=(0,))
    sources = (TEXT, TEXT, TEXT)
    # The second asked before the victim's tokens came back, the third after that.
    found = short(runs, step, *sources, config=BY_PRIORITY)
    assert [(f.claim, f.request) for f in found] == [("pass-uses-budget", 2)]
    untried = replace(step, scheduled=(ran(1, 7, 3),), calls=calls[:-1])
    assert [f.request for f in short(runs, untried, *sources, config=BY_PRIORITY)] == [2]
    # The third asked before the second did, with what the victim had left.
    early = (*calls[:1], slots(2, end=7), *calls[1:4])
    before = replace(step, scheduled=(ran(2, 2, 5), ran(1, 7, 3)), calls=early)
    assert not short(runs, before, *sources, config=replace(BY_PRIORITY, max_num_batched_tokens=9))


def test_it_is_told_once_for_a_request() -> None:
    """Wrong: a report lists every pass."""
    runs = state(request(0, "running", 2))
    steps = [event(0, runs), *(a_pass(index, runs, ran(0, 2, 5)) for index in range(3))]
    findings, monitor = judge(steps, TEXT, all_claims=True)
    assert len([finding for finding in findings if finding.claim == CLAIM]) == 1
    assert monitor.premises[CLAIM] == 3


@pytest.mark.parametrize(
    ("wish", "tokens", "changes", "least"),
    [
        (Wish(0, 10, 10, True), 8, {}, 8),
        (Wish(0, 10, 10, True), 8, {"long_prefill_token_threshold": 3}, 3),
        (Wish(0, 10, 10, True, (A, B), (4,)), 8, {}, 4),
        (Wish(0, 10, 10, True, (A, B), (4,)), 8, {"scheduler_lookahead": 1}, 3),
        (Wish(0, 10, 10, True, (A, B)), 6, {"whole_items": True}, 4),
        (Wish(0, 10, 10, True, (A, B)), 6, {"whole_items": True, "scheduler_lookahead": 1}, 0),
        (Wish(0, 10, 10, True, (A, B)), 8, {"whole_items": True}, 8),
        (Wish(0, 10, 10, True, (A, B)), 6, {"whole_items": True, "is_encoder_decoder": True}, 6),
        (Wish(0, 20, 20, True), 7, {"block_alignment": 4}, 4),
        (Wish(2, 18, 20, True), 7, {"block_alignment": 4}, 2),
        (Wish(0, 3, 20, True), 3, {"block_alignment": 4}, 0),
        (Wish(19, 3, 20, True), 8, {"block_alignment": 4}, 3),
        (Wish(0, 10, 10, True), 9, {"scheduler_lookahead": 3}, 7),
        (Wish(0, 10, 10, True), 7, {"scheduler_lookahead": 3}, 7),
        (Wish(9, 1, 10, False), 2, {"num_speculative_tokens": 2}, 0),
        (Wish(9, 1, 10, False), 3, {"num_speculative_tokens": 2}, 1),
        (Wish(9, 1, 10, True), 1, {"num_speculative_tokens": 2}, 1),
        (Wish(8, 10, 18, True), 9, {"num_kv_blocks": 12}, 3),
    ],
)
def test_the_least_chunk(wish: Wish, tokens: int, changes: dict[str, object], least: int) -> None:
    """Wrong: an engine is blamed for a chunk that another rule ends, or excused without one."""
    config = replace(CONFIG, max_num_batched_tokens=9, **changes)
    assert least_chunk(wish, tokens, config) == least
