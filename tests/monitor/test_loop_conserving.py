"""Work-conserving on traces built by hand: who is held up, and what excuses it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spec.monitor.progress.conserving import smallest_step
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.run_findings import LoopFinding
from spec.record.scenario import ScenarioRequest
from spec.record.steps import (
    Call,
    LoopBookState,
    RequestOutcome,
    RequestState,
    ScheduledRequest,
)
from tests.support.progress_steps import (
    A_HELD,
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
    update,
)


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
    updated = [*steps[:-1], update(0, gone, RequestOutcome(1, 0, 0)), steps[-1]]
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
    single_seq = replace(CONFIG, max_num_seqs=1)
    head = request(0, "running", 0)
    assert not held_up(head=head, config=single_seq)
    assert held_up(
        head=head, other=request(1, "running", 4), config=replace(single_seq, max_num_seqs=2)
    )
    paused = request(2, "paused", 4)
    assert not held_up(others=(paused,), config=single_seq)


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
    book = LoopBookState((("A", (0,)), ("B", (0,))), (), 0, 0)
    assert held_up(sources=sources, book=book)
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
