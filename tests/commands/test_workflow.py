"""The workflow that others copy: what it asks for, and what its commands do in a checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.reference_as_vllm import write_folder

ROOT = Path(__file__).parents[2]
FILE = ROOT / ".github" / "workflows" / "residency.yml"
OLD, NEW = "shifted-cut", "no-boundary-tolerance"
FEW, ENOUGH = "40", "120"
"""Scenarios in which the faults show, and those that put every claim to the test."""


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    """The workflow as data."""
    data: dict[Any, Any] = yaml.safe_load(FILE.read_text("utf-8"))
    return data


@pytest.fixture(scope="module")
def steps(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    """The steps of its only job."""
    (job,) = workflow["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def test_it_asks_for_nothing_that_it_does_not_need(workflow: dict[Any, Any]) -> None:
    """Whoever opens a pull request could write to the repository, or read its secrets."""
    text = FILE.read_text("utf-8")
    assert workflow["permissions"] == {"contents": "read"}
    # YAML 1.1 reads the key `on` as true.
    assert list(workflow[True]) == ["pull_request"]
    assert "secrets" not in text
    assert "pull_request_target" not in text
    (job,) = workflow["jobs"].values()
    assert "permissions" not in job
    assert 0 < job["timeout-minutes"] <= 60


def test_actions_are_pinned(steps: list[dict[str, Any]]) -> None:
    """A tag can be moved to other code after the workflow was reviewed."""
    used = [step["uses"] for step in steps if "uses" in step]
    assert len(used) == 3
    lines = FILE.read_text("utf-8").splitlines()
    for action in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action), action
        (line,) = (line for line in lines if action in line)
        assert re.search(r" # v\d+\.\d+\.\d+$", line), line
    checkout = next(step for step in steps if "checkout@" in step.get("uses", ""))
    assert checkout["with"]["persist-credentials"] is False
    assert checkout["with"]["fetch-depth"] == 0


def test_no_command_holds_what_a_pull_request_says(steps: list[dict[str, Any]]) -> None:
    """A branch's name would be run as shell."""
    commands = [step["run"] for step in steps if "run" in step]
    assert len(commands) == 4
    assert not [command for command in commands if "${{" in command]


def test_nothing_of_the_change_takes_part_in_the_judging(
    workflow: dict[Any, Any], steps: list[dict[str, Any]]
) -> None:
    """Wrong: a module of the checkout is installed, or imported in place of Python's own."""
    names = [step["name"] for step in steps]
    assert names.index("Install residency") < names.index("Check out the change")
    (job,) = workflow["jobs"].values()
    assert job["env"]["PYTHONSAFEPATH"] == "1"
    inside = [step["name"] for step in steps if "run" in step and "working-directory" not in step]
    assert inside == ["Check out the merge base beside it"]


def test_it_says_whose_rights_the_code_has() -> None:
    """Wrong: whoever copies the recipe gives a stranger's code something to steal."""
    words = " ".join(FILE.read_text("utf-8").replace("#", " ").split())
    assert (
        "is run with this job's rights, and green is no defence against a hostile author" in words
    )


def git(folder: Path, *words: str) -> str:
    """A command of git, with nothing of the machine's own settings."""
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }
    names = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
    done = subprocess.run(
        ["git", *names, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def commit(checkout: Path, *faults: str) -> str:
    """A commit of a package with faults."""
    write_folder(checkout, *faults)
    git(checkout, "add", "vllm")
    git(checkout, "commit", "--quiet", "--allow-empty", "-m", "change")
    return git(checkout, "rev-parse", "HEAD")


def programs(folder: Path) -> Path:
    """A folder for the path: ``residency`` with the reference in it, and pip that only notes."""
    folder.mkdir()
    residency = folder / "residency"
    residency.write_text(
        f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" '
        '-m tests.support.reference_as_vllm "$@"\n'
    )
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in\n*pip*) echo "$@" >>"{folder}/installed";;\n'
        f'*) exec "{sys.executable}" "$@";;\nesac\n'
    )
    for program in (residency, python):
        program.chmod(0o755)
    return folder


class Job:
    """The workflow's commands in a checkout, as the runner would run them."""

    def __init__(self, folder: Path, steps: list[dict[str, Any]], base: str, examples: str) -> None:
        self.checkout, self.temporary = folder / "checkout", folder / "temp"
        self.temporary.mkdir()
        self.summary = folder / "summary.md"
        self.programs = programs(folder / "bin")
        self.values = {"vars.RESIDENCY": "residency[vllm] @ here", "base.sha": base}
        self.environment = {
            **os.environ,
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(folder / "cache"),
            "RUNNER_TEMP": str(self.temporary),
            "PYTHONSAFEPATH": "1",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.checkout),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "EXAMPLES": examples,
        }
        self.steps = steps

    def run(self) -> subprocess.CompletedProcess[str]:
        """All commands in order, up to the first that fails."""
        for step in self.steps:
            if "run" not in step:
                continue
            given = {name: self._value(text) for name, text in step.get("env", {}).items()}
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
                cwd=self.temporary if "working-directory" in step else self.checkout,
                env={**self.environment, **given},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                break
        return done

    def _value(self, text: str) -> str:
        (value,) = (value for name, value in self.values.items() if f"{name} }}}}" in text)
        return value


def made(
    folder: Path,
    steps: list[dict[str, Any]],
    before: list[str],
    after: list[str],
    examples: str,
) -> Job:
    """A pull request that turns faults into others; the target branch has gone on meanwhile."""
    checkout = folder / "checkout"
    checkout.mkdir()
    git(checkout, "init", "--quiet", "--initial-branch", "main")
    commit(checkout, *before)
    git(checkout, "checkout", "--quiet", "-b", "change")
    head = commit(checkout, *after)
    git(checkout, "checkout", "--quiet", "main")
    base = commit(checkout)
    git(checkout, "checkout", "--quiet", "--detach", head)
    return Job(folder, steps, base, examples)


def test_a_new_finding_fails_the_job(tmp_path: Path, steps: list[dict[str, Any]]) -> None:
    """A change that breaks a claim would be merged, or nobody could see what it breaks."""
    job = made(tmp_path, steps, [OLD], [OLD, NEW], FEW)
    done = job.run()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "residency[vllm] @ here" in (job.programs / "installed").read_text()
    report = job.temporary / "report"
    (checked,) = json.loads((report / "findings.json").read_text())["targets"]
    against = checked["details"]["against"]
    assert against["new"]
    assert against["there"]
    # Only what is new is an error, and the artifact holds what the next person needs.
    errors = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert len(errors) == len(against["new"])
    assert all("boundary-miss-tolerated" in error for error in errors)
    summary = job.summary.read_text()
    assert "boundary-miss-tolerated" in summary
    assert "There before: " in summary
    for fingerprint in against["new"]:
        (folder,) = report.glob(f"*-{fingerprint}")
        assert {"report.html", "report.md", "trace.json"} <= {p.name for p in folder.iterdir()}
    assert (report / "index.html").is_file()
    assert (report / "junit.xml").is_file()


def test_an_old_finding_does_not(tmp_path: Path, steps: list[dict[str, Any]]) -> None:
    """Every pull request would be red for what it did not change."""
    job = made(tmp_path, steps, [OLD], [OLD], ENOUGH)
    done = job.run()
    assert done.returncode == 0, done.stdout + done.stderr
    (checked,) = json.loads((job.temporary / "report" / "findings.json").read_text())["targets"]
    against = checked["details"]["against"]
    assert (against["new"], bool(against["there"])) == ([], True)
    assert "::error" not in done.stdout
    assert "No claim is violated that held before." in job.summary.read_text()
