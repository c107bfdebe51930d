"""Warm processes: what they share among jobs, and what they do not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from proofs.jobs import warm
from proofs.jobs.processes import run_jobs
from proofs.jobs.warm import WarmUp, end_at_rest
from tests.support.loop_jobs import end_the_origin, look_around, prepare
from tests.support.waiting import is_free, wait_until


def looked(how: str, names: Sequence[str]) -> list[tuple[int, int, list[str]]]:
    """What jobs saw that ran one after the other, with something made ready."""
    found = []
    for answer in run_jobs(
        look_around, names, names, at_once=1, warm_up_of=lambda _: WarmUp(prepare, how)
    ):
        found.append(answer.require(names[answer.index]))
    return found


def test_jobs_share_what_is_ready_and_nothing_else() -> None:
    """Wrong: each job imports a release anew, or finds what another one left behind."""
    first, second = looked("well", ["first", "second"])
    (later,) = looked("well", ["later"])
    assert first[1] == second[1] == later[1] != os.getpid()
    assert len({first[0], second[0], later[0], first[1]}) == 4
    assert first[2] == ["well", "first"]
    assert second[2] == ["well", "second"]
    assert later[2] == ["well", "later"]
    (other,) = looked("otherwise", ["other"])
    assert other[1] != first[1]
    assert other[2] == ["otherwise", "other"]


@pytest.mark.parametrize("how", ["with a thread", "for one"])
def test_what_cannot_be_forked_does_one_job(how: str) -> None:
    """Wrong: a fork waits for ever for a thread that it does not have, or for a device."""
    first, second = looked(how, ["first", "second"])
    assert first[1] == second[1] == os.getpid()
    assert first[0] != second[0]
    assert first[2] == [how, "first"]
    assert second[2] == [how, "second"]


def test_a_job_tells_itself_why_nothing_is_ready() -> None:
    """Wrong: what a broken checkout raises on its import is lost, or no job can be run."""
    ((_, _, prepared),) = looked("break down", ["job"])
    assert prepared == ["break down", "job"]


def test_a_fork_ends_with_the_process_that_it_comes_from(tmp_path: Path) -> None:
    """Wrong: where a warm process is killed its fork runs on, and nobody hears it."""
    held = tmp_path / "held"
    (answer,) = run_jobs(
        end_the_origin, [str(held)], ["it"], warm_up_of=lambda _: WarmUp(prepare, "well")
    )
    assert answer.failed is not None
    assert answer.failed.startswith("its process ended early")
    wait_until(lambda: is_free(held), "the end of the fork")
    (found,) = looked("well", ["afterwards"])
    assert found[2] == ["well", "afterwards"]


def test_few_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a sweep of all releases holds all of them in memory."""
    monkeypatch.setattr(warm, "MOST_AT_REST", 2)
    origins = {how: looked(how, ["job"])[0][1] for how in ("one", "two", "three")}
    for how, stays in (("two", True), ("three", True), ("one", False)):
        assert (looked(how, ["again"])[0][1] == origins[how]) == stays
    end_at_rest()
    assert looked("three", ["at last"])[0][1] != origins["three"]
