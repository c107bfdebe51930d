"""Workers start with nobody else's code, and do not outlive their parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import is_free, wait_until, workers_of

ROOT = Path(__file__).parents[2]

TRAP = """
with open({log!r}, "a") as log:
    log.write(__name__ + "\\n")
raise ImportError("a module of the current folder was imported")
"""

STARTS = """
import json, os
from proofs.jobs.processes import run_jobs
from proofs.jobs.workers import worker_processes
from tests.support.loop_jobs import any_end

if __name__ == "__main__":
    before = dict(os.environ)
    answers = [answer.value or answer.failed for answer in run_jobs(any_end, ["well"], ["it"])]
    with worker_processes(1) as pool:
        answers.append(pool.submit(len, "four").result())
    print(json.dumps([answers, before == dict(os.environ)]))
"""


def test_no_worker_imports_what_lies_in_the_current_folder(tmp_path: Path) -> None:
    """Wrong: a module of a checkout in which a command is run has its rights before any check."""
    log = tmp_path / "imported"
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in {*sys.stdlib_module_names, "pip", "proofs", "spec", "impl", "torch", "vllm"}:
        (folder / f"{name}.py").write_text(TRAP.format(log=str(log)))
    # As a command is: its own folder is on the path, and not the current one.
    program = tmp_path / "bin" / "command.py"
    program.parent.mkdir()
    program.write_text(STARTS)
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSTARTUP": str(folder / "json.py")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not log.exists(), log.read_text()
    assert json.loads(done.stdout) == [["did well", 4], True], done.stderr


HOLDS_THE_LOCK = """
import sys
from proofs.jobs.workers import worker_processes
from tests.support.loop_jobs import hold_without_other_threads
with worker_processes(1) as pool:
    pool.submit(hold_without_other_threads, sys.argv[1]).result()
"""


def test_a_worker_that_lets_no_thread_run_ends_with_its_parent(tmp_path: Path) -> None:
    """Wrong: a worker that is deep in a solver runs on for hours after a kill."""
    held = tmp_path / "held"
    parent = subprocess.Popen([sys.executable, "-c", HOLDS_THE_LOCK, str(held)], cwd=ROOT)
    try:
        wait_until((tmp_path / "held.at-work").exists, "a worker at work")
        (worker,) = workers_of(parent.pid)
        assert not is_free(held)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    try:
        wait_until(lambda: is_free(held), "the end of the worker")
    except TimeoutError:
        os.kill(worker, signal.SIGKILL)
        raise
