"""Progress claims on traces built by hand: each violation, and what only looks like one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from spec.feature import Feature
from spec.loop.config import EngineConfig
from spec.loop.findings import LoopFinding
from spec.loop.progress import ProgressMonitor
from spec.loop.progress_conserving import smallest_step
from spec.loop.progress_history import History
from spec.loop.scenario import Continuation, FailedLoad, Scenario, ScenarioRequest
from spec.loop.steps import (
    Call,
    Ending,
    EngineState,
    Event,
    EventSeen,
    LoopBookState,
    Outcome,
    PassSeen,
    RequestState,
    ScheduledRequest,
    Status,
    Step,
    UpdateSeen,
)
from spec.observations import ErrorSeen

CONFIG = EngineConfig(
    max_num_batched_tokens=8, encoder_compute_budget=8, encoder_cache_size=4, num_kv_blocks=64
)
EMPTY = LoopBookState((), (), 4, 4)
A, B = Feature(0, 4, "A"), Feature(4, 4, "B")
TEXT = ScenarioRequest(10, max_tokens=4)
TWO_ITEMS = ScenarioRequest(10, (A, B), max_tokens=4)
A_HELD = LoopBookState((("A", (0,)),), (), 0, 0)


def held_by(*holders: int) -> LoopBookState:
    return replace(A_HELD, references=(("A", holders),))


def request(
    index: int,
    status: Status,
    computed: int,
    *,
    placeholders: int = 0,
    drafts: int = 0,
    tokens: int = 10,
    blocks: int = 0,
) -> RequestState:
    return RequestState(index, status, computed, placeholders, drafts, tokens, blocks)


def state(*requests: RequestState, book: LoopBookState = EMPTY) -> EngineState:
    return EngineState(
        requests,
        tuple(r.request for r in requests if r.status in ("waiting", "preempted")),
        tuple(r.request for r in requests if r.status == "running"),
        book,
    )


def ran(index: int, computed: int, tokens: int, *, started: bool = False) -> ScheduledRequest:
    return ScheduledRequest(index, computed, tokens, 0, 0, 10, started)


def a_pass(
    index: int,
    after: EngineState,
    *scheduled: ScheduledRequest,
    calls: tuple[Call, ...] = (),
    preempted: tuple[int, ...] = (),
    rejected: tuple[int, ...] = (),
    error: ErrorSeen | None = None,
) -> PassSeen:
    return PassSeen(index, calls, scheduled, (), (), preempted, rejected, after, None, error)


def update(index: int, after: EngineState, *outcomes: Outcome) -> UpdateSeen:
    return UpdateSeen(index, outcomes, (), (), after)


def event(before: int, after: EngineState, kind: Event = "arrival", request: int = 0) -> EventSeen:
    return EventSeen(before, kind, request, (), (), after)


def refused(request: int, feature: int = 0, *, budget: int = 8, chosen: int = 0) -> Call:
    return Call("can_allocate", request, feature, False, budget, chosen)


def judge(
    steps: Iterable[Step],
    *requests: ScenarioRequest,
    config: EngineConfig = CONFIG,
    resets: tuple[int, ...] = (),
    ending: Ending = "stopped",
) -> tuple[list[LoopFinding], ProgressMonitor]:
    monitor = ProgressMonitor(Scenario(config, requests, resets))
    findings = [finding for step in steps for finding in monitor.observe(step)]
    return [*findings, *monitor.finish(ending)], monitor


# no-stall

STUCK = state(request(0, "running", 4), book=A_HELD)
ASKED_BEFORE = "items that it asked for before in the same pass"
STUCK_CALLS = (Call("check_and_update_cache", 0, 1, False), refused(0, 1))


def stuck(first: int = 1, last: int = 3, after: EngineState = STUCK) -> list[Step]:
    return [a_pass(index, after, calls=STUCK_CALLS) for index in range(first, last)]


def to_the_second_item(book: LoopBookState = A_HELD) -> list[Step]:
    """Request 0 arrives and runs its first item."""
    half = state(request(0, "running", 4), book=book)
    return [
        event(0, state(request(0, "waiting", 0))),
        a_pass(0, half, ran(0, 0, 4, started=True)),
        update(0, half, Outcome(0, 0, 0)),
    ]


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


# no-thrash


def preempting(rounds: int, *, emitted: int = 0, grows: int = 0) -> list[Step]:
    """Request 0 runs four tokens in one pass and is preempted in the next, again and again."""
    steps: list[Step] = [event(0, state(request(0, "waiting", 0)))]
    for index in range(0, 2 * rounds, 2):
        tokens = 4 + grows * index
        runs = state(request(0, "running", tokens))
        gone = state(request(0, "preempted", 0))
        steps += [
            a_pass(index, runs, ran(0, 0, tokens, started=True)),
            update(index, runs, Outcome(0, 0, emitted)),
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
        update(0, high, Outcome(0, 0, 0)),
    ]
    for index in range(1, 4):
        rewound = Outcome(0, 0, 0, dropped=True, rewound=4)
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
        update(0, there, Outcome(0, 0, 0)),
        a_pass(2, here, ran(0, 2, 2)),
        update(1, here, Outcome(0, 0, 0)),
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
        steps += [a_pass(index, there, verifies), update(index, here, Outcome(0, 0, 0))]
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
        history = History(Scenario(CONFIG, (TEXT,)))
        history.observe_pass(a_pass(0, before, ran(0, 0, 4)), before)
        history.observe_pass(a_pass(1, before, preempted=preempted), before)
        rests.append(history.rest())
    assert rests[0] != rests[1]


def test_only_a_start_from_nothing_uses_a_prefix_hit_up() -> None:
    """A streaming request that goes on where it was does not look for one."""
    hits = replace(TEXT, prefix_hits=(3, 5))
    for computed, expected in ((4, 3), (0, 5)):
        history = History(Scenario(CONFIG, (hits,)))
        before = state(request(0, "waiting", computed))
        history.observe_pass(a_pass(0, before, ran(0, computed, 1, started=True)), before)
        assert history.start(request(0, "preempted", 0)) == expected


def test_the_end_of_a_turn_counts_what_is_in_flight() -> None:
    """A request that surely ends its turn is not ready; one in its next turn is."""
    source = replace(TEXT, continuations=(Continuation(0, 5, max_tokens=3),))
    history = History(Scenario(CONFIG, (source,)))
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
        steps += [a_pass(index, there, ran(0, 4, 4)), update(index, here, Outcome(0, 0, 0))]
    (finding,) = (f for f in judge(steps, TEXT)[0] if f.claim == "no-thrash")
    assert finding.mechanism == "tokens are computed again and again without a preemption"


# work-conserving


def held_up(
    *,
    other: RequestState | None = None,
    calls: tuple[Call, ...] = (),
    scheduled: tuple[ScheduledRequest, ...] = (),
    others: tuple[RequestState, ...] = (),
    head: RequestState | None = None,
    sources: tuple[ScenarioRequest, ...] = (TWO_ITEMS, TEXT, TEXT),
    config: EngineConfig = CONFIG,
    book: LoopBookState = A_HELD,
    preempted: tuple[int, ...] = (),
    rejected: tuple[int, ...] = (),
    encoder_inputs: tuple[tuple[int, int], ...] = (),
) -> list[LoopFinding]:
    """Request 0 is refused its first item; request 1 behind it gets nothing."""
    head = head or request(0, "waiting", 0)
    other = other or request(1, "waiting", 0)
    before = state(head, other, *others, book=book)
    seen = a_pass(
        0,
        before,
        *scheduled,
        calls=(refused(0), *calls),
        preempted=preempted,
        rejected=rejected,
    )
    steps = [event(0, before), replace(seen, encoder_inputs=encoder_inputs)]
    findings, monitor = judge(steps, *sources, config=config)
    assert monitor.premises["work-conserving"] in (0, 1)
    return [finding for finding in findings if finding.claim == "work-conserving"]


def test_a_refused_request_that_ends_the_pass_is_found() -> None:
    """Otherwise a text request may wait for as long as an item in front of it does."""
    (finding,) = held_up()
    assert finding.request == 1
    assert finding.mechanism == (
        "a waiting request that is refused an encoder input holds up a waiting request behind it "
        "that is not tried"
    )


def test_it_is_told_once_for_two_requests() -> None:
    """A report would list every pass."""
    waits = state(request(0, "waiting", 0), request(1, "waiting", 0), book=A_HELD)
    steps = [event(0, waits), *(a_pass(index, waits, calls=(refused(0),)) for index in range(4))]
    findings, monitor = judge(steps, TWO_ITEMS, TEXT)
    assert [finding.claim for finding in findings] == ["work-conserving", "no-stall"]
    assert monitor.premises["work-conserving"] == 4


def test_a_running_request_holds_up_nobody_either() -> None:
    """The same for those that run, and for those that wait behind them."""
    head = request(0, "running", 0)
    assert len(held_up(head=head)) == 1
    assert len(held_up(head=head, other=request(1, "running", 4))) == 1


def test_the_last_refused_request_is_blamed() -> None:
    """One cause would show as several."""
    before = state(
        request(0, "running", 0), request(1, "waiting", 0), request(2, "waiting", 0), book=A_HELD
    )
    calls = (refused(0), refused(1))
    steps = [event(0, before), a_pass(0, before, calls=calls)]
    (finding,) = judge(steps, TWO_ITEMS, TWO_ITEMS, TEXT)[0]
    assert finding.request == 2
    assert finding.observed.startswith("request 1 (waiting) is refused its feature 0")


def test_a_request_that_gets_tokens_is_not_held_up() -> None:
    """The claim's premise happens, and it holds."""
    assert not held_up(scheduled=(ran(1, 0, 8, started=True),))


