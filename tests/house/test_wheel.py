"""A wheel is all that is needed: built, installed far from the checkout, and every command run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from impl.vllm.launch.source import cache_folder, unpacked
from proofs.commands.main import main
from proofs.drive.recorded import DEFAULT_FOLDER, INDEX, load_recorded

ROOT = Path(__file__).parents[2]
RELEASE = "0.33.0"
SWEPT = "encoder-decoder-credit"
PACKAGES = ("spec", "impl", "proofs")
FOUND = "{recorded}/found/whole-item-cut-short.json"
SHIFTED_CUT = "{recorded}/scenarios/shifted-cut.json"
ONE_CELL = [
    *("--margin", "0", "--shift", "1", "--look-ahead", "1"),
    *("--cut", "plain", "--reservation", "off", "--tolerance", "on"),
]
SMALL = ["--scope", "small", "--lockstep", "0", "--relation", "0", "--workers", "1"]

COMMANDS: dict[str, tuple[list[str], int, str]] = {
    "ablate": (ONE_CELL, 0, "safe"),
    "bench": (["loop", "--seconds", "0.1", "--requests", "1", "--device", "none"], 0, "reference"),
    "check": (["--claims", "window-exact", "--examples", "20"], 0, "1 HELD"),
    "claims": (["item-whole"], 0, "proofs:"),
    "explore": (SMALL, 0, "HELD"),
    "lint-config": (["--max-num-batched-tokens", "8", "--largest-item", "4"], 0, "cannot stall"),
    "prove": (["--group", "rows"], 0, "PROVED"),
    "replay": ([FOUND, "--device", "none"], 0, "HELD"),
    "report": ([SHIFTED_CUT, "--fault", "shifted-cut", "-o", "{output}"], 1, "index.html"),
    # Its work needs a release: a test of its own, below.
    "sweep": (["--release", "no.release", "--examples", "0"], 2, "no.release"),
    "vllm": (["list"], 0, ""),
}
"""Of each command: its arguments, the exit code, and what it prints."""

RUN_ALL = """
import io, json, pathlib, sys
from contextlib import redirect_stderr, redirect_stdout
import impl, proofs, spec
from proofs.commands.main import main
from proofs.drive.recorded import DEFAULT_FOLDER, load_recorded
commands = json.load(sys.stdin)
recorded = len(load_recorded(DEFAULT_FOLDER).index.faults)
files = [spec.__file__, impl.__file__, proofs.__file__, str(DEFAULT_FOLDER)]
results = {"files": files, "recorded": recorded, "commands": {}}
for name, arguments in commands.items():
    text = io.StringIO()
    with redirect_stdout(text), redirect_stderr(text):
        try:
            main([name, *arguments], prog_name="residency")
            code = 0
        except SystemExit as end:
            code = end.code
    results["commands"][name] = [code, text.getvalue()]
pathlib.Path("results.json").write_text(json.dumps(results))
"""
"""All commands in one process: each alone would import torch once more."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: an old ``build`` folder of the checkout would get into it."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    _pip("wheel", "--no-build-isolation", "--wheel-dir", str(folder), str(copy))
    (built,) = folder.glob("residency-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """A folder that holds the installed wheel and nothing else."""
    folder = wheel.parent / "installed"
    _pip("install", "--target", str(folder), str(wheel))
    return folder


@pytest.fixture(scope="module")
def results(installed: Path) -> dict[str, Any]:
    """What every command did, away from the checkout."""
    elsewhere = installed.parent / "elsewhere"
    elsewhere.mkdir()
    places = {
        "recorded": str(installed / "proofs" / "recorded"),
        "output": str(elsewhere / "report"),
    }
    asked = {
        name: [argument.format(**places) for argument in arguments]
        for name, (arguments, _, _) in COMMANDS.items()
    }
    _python(installed, elsewhere, "-c", RUN_ALL, input=json.dumps(asked))
    found: dict[str, Any] = json.loads((elsewhere / "results.json").read_text("utf-8"))
    return found


def _pip(*arguments: str) -> None:
    """Pip without the network and without anything that is not asked for."""
    command = [sys.executable, "-m", "pip", *arguments, "--no-deps", "--no-index", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _python(
    installed: Path, folder: Path, *arguments: str, **options: Any
) -> subprocess.CompletedProcess[str]:
    """This Python with the installed wheel before the checkout that tests run on."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    """Wrong: a record, a schema or a template is missing, and a command fails far from here."""
    files = {
        path.relative_to(ROOT).as_posix()
        for name in PACKAGES
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    assert files - names == set()
    assert {name for name in names - files if ".dist-info/" not in name} == set()


def test_the_installed_command_starts(installed: Path, tmp_path: Path) -> None:
    """Wrong: what pip puts on the path does not find its package."""
    done = _python(installed, tmp_path, str(installed / "bin" / "residency"), "--version")
    assert "residency" in done.stdout


def test_every_subcommand_is_run() -> None:
    """Wrong: a subcommand is added, and nobody sees whether it needs the checkout."""
    assert set(COMMANDS) == set(main.list_commands(None))  # type: ignore[arg-type]


def test_nothing_is_read_from_the_checkout(results: dict[str, Any], installed: Path) -> None:
    """Wrong: the commands below ran the checkout's own code."""
    assert all(Path(name).is_relative_to(installed) for name in results["files"])
    assert results["recorded"] == len(load_recorded(DEFAULT_FOLDER).index.faults)
    assert not [text for _, text in results["commands"].values() if str(ROOT) in text]


@pytest.mark.parametrize("command", COMMANDS)
def test_subcommand(results: dict[str, Any], command: str) -> None:
    """Wrong: the command works in a checkout only."""
    code, text = results["commands"][command]
    _, expected_code, printed = COMMANDS[command]
    assert code == expected_code, text
    assert printed in text


@pytest.mark.vllm
def test_sweep_of_a_release(installed: Path, tmp_path: Path) -> None:
    """Wrong: a sweep, whose runs have processes of their own, works in a checkout only.

    All that is recorded is swept elsewhere; here it is one of the faults in the wheel.
    """
    if find_spec("transformers") is None or unpacked(cache_folder(), RELEASE) is None:
        pytest.skip(f"vllm {RELEASE} was not fetched; run `make vllm`")
    scenarios = installed / "proofs" / "recorded" / "scenarios"
    index = json.loads((scenarios / INDEX).read_text(encoding="utf-8"))
    (shown,) = (fault for fault in index["faults"] if fault["name"] == SWEPT)
    shutil.copy(scenarios / shown["scenario"], tmp_path)
    (tmp_path / INDEX).write_text(json.dumps({**index, "faults": [shown]}), encoding="utf-8")
    arguments = ("--release", RELEASE, "--examples", "0", "--recorded", str(tmp_path))
    command = str(installed / "bin" / "residency")
    done = _python(installed, tmp_path, command, "sweep", *arguments)
    assert RELEASE in done.stdout
    assert "1 recorded answer looked at, 0 not as recorded." in done.stdout
