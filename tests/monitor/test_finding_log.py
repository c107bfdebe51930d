"""What of a contradiction that stays is reported, and when."""

from __future__ import annotations

from dataclasses import replace

from spec.history.log import FindingLog
from spec.record.steps import EngineState
from tests.support.loop_traces import (
    FIRST,
    FIRST_UPDATE,
    HOLDS_B,
    HOLDS_BOTH,
    References,
    book,
    check,
    clean_with,
    req,
    state,
)


def _note(log: FindingLog, subject: str, mechanism: str) -> None:
    log.add_standing("slots-conserved", subject, mechanism, observed="1", expected="2")


def test_a_second_mechanism_is_reported_where_the_claim_is_contradicted_already() -> None:
    """Wrong: a fault that shows while another stands is never seen."""
    log = FindingLog()
    log.begin(0)
    _note(log, "free", "above")
    log.settle("slots-conserved")
    assert [finding.mechanism for finding in log.take()] == ["above"]
    for mechanism in ("above", "below", "below"):
        _note(log, "free", mechanism)
        log.settle("slots-conserved")
    assert [finding.mechanism for finding in log.take()] == ["below"]
    assert log.mechanism_of("slots-conserved", "free") == "below"
    assert log.mechanism_of("slots-conserved", "freeable") is None


def test_a_contradiction_that_came_to_an_end_is_reported_again() -> None:
    """Wrong: what is mended and breaks once more counts as seen."""
    log = FindingLog()
    log.begin(0)
    for is_wrong in (True, True, False, True):
        if is_wrong:
            _note(log, "free", "above")
        log.settle("slots-conserved")
    assert len(log.take()) == 2


def test_slots_that_drift_the_other_way_are_reported_too() -> None:
    """Wrong: slots that are above the true sum hide that they fall below it."""
    steps = list(clean_with(replace(FIRST, state=_slots(HOLDS_BOTH, 1, 0))))
    place = steps.index(FIRST_UPDATE)
    steps[place] = replace(FIRST_UPDATE, state=_slots(HOLDS_B, -1, 4))
    mechanisms = [f.mechanism for f in check(steps) if f.claim == "slots-conserved"]
    assert mechanisms[:2] == ["free slots above the true sum", "free slots below the true sum"]


def _slots(holders: References, free: int, freeable: int) -> EngineState:
    return state([req(0, "running", 4)], book(holders, free, freeable))
