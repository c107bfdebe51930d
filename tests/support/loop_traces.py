"""A small run by hand, and what other tests need to change it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from spec.monitor.monitor import check_trace
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import (
    Call,
    Encoding,
    Ending,
    EngineState,
    ErrorSeen,
    EventSeen,
    LoopBookState,
    PassSeen,
    Read,
    RequestState,
    RowRun,
    ScheduledRequest,
    Status,
    Step,
    Trace,
    UpdateSeen,
    WorkerSeen,
)

References = dict[str, tuple[int, ...]]

CONFIG = EngineConfig(
    max_num_batched_tokens=4,
    encoder_compute_budget=8,
    encoder_cache_size=8,
    num_kv_blocks=32,
    scheduler_lookahead=1,
    gather_lookahead=1,
    num_speculative_tokens=1,
)
A, B = Feature(0, 4, "A"), Feature(4, 4, "B")
SCENARIO = Scenario(CONFIG, (ScenarioRequest(9, (A, B)),))
TWO = Scenario(CONFIG, (ScenarioRequest(9, (A, B)), ScenarioRequest(9, (A,))))


def req(index: int, status: Status, computed: int, num_tokens: int = 9) -> RequestState:
    return RequestState(index, status, computed, 0, 0, num_tokens, computed)


def book(references: References, free: int, freeable: int | None) -> LoopBookState:
    unreferenced = tuple(name for name, holders in references.items() if not holders)
    return LoopBookState(tuple(references.items()), unreferenced, free, freeable)


def state(requests: Iterable[RequestState], entries: LoopBookState) -> EngineState:
    requests = tuple(requests)
    return EngineState(
        requests,
        tuple(r.request for r in requests if r.status in ("waiting", "preempted")),
        tuple(r.request for r in requests if r.status == "running"),
        entries,
    )


def read(rows: tuple[tuple[int, int, int], ...], *mask: tuple[int, int]) -> Read:
    runs = tuple(RowRun(*row) for row in rows)
    return Read(runs, tuple(run.num_rows for run in runs), mask)


def hit(feature: int, request: int = 0, answer: bool = True) -> Call:
    return Call("check_and_update_cache", request, feature, answer)


def fits(feature: int, request: int = 0, answer: bool = True) -> Call:
    return Call("can_allocate", request, feature, answer)


def enters(feature: int, request: int = 0) -> Call:
    return Call("allocate", request, feature)


def lets_go(feature: int, request: int = 0) -> Call:
    return Call("free_encoder_input", request, feature)


def arrival(index: int = 0, prompt: int = 9, size: int = 8) -> EventSeen:
    waiting = req(index, "waiting", 0, prompt)
    return EventSeen(0, "arrival", index, (), (), state([waiting], book({}, size, size)))


EMPTY = Read()
ERROR_A = Read(error=ErrorSeen("RuntimeError", "Encoder cache miss for A."))
CONTENTS = (("A", 0), ("B", 1))
HOLDS_BOTH: References = {"A": (0,), "B": (0,)}
HOLDS_B: References = {"A": (), "B": (0,)}
HOLDS_NONE: References = {"A": (), "B": ()}


def scheduled(
    computed: int, tokens: int, *, request: int = 0, prefill: int = 9
) -> ScheduledRequest:
    return ScheduledRequest(request, computed, tokens, 0, 0, prefill, computed == 0)


FIRST = PassSeen(
    index=0,
    calls=(hit(0, answer=False), fits(0), hit(1, answer=False), fits(1), enters(0), enters(1)),
    scheduled=(scheduled(0, 4),),
    encoder_inputs=((0, 0), (0, 1)),
    notices=(),
    preempted=(),
    rejected=(),
    state=state([req(0, "running", 4)], book(HOLDS_BOTH, 0, 0)),
    worker=WorkerSeen(
        received=((0, 0), (0, 1)),
        forgotten=(),
        encoded=(Encoding(0, 0, 0, 4), Encoding(1, 0, 1, 4)),
        contents=CONTENTS,
        target=read(((0, 0, 4),), (0, 4)),
        drafter=read(((0, 1, 3), (1, 0, 1)), (0, 4)),
    ),
)
FIRST_UPDATE = UpdateSeen(
    0, (), (lets_go(0),), (), state([req(0, "running", 4)], book(HOLDS_B, 0, 4))
)
SECOND = PassSeen(
    index=1,
    calls=(hit(1),),
    scheduled=(scheduled(4, 4),),
    encoder_inputs=(),
    notices=(),
    preempted=(),
    rejected=(),
    state=state([req(0, "running", 8)], book(HOLDS_B, 0, 4)),
    worker=WorkerSeen((), (), (), CONTENTS, read(((1, 0, 4),), (0, 4)), read(((1, 1, 3),), (0, 3))),
)
SECOND_UPDATE = UpdateSeen(
    1, (), (lets_go(1),), (), state([req(0, "running", 8)], book(HOLDS_NONE, 0, 8))
)
THIRD = PassSeen(
    index=2,
    calls=(),
    scheduled=(scheduled(8, 1),),
    encoder_inputs=(),
    notices=(),
    preempted=(),
    rejected=(),
    state=state([req(0, "running", 9)], book(HOLDS_NONE, 0, 8)),
    worker=WorkerSeen((), (), (), CONTENTS, EMPTY, EMPTY),
)
FINISHED = UpdateSeen(
    2,
    (),
    (Call("free", 0),),
    (),
    state([req(0, "finished", 9, 10)], book(HOLDS_NONE, 0, 8)),
)
CLEAN: tuple[Step, ...] = (
    arrival(),
    FIRST,
    FIRST_UPDATE,
    SECOND,
    SECOND_UPDATE,
    THIRD,
    FINISHED,
)


def check(
    steps: Iterable[Step], scenario: Scenario = SCENARIO, ending: Ending = "stopped"
) -> tuple[LoopFinding, ...]:
    """Findings on steps by hand; see :func:`of_other_claims`."""
    return of_other_claims(check_trace(Trace(scenario, "by hand", "V1", tuple(steps), ending)))


def of_other_claims(findings: Iterable[LoopFinding]) -> tuple[LoopFinding, ...]:
    """Findings but those of ``counts-agree``, which recorded traces test.

    Steps by hand leave out counts and calls that do not matter to what they show.
    """
    return tuple(finding for finding in findings if finding.claim != "counts-agree")


def claims(
    steps: Iterable[Step], scenario: Scenario = SCENARIO, ending: Ending = "stopped"
) -> set[str]:
    return {finding.claim for finding in check(steps, scenario, ending)}


def edited(step: PassSeen, **worker: Any) -> PassSeen:
    """The pass with fields of its worker replaced."""
    assert step.worker is not None
    return replace(step, worker=replace(step.worker, **worker))


def clean_with(step: Step) -> tuple[Step, ...]:
    """The clean trace with one step replaced."""
    places = [
        i
        for i, old in enumerate(CLEAN)
        if old.kind == step.kind and getattr(old, "index", -1) == getattr(step, "index", -1)
    ]
    (place,) = places
    return (*CLEAN[:place], step, *CLEAN[place + 1 :])
