"""Comparing the runs of both runners."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spec.monitor.monitor import compare_runners
from spec.record.steps import (
    Encoding,
    Read,
    Trace,
)
from tests.support.loop_traces import (
    CLEAN,
    EMPTY,
    FIRST,
    SCENARIO,
    TWO,
    clean_with,
    edited,
    read,
)


def test_runners_that_read_the_same_agree_whatever_their_encodings_are_called() -> None:
    """Reads are compared by hash and row; an encoding's number is the runner's own affair."""
    first = Trace(SCENARIO, "by hand", "V1", CLEAN, "idle")
    renamed = edited(
        FIRST,
        encoded=(Encoding(7, 0, 0, 4), Encoding(1, 0, 1, 4)),
        contents=(("A", 7), ("B", 1)),
        target=read(((7, 0, 4),), (0, 4)),
        drafter=read(((7, 1, 3), (1, 0, 1)), (0, 4)),
    )
    assert compare_runners(first, replace(first, steps=clean_with(renamed)[:2])) == ()


@pytest.mark.parametrize(
    "drafter",
    [
        read(((0, 1, 3),), (0, 3)),
        read(((0, 1, 3), (1, 1, 1)), (0, 4)),
        read(((0, 1, 3), (1, 0, 1)), (0, 3)),
        replace(read(((0, 1, 3), (1, 0, 1)), (0, 4)), slices=(1, 2, 1)),
    ],
    ids=["fewer", "rows", "mask", "slices"],
)
def test_runners_that_read_differently(drafter: Read) -> None:
    first = Trace(SCENARIO, "by hand", "V1", CLEAN, "idle")
    other = replace(first, steps=clean_with(edited(FIRST, drafter=drafter)))
    (finding,) = compare_runners(first, other)
    assert (finding.claim, finding.pass_index) == ("runners-agree", 0)


def test_runners_are_compared_only_while_they_run_the_same() -> None:
    first = Trace(SCENARIO, "by hand", "V1", CLEAN, "idle")
    other = edited(replace(FIRST, notices=("Z",)), drafter=EMPTY)
    assert compare_runners(first, replace(first, steps=clean_with(other))) == ()


def test_traces_of_two_scenarios_are_not_compared() -> None:
    first = Trace(SCENARIO, "by hand", "V1", CLEAN, "idle")
    with pytest.raises(ValueError, match="two scenarios"):
        compare_runners(first, replace(first, scenario=TWO))
