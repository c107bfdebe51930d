"""The monitor of the loop on hand-built traces: slots, references, errors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import (
    Encoding,
    ErrorSeen,
    LoopBookState,
    Status,
    Step,
    UpdateSeen,
    WorkerSeen,
)
from tests.support.loop_traces import (
    CLEAN,
    CONFIG,
    FINISHED,
    FIRST,
    FIRST_UPDATE,
    HOLDS_B,
    HOLDS_BOTH,
    HOLDS_NONE,
    SECOND,
    SECOND_UPDATE,
    THIRD,
    TWO,
    arrival,
    book,
    check,
    claims,
    clean_with,
    enters,
    fits,
    hit,
    lets_go,
    read,
    req,
    scheduled,
    state,
)


@pytest.mark.parametrize(("free", "freeable"), [(1, 0), (0, 1), (-1, 0)])
def test_slots_that_drift(free: int, freeable: int) -> None:
    wrong = replace(FIRST, state=state([req(0, "running", 4)], book(HOLDS_BOTH, free, freeable)))
    assert claims(clean_with(wrong)) == {"slots-conserved"}


def test_entry_that_nobody_allocated() -> None:
    wrong = replace(FIRST, calls=tuple(call for call in FIRST.calls if call != enters(1)))
    found = claims(clean_with(wrong))
    assert "slots-conserved" in found
    assert "need-agrees" in found


def test_freeable_list_that_is_not_the_unreferenced_entries() -> None:
    entries = LoopBookState(tuple(HOLDS_B.items()), ("B",), 0, 4)
    wrong = replace(FIRST_UPDATE, state=state([req(0, "running", 4)], entries))
    assert claims(clean_with(wrong)) == {"slots-conserved"}


def test_reference_dropped_in_a_pass() -> None:
    """Free before the step has run: the worker still reads the feature."""
    early = replace(
        SECOND,
        calls=(hit(1), lets_go(1)),
        state=state([req(0, "running", 8)], book(HOLDS_NONE, 0, 8)),
    )
    late = replace(SECOND_UPDATE, calls=())
    steps = (*CLEAN[:3], early, late, THIRD, FINISHED)
    assert claims(steps, ending="idle") == {"dropped-in-update"}


def test_reference_that_vanishes() -> None:
    gone = replace(FIRST_UPDATE, calls=())
    assert claims(clean_with(gone)) == {"dropped-in-update"}


LATE_TEXT = Scenario(
    CONFIG, (ScenarioRequest(9, (Feature(0, 6, "A", (True,) * 2 + (False,) * 4),)),)
)
LATE_TEXT_STEPS: tuple[Step, ...] = (
    arrival(),
    replace(
        FIRST,
        calls=(hit(0, answer=False), fits(0), enters(0)),
        encoder_inputs=((0, 0),),
        state=state([req(0, "running", 4)], book({"A": (0,)}, 6, 6)),
        worker=WorkerSeen(
            ((0, 0),),
            (),
            (Encoding(0, 0, 0, 2),),
            (("A", 0),),
            read(((0, 0, 2),), (0, 2)),
            read(((0, 1, 1),), (0, 1)),
        ),
    ),
    replace(FIRST_UPDATE, state=state([req(0, "running", 4)], book({"A": ()}, 6, 8))),
)


def test_reference_dropped_before_its_end() -> None:
    """All its rows were read, so that nothing else is wrong."""
    assert claims(LATE_TEXT_STEPS, LATE_TEXT) == {"freed-not-needed"}


def test_drafts_in_flight_do_not_count_as_progress() -> None:
    """A feature that ends where only drafts have got to may be read again."""
    drafts = replace(FIRST, scheduled=(replace(FIRST.scheduled[0], num_draft_tokens=1),))
    second = replace(SECOND, state=state([req(0, "running", 8)], book(HOLDS_BOTH, 0, 0)))
    ahead = (arrival(), drafts, second)
    early = UpdateSeen(
        1, (), (lets_go(1),), (), state([req(0, "running", 8)], book({"A": (0,), "B": ()}, 0, 4))
    )
    assert claims([*ahead, early]) == {"freed-not-needed", "held-until-last-use"}
    updated = replace(FIRST_UPDATE, state=state([req(0, "running", 8)], book(HOLDS_B, 0, 4)))
    assert claims([*ahead, updated, SECOND_UPDATE]) == set()


TWICE = Scenario(CONFIG, (ScenarioRequest(9, (Feature(0, 4, "A"), Feature(4, 4, "A"))),))
TWICE_FIRST = replace(
    FIRST,
    calls=(hit(0, answer=False), fits(0), enters(0)),
    encoder_inputs=((0, 0),),
    state=state([req(0, "running", 4)], book({"A": (0,)}, 4, 4)),
    worker=WorkerSeen(
        ((0, 0), (0, 1)),
        (),
        (Encoding(0, 0, 0, 4),),
        (("A", 0),),
        read(((0, 0, 4),), (0, 4)),
        read(((0, 1, 3), (0, 0, 1)), (0, 4)),
    ),
)


def test_reference_dropped_while_a_duplicate_needs_it() -> None:
    dropped = replace(FIRST_UPDATE, state=state([req(0, "running", 4)], book({"A": ()}, 4, 8)))
    kept = replace(dropped, state=state([req(0, "running", 4)], book({"A": (0,)}, 4, 4)))
    assert claims([arrival(), TWICE_FIRST, dropped], TWICE) == {"held-until-last-use"}
    assert claims([arrival(), TWICE_FIRST, kept], TWICE) == set()


def test_occurrence_that_was_not_taken_does_not_count() -> None:
    """The second item lies past the window: it has not been asked for, and may be encoded again."""
    far = Scenario(CONFIG, (ScenarioRequest(19, (Feature(0, 3, "A"), Feature(12, 3, "A"))),))
    first = replace(
        TWICE_FIRST,
        scheduled=(scheduled(0, 4, prefill=19),),
        state=state([req(0, "running", 4, 19)], book({"A": (0,)}, 5, 5)),
        worker=WorkerSeen(
            ((0, 0),),
            (),
            (Encoding(0, 0, 0, 3),),
            (("A", 0),),
            read(((0, 0, 3),), (0, 3)),
            read(((0, 1, 2),), (0, 2)),
        ),
    )
    freed = replace(FIRST_UPDATE, state=state([req(0, "running", 4, 19)], book({"A": ()}, 5, 8)))
    assert claims([arrival(prompt=19), first, freed], far) == set()


@pytest.mark.parametrize("status", ["waiting", "preempted", "paused"])
def test_request_that_does_not_run_keeps_a_reference(status: Status) -> None:
    other = req(1, status, 4 if status == "paused" else 0)
    entries = book({"A": (1,), "B": (0,)}, 0, 0)
    before = replace(FIRST_UPDATE, state=state([req(0, "running", 4), other], entries))
    after = replace(SECOND, state=state([req(0, "running", 8), other], entries))
    assert claims([*CLEAN[:2], before, after], TWO) == {"no-idle-references"}


def test_paused_request_may_keep_what_it_has_not_processed() -> None:
    other = req(1, "paused", 3)
    entries = book({"A": (1,), "B": (0,)}, 0, 0)
    before = replace(FIRST_UPDATE, state=state([req(0, "running", 4), other], entries))
    after = replace(SECOND, state=state([req(0, "running", 8), other], entries))
    assert claims([*CLEAN[:2], before, after], TWO) == set()


def test_schedule_that_raises() -> None:
    failed = replace(
        SECOND,
        calls=(),
        scheduled=(),
        worker=None,
        error=ErrorSeen("KeyError", "'request-0'"),
        state=FIRST_UPDATE.state,
    )
    steps = (*CLEAN[:3], failed)
    assert claims(steps, ending="error") == {"no-error"}


def test_refusal_although_hashes_stand_for_contents() -> None:
    assert claims(clean_with(replace(THIRD, rejected=(0,)))) == {"no-error"}


def test_finished_request_that_keeps_a_reference() -> None:
    """It is found when it begins, and not again at the end."""
    kept = state([req(0, "finished", 9, 10)], book(HOLDS_B, 0, 4))
    steps = (
        *CLEAN[:4],
        replace(SECOND_UPDATE, calls=(), state=SECOND.state),
        replace(THIRD, state=state([req(0, "running", 9)], book(HOLDS_B, 0, 4))),
        replace(FINISHED, calls=(), state=kept),
    )
    found = check(steps, ending="idle")
    assert [finding.claim for finding in found] == ["released"]
