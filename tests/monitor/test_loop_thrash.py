"""No-thrash on traces built by hand: each circle, and what only looks like one."""

from __future__ import annotations

from dataclasses import replace

from spec.monitor.progress.hidden_state import HiddenState
from spec.record.scenario import Continuation, FailedLoad, Scenario
from spec.record.steps import (
    RequestOutcome,
    ScheduledRequest,
    Step,
)
from tests.support.progress_steps import (
    CONFIG,
    TEXT,
    TWO_ITEMS,
    a_pass,
    event,
    judge,
    ran,
    request,
    state,
    stuck,
    to_the_second_item,
    update,
)


def preempting(rounds: int, *, emitted: int = 0, grows: int = 0) -> list[Step]:
    """Request 0 runs four tokens in one pass and is preempted in the next, again and again."""
    steps: list[Step] = [event(0, state(request(0, "waiting", 0)))]
    for index in range(0, 2 * rounds, 2):
        tokens = 4 + grows * index
        runs = state(request(0, "running", tokens))
        gone = state(request(0, "preempted", 0))
        steps += [
            a_pass(index, runs, ran(0, 0, tokens, started=True)),
            update(index, runs, RequestOutcome(0, 0, emitted)),
            a_pass(index + 1, gone, preempted=(0,)),
        ]
    return steps


def test_a_circle_is_told_once_with_its_loop() -> None:
    """Otherwise a run that computes the same tokens for ever passes as busy."""
    findings, monitor = judge(preempting(5), TEXT)
    (finding,) = findings
    assert (finding.claim, finding.loop) == ("no-thrash", (1, 2))
    assert finding.mechanism == "a request is preempted again and again before it gets further"
    assert monitor.settled
    assert monitor.premises["no-thrash"] > 0


def test_a_mark_that_grows_ends_a_circle() -> None:
    """Getting further, or emitting a token, is what the circle would have to lack."""
    assert not judge(preempting(5, emitted=1), TEXT)[0]
    assert not judge(preempting(5, grows=1), TEXT)[0]


def test_an_event_ends_a_circle() -> None:
    """The world may send the run through the same states as often as it likes."""
    steps = preempting(4)
    again = state(request(0, "preempted", 0))
    with_events = [
        extended
        for step in steps
        for extended in (
            [event(step.index, again, "reset", -1), step]
            if step.kind == "pass" and step.scheduled and step.index
            else [step]
        )
    ]
    assert not judge(with_events, TEXT, resets=(2, 4, 6))[0]


def test_a_failed_load_ends_a_circle() -> None:
    """What it takes back is computed again through the same states."""
    low, high = state(request(0, "running", 4)), state(request(0, "running", 8))
    steps: list[Step] = [
        event(0, state(request(0, "waiting", 0))),
        a_pass(0, high, ran(0, 0, 8, started=True)),
        update(0, high, RequestOutcome(0, 0, 0)),
    ]
    for index in range(1, 4):
        rewound = RequestOutcome(0, 0, 0, dropped=True, rewound=4)
        steps += [a_pass(index, high, ran(0, 4, 4)), update(index, low, rewound)]
    loads = tuple(FailedLoad(index, 4) for index in range(1, 4))
    assert not judge(steps, replace(TEXT, failed_loads=loads))[0]


def test_answers_of_the_world_that_are_left_are_state() -> None:
    """A later start may find a longer prefix; only the same answers make the same moment."""
    prefix_caching = replace(CONFIG, prefix_caching=True)
    hits = replace(TEXT, prefix_hits=(0, 0, 0, 0, 0, 0))
    assert not judge(preempting(3), hits, config=prefix_caching)[0]
    few = replace(TEXT, prefix_hits=(0,))
    assert judge(preempting(3), few, config=prefix_caching)[0]


def test_passes_in_flight_are_state() -> None:
    """An asynchronous engine reports the same requests while another output is still to come."""
    here, there = state(request(0, "running", 4)), state(request(0, "running", 4, blocks=1))
    steps: list[Step] = [
        event(0, here),
        a_pass(0, here, ran(0, 0, 4)),
        a_pass(1, there, ran(0, 1, 3)),
        update(0, there, RequestOutcome(0, 0, 0)),
        a_pass(2, here, ran(0, 2, 2)),
        update(1, here, RequestOutcome(0, 0, 0)),
        a_pass(3, here),
    ]
    assert not judge(steps, TEXT)[0]
    same = [
        replace(step, scheduled=(ran(0, 0, 4),)) if step.kind == "pass" and step.scheduled else step
        for step in steps
    ]
    assert [finding.claim for finding in judge(same, TEXT)[0]] == ["no-thrash"]


