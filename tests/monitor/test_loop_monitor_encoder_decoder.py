"""The monitor of the loop on hand-built traces of an encoder-decoder model."""

from __future__ import annotations

from dataclasses import replace

from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import (
    Encoding,
    EngineState,
    EventSeen,
    PassSeen,
    RequestState,
    Step,
    UpdateSeen,
    WorkerSeen,
)
from tests.support.loop_traces import (
    EMPTY,
    ERROR_A,
    book,
    claims,
    edited,
    enters,
    fits,
    lets_go,
    read,
    req,
    scheduled,
    state,
)

ITEM = Feature(0, 4, "A")
CROSS = Scenario(
    EngineConfig(8, 8, 8, 32, is_encoder_decoder=True),
    (ScenarioRequest(2, (ITEM,), max_tokens=2), ScenarioRequest(2, (Feature(0, 6, "B"),))),
)


def cross_state(free: int, computed: int, *more: RequestState) -> EngineState:
    return state([req(0, "running", computed, 2), *more], book({}, free, None))


CROSS_FIRST = PassSeen(
    0,
    (fits(0), enters(0)),
    (scheduled(0, 2, prefill=2),),
    ((0, 0),),
    (),
    (),
    (),
    cross_state(4, 2),
    WorkerSeen(((0, 0),), (), (Encoding(0, 0, 0, 4),), (("A", 0),), read(((0, 0, 4),)), None),
)
CROSS_UPDATE = UpdateSeen(0, (), (lets_go(0),), (), cross_state(8, 2))
CROSS_ARRIVAL = EventSeen(
    0, "arrival", 0, (), (), state([req(0, "waiting", 0, 2)], book({}, 8, None))
)


def test_encoder_decoder_run_is_clean() -> None:
    assert claims([CROSS_ARRIVAL, CROSS_FIRST, CROSS_UPDATE], CROSS) == set()


def test_encoder_decoder_item_credited_twice() -> None:
    decode = replace(
        CROSS_FIRST,
        index=1,
        calls=(),
        scheduled=(scheduled(2, 1, prefill=3),),
        encoder_inputs=(),
        state=cross_state(8, 3),
        worker=WorkerSeen((), (), (), (("A", 0),), EMPTY, None),
    )
    again = UpdateSeen(1, (), (lets_go(0),), (), cross_state(12, 3))
    steps: list[Step] = [CROSS_ARRIVAL, CROSS_FIRST, CROSS_UPDATE, decode]
    assert claims(steps, CROSS) == set()
    assert claims([*steps, again], CROSS) == {"slots-conserved"}


def test_encoder_decoder_item_missing_in_its_first_step() -> None:
    missing = edited(CROSS_FIRST, contents=(), target=ERROR_A)
    assert claims([CROSS_ARRIVAL, missing], CROSS) == {"target-resident"}


def test_cross_attention_that_reads_other_rows() -> None:
    wrong = edited(CROSS_FIRST, target=read(((0, 0, 3),)))
    assert claims([CROSS_ARRIVAL, wrong], CROSS) == {"rows-exact"}


def test_worker_that_outgrows_the_cache() -> None:
    """The first item was let go, but the worker was never told to drop it."""
    second = PassSeen(
        1,
        (fits(0, 1), enters(0, 1)),
        (scheduled(0, 2, request=1, prefill=2),),
        ((1, 0),),
        (),
        (),
        (),
        cross_state(2, 2, req(1, "running", 2, 2)),
        WorkerSeen(
            ((1, 0),),
            (),
            (Encoding(1, 1, 0, 6),),
            (("A", 0), ("B", 1)),
            read(((1, 0, 6),)),
            None,
        ),
    )
    steps: list[Step] = [CROSS_ARRIVAL, CROSS_FIRST, CROSS_UPDATE]
    assert claims([*steps, second], CROSS) == {"worker-bounded"}
    assert claims([*steps, edited(second, contents=(("B", 1),))], CROSS) == set()
