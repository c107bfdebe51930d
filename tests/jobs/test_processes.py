"""Jobs in processes of their own: each answers in its own way, and none outlives its limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from impl.temporary import sweep, temporary_folder
from proofs.jobs.ending import code_of
from proofs.jobs.processes import JobError, Limits, run_jobs
from proofs.jobs.warm import WarmUp
from spec.errors import InputError
from tests.support.loop_jobs import any_end, warm
from tests.support.waiting import is_free, wait_until

ROOT = Path(__file__).parents[2]
WarmUpOf: TypeAlias = Callable[[str], WarmUp] | None
both_ways = pytest.mark.parametrize("warm_up_of", [None, warm], ids=["alone", "fork"])
"""A job in a new process, and in a fork of a warm one."""


@both_ways
def test_each_job_answers_in_its_own_way(warm_up_of: WarmUpOf) -> None:
    """One that breaks down or dies would take the others with it, or pass for one that ended."""
    ends = ["well", "refuse", "break down", "die"]
    activities: list[str] = []
    answers = {
        ends[answer.index]: answer
        for answer in run_jobs(
            any_end,
            ends,
            ends,
            report_progress=lambda activity, *_: activities.append(activity),
            warm_up_of=warm_up_of,
        )
    }
    assert answers["well"].value == "did well"
    assert answers["refuse"].refused == "wrong on purpose"
    assert answers["break down"].failed == "ZeroDivisionError: on purpose"
    assert answers["die"].failed == "its process ended early (exit code 7): the last words"
    assert "well: well" in activities
    with pytest.raises(InputError, match="refuse: wrong on purpose"):
        answers["refuse"].require("refuse")
    with pytest.raises(JobError, match="die: its process ended early"):
        answers["die"].require("die")


@both_ways
def test_jobs_that_are_stopped_return_what_they_have(warm_up_of: WarmUpOf) -> None:
    """Ctrl-C would lose everything, or be waited for in vain; and no further job may start."""
    asked = iter([False, False])
    answers = list(
        run_jobs(
            any_end,
            ["wait", "well"],
            ["first", "second"],
            should_stop=lambda: next(asked, True),
            at_once=1,
            warm_up_of=warm_up_of,
        )
    )
    assert [answer.value for answer in answers] == ["stopped"]


@both_ways
def test_a_job_that_hangs_is_ended_and_told(warm_up_of: WarmUpOf) -> None:
    """Wrong: an endless loop in a checkout hangs the command for ever."""
    (answer,) = run_jobs(
        any_end, ["hang"], ["it"], limits=Limits(seconds_of_silence=0.5), warm_up_of=warm_up_of
    )
    assert answer.value is None
    # Whether it had begun by then depends on the machine.
    assert answer.failed in {
        "ended after 0.5 s without progress, at: starting",
        "ended after 0.5 s without progress, at: hang (1 of 2)",
    }


@both_ways
def test_a_job_that_takes_too_much_memory_breaks_down_alone(warm_up_of: WarmUpOf) -> None:
    """Wrong: what a checkout allocates takes the whole machine along."""
    limits = Limits(num_bytes=1 << 30)
    ends = ["take all memory", "well"]
    done = run_jobs(any_end, ends, ends, limits=limits, warm_up_of=warm_up_of)
    answers = {ends[answer.index]: answer for answer in done}
    assert answers["take all memory"].failed == "MemoryError"
    assert answers["well"].value == "did well"


PARENT = """
import sys
from proofs.jobs.processes import run_jobs
from tests.support.loop_jobs import hold, warm
list(run_jobs(hold, [sys.argv[1]], ["it"], warm_up_of=warm if sys.argv[2] == "fork" else None))
"""


@pytest.mark.parametrize("way", ["alone", "fork"])
def test_no_job_outlives_a_parent_that_was_killed(tmp_path: Path, way: str) -> None:
    """Wrong: workers of a killed command run for ever, and its folders stay."""
    held = tmp_path / "held"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(held), way],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        wait_until((tmp_path / "held.at-work").exists, "a job at work")
        assert not is_free(held)
        left = [path.name for path in tmp_path.glob("residency-*")]
        assert left == [name for name in left if name.startswith(f"residency-jobs-{parent.pid}-")]
        assert left
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: is_free(held), "the end of the job")
    sweep(tmp_path)
    assert not list(tmp_path.glob("residency-*"))


def test_only_what_is_left_behind_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a running command loses its folder, or other people's files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"residency-jobs-{ended.pid}-abc"
    (left / "inside").mkdir(parents=True)
    target = tmp_path / "target"
    target.mkdir()
    link = tmp_path / f"residency-model-{ended.pid}-abc"
    link.symlink_to(target)
    notes = tmp_path / "residency-notes"
    notes.mkdir()
    # The number of a process that ended is given to another one, such as this.
    another = tmp_path / f"residency-jobs-{os.getpid()}-abc"
    another.mkdir()
    (another / ".residency-lock").touch()
    with temporary_folder("jobs") as folder, temporary_folder("model") as second:
        assert not left.exists()
        assert not another.exists()
        sweep(tmp_path)
        kept = {target, link, notes, Path(folder), Path(second)}
        assert set(tmp_path.iterdir()) == kept
    assert set(tmp_path.iterdir()) == {target, link, notes}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_is_lost_is_told_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong: a command that was interrupted at its very end says that all was well."""

    class Careless:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def command() -> int:
        careless = Careless()
        del careless
        return 0

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert code_of(command) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err.endswith("Interrupted.\n")