def test_an_item_ahead_is_only_where_the_chunk_ends() -> None:
    """A request that is cut before an item was not stopped by it."""
    ahead = replace(TWO_ITEMS, features=(Feature(2, 4, "A"),))
    assert not held_up(sources=(ahead, TEXT, TEXT))


def test_a_hit_comes_first() -> None:
    """The first feature asked for was there: what stops the request is something else."""
    before = state(request(0, "running", 0), request(1, "running", 4), book=A_HELD)
    calls = (Call("check_and_update_cache", 0, 0, True), refused(0, 1))
    findings, _ = judge([event(0, before), a_pass(0, before, calls=calls)], TWO_ITEMS, TEXT)
    assert not findings
    past_it = replace(before, requests=(request(0, "running", 5), before.requests[1]))
    findings, _ = judge([event(0, past_it), a_pass(0, past_it, calls=calls)], TWO_ITEMS, TEXT)
    assert "work-conserving" not in [finding.claim for finding in findings]


def test_a_prefix_hit_inside_the_item_counts_as_progress() -> None:
    """The request stands inside its item although it has computed nothing."""
    inside = replace(TWO_ITEMS, features=(Feature(2, 4, "A"),), prefix_hits=(3,))
    config = replace(CONFIG, prefix_caching=True)
    assert len(held_up(sources=(inside, TEXT, TEXT), config=config)) == 1


