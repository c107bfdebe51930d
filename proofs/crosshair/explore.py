"""Run CrossHair on a function and read how far it explored.

``crosshair check`` and ``crosshair diffbehavior`` exit with 0 as well when they gave up early, and
``diffbehavior`` claims exhaustion when one of its two orders was exhausted. So the verbose log is
read too, and whatever is not said there counts as not explored.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path

from spec.errors import InputError

ROOT = Path(__file__).resolve().parents[2]

SECONDS_PER_CONDITION = 15
"""Processor time that CrossHair may spend on one condition. It decides only whether an exploration
ends as exhausted; the required ones take less than a second."""

_CONFIRMED = ": info: Confirmed over all paths."
_NOT_CONFIRMED = ": info: Not confirmed."
_CHECK_LOG = re.compile(r"Exhausted calltree search with CONFIRMED .*iterations: +(\d+)")
_DIFF_PATHS = re.compile(r"No differences found\. \(attempted (\d+) iterations\)")
_DIFF_EXHAUSTED = "explore_loop() Stopping due to path exhaustion"
_ORDERS = 2


class Status(Enum):
    """How an exploration ended."""

    EXHAUSTED = "exhausted"
    NOT_EXHAUSTED = "not exhausted"
    COUNTEREXAMPLE = "counterexample"
    FAILED = "failed"


@dataclass(frozen=True)
class Exploration:
    """How an exploration ended, how many paths it took, and what CrossHair said."""

    status: Status
    paths: int
    detail: str = ""


def require_crosshair() -> None:
    """Check that CrossHair is installed.

    Raises:
        InputError: it is not.
    """
    if find_spec("crosshair") is None:
        raise InputError(
            "CrossHair is missing; install the project with its extra `dev` "
            "(`pip install -e .[dev]`)"
        )


def check(contract: str) -> Exploration:
    """Check the contract of a function, given by its qualified name."""
    result = _crosshair("check", "--report_all", "--analysis_kind", "PEP316", contract)
    return read_check(result.returncode, result.stdout, result.stderr)


def diffbehavior(first: str, second: str) -> Exploration:
    """Look for arguments for which two functions, given by qualified names, differ."""
    result = _crosshair("diffbehavior", first, second)
    return read_diffbehavior(result.returncode, result.stdout, result.stderr)


def read_check(exit_code: int, output: str, log: str) -> Exploration:
    """Read what ``crosshair check --report_all --verbose`` printed for one function."""
    messages = [line for line in output.splitlines() if re.search(r":\d+: \w+: ", line)]
    paths = [int(number) for number in _CHECK_LOG.findall(log)]
    errors = [line for line in messages if ": error: " in line]
    if exit_code == 1 and errors:
        return Exploration(Status.COUNTEREXAMPLE, sum(paths), errors[0].partition(": error: ")[2])
    if exit_code != 0 or not messages:
        return Exploration(Status.FAILED, sum(paths), _last_line(output + log))
    confirmed = [line for line in messages if line.endswith(_CONFIRMED)]
    if len(confirmed) == len(messages) == len(paths):
        return Exploration(Status.EXHAUSTED, sum(paths))
    attempted = len(re.findall(r"explore_loop\(\) Iteration ", log))
    return Exploration(Status.NOT_EXHAUSTED, attempted)


def read_diffbehavior(exit_code: int, output: str, log: str) -> Exploration:
    """Read what ``crosshair diffbehavior --verbose`` printed."""
    if exit_code == 1 and "Given: " in output:
        return Exploration(Status.COUNTEREXAMPLE, 0, " ".join(output.split()))
    attempted = _DIFF_PATHS.search(output)
    if exit_code != 0 or attempted is None:
        return Exploration(Status.FAILED, 0, _last_line(output + log))
    if log.count(_DIFF_EXHAUSTED) == _ORDERS:
        return Exploration(Status.EXHAUSTED, int(attempted[1]))
    return Exploration(Status.NOT_EXHAUSTED, int(attempted[1]))


def _crosshair(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    limit = ("--verbose", "--per_condition_timeout", str(SECONDS_PER_CONDITION))
    return subprocess.run(
        [sys.executable, "-m", "crosshair", command, *limit, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "CrossHair printed nothing"