def test_drafts_that_were_answered_are_state() -> None:
    """The same moment with another answer to come is another moment."""
    here = state(request(0, "running", 4, drafts=1))
    there = state(request(0, "running", 6))
    verifies = replace(ran(0, 4, 2), num_draft_tokens=1)
    steps: list[Step] = [event(0, here), a_pass(0, here), update(0, here)]
    for index in range(1, 3):
        steps += [a_pass(index, there, verifies), update(index, here, RequestOutcome(0, 0, 0))]
    steps.append(a_pass(3, here))
    drafting = replace(CONFIG, num_speculative_tokens=1)
    answers = replace(TEXT, accepted_drafts=(0, 0))
    assert not [f for f in judge(steps, answers, config=drafting)[0] if f.claim == "no-thrash"]
    assert [f for f in judge(steps, TEXT, config=drafting)[0] if f.claim == "no-thrash"]


def test_outputs_that_will_be_thrown_away_are_state() -> None:
    """A pass in flight whose request was preempted since brings another update."""
    before = state(request(0, "running", 4))
    rests = []
    for preempted in ((), (0,)):
        history = HiddenState(Scenario(CONFIG, (TEXT,)))
        history.observe_pass(a_pass(0, before, ran(0, 0, 4)), before)
        history.observe_pass(a_pass(1, before, preempted=preempted), before)
        rests.append(history.rest())
    assert rests[0] != rests[1]


def test_only_a_start_from_nothing_uses_a_prefix_hit_up() -> None:
    """A streaming request that goes on where it was does not look for one."""
    hits = replace(TEXT, prefix_hits=(3, 5))
    for computed, expected in ((4, 3), (0, 5)):
        history = HiddenState(Scenario(CONFIG, (hits,)))
        before = state(request(0, "waiting", computed))
        history.observe_pass(a_pass(0, before, ran(0, computed, 1, started=True)), before)
        assert history.start(request(0, "preempted", 0)) == expected


def test_the_end_of_a_turn_counts_what_is_in_flight() -> None:
    """A request that surely ends its turn is not ready; one in its next turn is."""
    source = replace(TEXT, continuations=(Continuation(0, 5, max_tokens=3),))
    history = HiddenState(Scenario(CONFIG, (source,)))
    at = request(0, "running", 13, placeholders=2, tokens=12)
    before = state(at)
    assert not history.surely_ends(at)
    for index in range(2):
        samples = ScheduledRequest(0, 11 + index, 1, 0, index, 12, False)
        history.observe_pass(a_pass(index, before, samples), before)
    assert history.surely_ends(at)
    history.observe_event(replace(event(2, before, "continuation"), continued=((0, 13),)))
    assert not history.surely_ends(at)
    assert not history.surely_ends(replace(at, num_tokens=18))
    assert history.surely_ends(replace(at, num_tokens=19))


def test_waiting_for_an_update_is_no_circle() -> None:
    """The state is the same in every pass, but it was never left."""
    waits = state(request(0, "running", 4))
    steps = [
        event(0, state(request(0, "waiting", 0))),
        a_pass(0, waits, ran(0, 0, 4, started=True)),
        *(a_pass(index, waits) for index in range(1, 6)),
    ]
    assert not judge(steps, TEXT)[0]


def test_a_stall_is_not_also_a_circle() -> None:
    """One effect counts once."""
    findings, _ = judge([*to_the_second_item(), *stuck(last=9)], TWO_ITEMS)
    assert [finding.claim for finding in findings] == ["no-stall"]


def test_a_round_that_throws_its_tokens_away_is_a_circle() -> None:
    """Tokens ran, so the state was left, although it looks the same at each round's end."""
    here = state(request(0, "running", 4))
    there = state(request(0, "running", 8))
    steps: list[Step] = [event(0, here), a_pass(0, here), update(0, here)]
    for index in range(1, 4):
        steps += [a_pass(index, there, ran(0, 4, 4)), update(index, here, RequestOutcome(0, 0, 0))]
    (finding,) = (f for f in judge(steps, TEXT)[0] if f.claim == "no-thrash")
    assert finding.mechanism == "tokens are computed again and again without a preemption"