@pytest.mark.parametrize(
    "other",
    [
        request(1, "paused", 4),
        request(1, "finished", 4),
        request(1, "running", 10),
        request(1, "running", 12, placeholders=2),
        request(1, "running", 13, placeholders=1, tokens=13),
    ],
    ids=["paused", "finished", "all computed", "its token is in flight", "surely at its limit"],
)
def test_nobody_is_held_up_who_is_not_ready(other: RequestState) -> None:
    """They would not have run anyway."""
    assert not held_up(other=other, head=request(0, "running", 0))


def test_a_request_with_output_in_flight_waits_for_it() -> None:
    """Engines hold back a preempted request until its old output is in."""
    runs = state(request(0, "waiting", 0), request(1, "running", 4))
    gone = state(request(0, "waiting", 0), request(1, "preempted", 0))
    steps = [
        event(0, state(request(0, "waiting", 0), request(1, "waiting", 0))),
        a_pass(0, runs, ran(1, 0, 4, started=True)),
        a_pass(1, gone, preempted=(1,)),
        a_pass(2, gone, calls=(refused(0),)),
    ]
    assert not judge(steps, TWO_ITEMS, TEXT)[0]
    updated = [*steps[:-1], update(0, gone, Outcome(1, 0, 0)), steps[-1]]
    assert [finding.claim for finding in judge(updated, TWO_ITEMS, TEXT)[0]] == ["work-conserving"]


def test_lacking_tokens_excuses() -> None:
    """Nobody can run without a token, and some not with one."""
    everything = ran(2, 0, 8, started=True)
    third = request(2, "running", 0)
    assert not held_up(scheduled=(everything,), others=(third,))
    nearly = replace(everything, num_scheduled_tokens=7)
    assert held_up(scheduled=(nearly,), others=(third,))
    drafts = replace(CONFIG, num_speculative_tokens=1)
    decode = request(1, "waiting", 9)
    assert not held_up(scheduled=(nearly,), others=(third,), other=decode, config=drafts)
    whole = replace(CONFIG, whole_items=True, encoder_cache_size=8)
    sources = (TWO_ITEMS, ScenarioRequest(10, (Feature(0, 4, "B"),)), TEXT)
    room = replace(A_HELD, num_freeable_slots=4)
    assert held_up(sources=sources, book=room, config=whole)
    limited = replace(whole, long_prefill_token_threshold=3)
    assert not held_up(sources=sources, book=room, config=limited)


def test_progress_that_was_taken_in_the_pass_counts() -> None:
    """Who lost its KV blocks to a running request needs a whole block from the start again."""
    config = replace(CONFIG, block_alignment=8)
    before = state(
        request(0, "waiting", 0), request(1, "waiting", 2), request(2, "running", 0), book=A_HELD
    )
    for computed, expected in ((2, 1), (0, 0)):
        after = replace(
            before,
            requests=(*before.requests[:1], request(1, "waiting", computed), before.requests[2]),
        )
        runs = ran(2, 0, 2)
        steps = [event(0, before), a_pass(0, after, runs, calls=(refused(0),))]
        findings, _ = judge(steps, TWO_ITEMS, TEXT, TEXT, config=config)
        assert len(findings) == expected


