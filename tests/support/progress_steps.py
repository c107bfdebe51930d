"""Steps of a run built by hand, and what the monitor of progress says of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spec.monitor.progress.progress import ProgressMonitor
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import (
    Call,
    Ending,
    EngineState,
    ErrorSeen,
    Event,
    EventSeen,
    LoopBookState,
    PassSeen,
    RequestOutcome,
    RequestState,
    ScheduledRequest,
    Status,
    Step,
    UpdateSeen,
)

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


def update(index: int, after: EngineState, *outcomes: RequestOutcome) -> UpdateSeen:
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
    all_claims: bool = False,
) -> tuple[list[LoopFinding], ProgressMonitor]:
    """What the monitor finds.

    Passes by hand run as few tokens as a test needs, so that what they leave unused counts only
    where all claims are asked for.
    """
    monitor = ProgressMonitor(Scenario(config, requests, resets))
    findings = [finding for step in steps for finding in monitor.observe(step)]
    findings += monitor.finish(ending)
    if not all_claims:
        findings = [finding for finding in findings if finding.claim != "pass-uses-budget"]
    return findings, monitor


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
        update(0, half, RequestOutcome(0, 0, 0)),
    ]
