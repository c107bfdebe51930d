"""A kill of any process of a long command leaves no process and no half-written file."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.support.kills import BY_NAME, killed_and_run_again, left_alone


def test_a_kill_leaves_no_process_and_no_half_file(tmp_path: Path) -> None:
    """Wrong: workers run on for nobody, half a file passes for whole, or a resumed run differs.

    Two moments of one command; ``python -m tests.support.kills`` goes through all.
    """
    command = BY_NAME["explore"]
    alone = left_alone(command, tmp_path / "alone")
    assert {"found.json", "job-00000.json"} <= alone.results.keys()
    killed_and_run_again(command, "parent", 0.8, alone, tmp_path / "parent", Random(0))
    killed_and_run_again(command, "worker", 0.7, alone, tmp_path / "worker", Random(0))