def test_lacking_a_sequence_slot_excuses() -> None:
    """A waiting request cannot start when as many run as may; one that runs already can go on."""
    one = replace(CONFIG, max_num_seqs=1)
    head = request(0, "running", 0)
    assert not held_up(head=head, config=one)
    assert held_up(head=head, other=request(1, "running", 4), config=replace(one, max_num_seqs=2))
    paused = request(2, "paused", 4)
    assert not held_up(others=(paused,), config=one)


def test_lacking_kv_blocks_excuses() -> None:
    """Its own, those of one that waits before it, or of all when the pass had to preempt."""
    own = Call("allocate_slots", 1, -1, False, 8)
    assert not held_up(calls=(own,))
    assert held_up(calls=(replace(own, answer=True),))
    before_it = (replace(own, request=0),)
    assert not held_up(calls=before_it)
    assert held_up(calls=(replace(own, request=2),), others=(request(2, "waiting", 0),))
    assert not held_up(others=(request(2, "running", 4),), preempted=(2,))


def test_lacking_encoder_room_or_budget_excuses() -> None:
    """Its own refusal, or one that it would have met."""
    item = ScenarioRequest(10, (Feature(0, 4, "B"),))
    sources = (TWO_ITEMS, item, TEXT)
    assert not held_up(calls=(refused(1),), sources=sources)
    assert not held_up(sources=sources)
    room = replace(A_HELD, num_freeable_slots=4)
    assert held_up(sources=sources, book=room)
    assert not held_up(sources=sources, book=room, config=replace(CONFIG, encoder_compute_budget=3))
    known = LoopBookState((("A", (0,)), ("B", (0,))), (), 0, 0)
    assert held_up(sources=sources, book=known)
    spent = ran(2, 0, 4, started=True)
    third = request(2, "running", 0)
    sources = (TWO_ITEMS, item, item)
    room = replace(A_HELD, num_freeable_slots=4)
    halved = {"others": (third,), "scheduled": (spent,), "sources": sources, "book": room}
    tight = replace(CONFIG, encoder_compute_budget=7)
    assert held_up(**halved, config=tight)
    assert not held_up(**halved, config=tight, encoder_inputs=((2, 0),))
    further_on = replace(item, features=(Feature(1, 4, "B"),))
    assert held_up(sources=(TWO_ITEMS, further_on, TEXT))


def test_an_encoder_decoder_item_is_needed_at_the_start_only() -> None:
    """Cross-attention reads it from the first step on, and its book keeps no entries."""
    item = ScenarioRequest(10, (Feature(0, 4, "B"),))
    sources = (TWO_ITEMS, item, TEXT)
    config = replace(CONFIG, is_encoder_decoder=True)
    full = LoopBookState((), (), 0, None)
    head = request(0, "running", 0)
    assert not held_up(sources=sources, config=config, book=full)
    assert held_up(sources=sources, config=config, book=replace(full, num_free_slots=4))
    going_on = request(1, "running", 1)
    assert held_up(sources=sources, config=config, book=full, head=head, other=going_on)


def test_who_is_refused_for_good_neither_waits_nor_holds_up() -> None:
    """A hash with another number of rows ends the request."""
    assert held_up()
    assert not held_up(rejected=(1,))
    assert not held_up(rejected=(0,))


@pytest.mark.parametrize(
    ("start", "tokens", "features", "changes", "smallest"),
    [
        (0, 10, (), {}, 1),
        (9, 10, (), {"num_speculative_tokens": 2}, 3),
        (8, 10, (), {"num_speculative_tokens": 2}, 1),
        (0, 10, (A,), {"whole_items": True}, 4),
        (0, 10, (B,), {"whole_items": True}, 1),
        (3, 10, (B,), {"whole_items": True, "scheduler_lookahead": 1}, 5),
        (5, 10, (B,), {"whole_items": True}, 1),
        (1, 10, (), {"block_alignment": 4}, 3),
        (8, 10, (), {"block_alignment": 4}, 2),
        (7, 10, (), {"scheduler_lookahead": 3}, 3),
        (6, 10, (), {"scheduler_lookahead": 3}, 1),
    ],
)
def test_the_smallest_step(
    start: int,
    tokens: int,
    features: tuple[Feature, ...],
    changes: dict[str, object],
    smallest: int,
) -> None:
    """A request would be excused that could run, or blamed that could not."""
    config = replace(CONFIG, **changes)
    waiting = request(0, "waiting", 0, tokens=tokens)
    assert smallest_step(waiting, start, features, config) == smallest
