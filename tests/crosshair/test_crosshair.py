"""CrossHair is believed only when its log says that every path was taken."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
from click.testing import CliRunner

from impl.reference.scheduling import guards
from proofs.crosshair import __main__ as command
from proofs.crosshair import canaries, contracts, explore, integer_rules
from proofs.crosshair.explore import (
    ROOT,
    Exploration,
    Status,
    check,
    diffbehavior,
    read_check,
    read_diffbehavior,
)
from proofs.crosshair.runner import GUARDS, Job, Report, jobs, line_of
from spec.verdict import Verdict

EXHAUSTED = Exploration(Status.EXHAUSTED, 4)
EARLY = Exploration(Status.NOT_EXHAUSTED, 4)
FOUND = Exploration(Status.COUNTEREXAMPLE, 0, "x=1")
FAILED = Exploration(Status.FAILED, 0, "no such function")

CONFIRMED = "c.py:9: info: Confirmed over all paths.\n"
CONFIRMED_LOG = (
    "1.0| |analyze_calltree() Exhausted calltree search with CONFIRMED and 0 messages. "
    "Number of iterations:  7\n"
)
NOT_CONFIRMED_LOG = "1.0| |explore_loop() Iteration  1\n1.1| |explore_loop() Iteration  2\n"
SAME = "No differences found. (attempted 6 iterations)\n"
SAME_ALL = SAME + "All paths exhausted, functions are likely the same!\n"
ORDER_LOG = "1.0| |explore_loop() Stopping due to path exhaustion\n"


def test_a_broken_guard_is_caught() -> None:
    """If a guard that is wrong for one integer in millions passes, nothing was explored."""
    found = check("proofs.crosshair.canaries.tolerance_v1")
    assert found.status is Status.COUNTEREXAMPLE
    assert str(canaries.REMOTE) in found.detail


def test_a_right_guard_is_exhausted() -> None:
    """If a guard of two comparisons cannot be exhausted, CrossHair left the integers."""
    compared = diffbehavior(
        "impl.reference.scheduling.guards.overlaps", "proofs.crosshair.integer_rules.overlaps"
    )
    assert compared.status is Status.EXHAUSTED
    assert compared.paths > 1


def test_an_unknown_function_fails() -> None:
    """A misspelt name must not look like a guard that was explored."""
    assert check("proofs.crosshair.contracts.nothing").status is Status.FAILED
    assert diffbehavior(
        "impl.reference.scheduling.guards.no", "impl.reference.scheduling.guards.no"
    ).status is (Status.FAILED)


@pytest.mark.parametrize(
    ("exit_code", "output", "log", "status", "paths"),
    [
        (0, CONFIRMED, CONFIRMED_LOG, Status.EXHAUSTED, 7),
        (0, CONFIRMED * 2, CONFIRMED_LOG * 2, Status.EXHAUSTED, 14),
        (0, CONFIRMED * 2, CONFIRMED_LOG, Status.NOT_EXHAUSTED, 0),
        (0, CONFIRMED, "", Status.NOT_EXHAUSTED, 0),
        (0, "c.py:9: info: Not confirmed.\n", NOT_CONFIRMED_LOG, Status.NOT_EXHAUSTED, 2),
        (0, CONFIRMED + "c.py:9: info: Not confirmed.\n", CONFIRMED_LOG, Status.NOT_EXHAUSTED, 0),
        (0, "", "", Status.FAILED, 0),
        (1, "c.py:9: error: false when calling f(1)\n", "", Status.COUNTEREXAMPLE, 0),
        (1, "", "", Status.FAILED, 0),
        (2, "", "no such module", Status.FAILED, 0),
    ],
)
def test_reading_a_check(exit_code: int, output: str, log: str, status: Status, paths: int) -> None:
    """An exploration that ended early exits with 0 as well."""
    read = read_check(exit_code, output, log)
    assert (read.status, read.paths) == (status, paths)


@pytest.mark.parametrize(
    ("exit_code", "output", "log", "status", "paths"),
    [
        (0, SAME_ALL, ORDER_LOG * 2, Status.EXHAUSTED, 6),
        (0, SAME_ALL, ORDER_LOG, Status.NOT_EXHAUSTED, 6),
        (0, SAME, "", Status.NOT_EXHAUSTED, 6),
        (0, "", ORDER_LOG * 2, Status.FAILED, 0),
        (1, "Given: (x=1),\n f : returns 1\n g : returns 2\n", "", Status.COUNTEREXAMPLE, 0),
        (2, "", "no such function", Status.FAILED, 0),
    ],
)
def test_reading_a_comparison(
    exit_code: int, output: str, log: str, status: Status, paths: int
) -> None:
    """CrossHair speaks of exhaustion when only one of its two orders was exhausted."""
    read = read_diffbehavior(exit_code, output, log)
    assert (read.status, read.paths) == (status, paths)


@pytest.mark.parametrize(
    ("exploration", "required", "canary", "verdict"),
    [
        (EXHAUSTED, True, False, Verdict.HELD),
        (EARLY, True, False, Verdict.UNKNOWN),
        (EARLY, False, False, Verdict.HELD),
        (FOUND, False, False, Verdict.REFUTED),
        (FAILED, False, False, Verdict.ERROR),
        (FOUND, False, True, Verdict.HELD),
        (EXHAUSTED, False, True, Verdict.ERROR),
        (EARLY, False, True, Verdict.ERROR),
        (FAILED, False, True, Verdict.ERROR),
    ],
)
def test_verdicts(exploration: Exploration, required: bool, canary: bool, verdict: Verdict) -> None:
    """A canary that lives, and a required guard that was not exhausted, must not pass."""
    job = Job("g", "contract", lambda: exploration, required, canary)
    assert Report(job, exploration).verdict is verdict


@pytest.mark.parametrize(
    ("exploration", "code"), [(EXHAUSTED, 0), (FOUND, 1), (EARLY, 3), (FAILED, 5)]
)
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, exploration: Exploration, code: int) -> None:
    """The exit code is that of the worst exploration."""
    good = Job("good", "contract", lambda: EXHAUSTED, True)
    bad = Job("bad", "contract", lambda: exploration, True)
    monkeypatch.setattr(command, "jobs", lambda: (bad, good))
    outcome = CliRunner().invoke(command.main, [])
    assert outcome.exit_code == code
    assert line_of(Report(bad, exploration)) in outcome.output


def test_missing_crosshair_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CrossHair the message says what to install."""
    monkeypatch.setattr(explore, "find_spec", lambda name: None)
    outcome = CliRunner().invoke(command.main, [])
    assert outcome.exit_code == 2
    assert "pip install" in outcome.output


def test_every_guard_is_listed() -> None:
    """A guard of the reference that is in no list would be left out unseen."""
    functions = {
        name
        for name, value in vars(guards).items()
        if inspect.isfunction(value) and value.__module__ == guards.__name__
    }
    assert {guard.function for guard in GUARDS} == functions
    required = {guard.name for guard in GUARDS if guard.required}
    assert required == {"free", "tolerance_v1", "tolerance_v2", "overlap"}


def test_every_job_names_existing_functions() -> None:
    """Each guard has its contract, each required one its canaries of the same contract."""
    for guard in GUARDS:
        contract = getattr(contracts, guard.name)
        assert "post:" in str(contract.__doc__)
        if guard.compared:
            assert inspect.signature(getattr(integer_rules, guard.function)) == (
                inspect.signature(getattr(guards, guard.function))
            )
        if guard.required:
            conditions = [
                [line for line in str(function.__doc__).splitlines() if ": " in line]
                for function in (contract, getattr(canaries, guard.name))
            ]
            assert conditions[0] == conditions[1]
    assert len(jobs()) == sum(1 + guard.compared + 2 * guard.required for guard in GUARDS)


def test_no_extension_is_on_the_path() -> None:
    """CrossHair silently stops exploring at tensors, arrays and solvers."""
    code = (
        "import sys, proofs.crosshair.contracts, proofs.crosshair.canaries,"
        " proofs.crosshair.integer_rules\n"
        "print({m.partition('.')[0] for m in sys.modules}"
        " & {'torch', 'numpy', 'z3', 'cvc5', 'pydantic'})"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert outcome.stdout.strip() == "set()"
