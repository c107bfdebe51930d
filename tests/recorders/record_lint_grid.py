"""Write what each release does with the grid of small settings; never by hand.

    python -m tests.recorders.record_lint_grid [--check] [RELEASE ...]

Each release runs in a process of its own. Releases that are not named keep what was recorded of
them. ``--check`` compares with the file instead of writing it, and exits with 1 where it differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, fields, replace
from typing import Any

from proofs.recorded import FOLDER
from proofs.settings.stuck.settings import Settings
from spec.errors import InputError
from spec.functions.case_files import write_atomically
from spec.rules.releases import RELEASES
from spec.verdict import Verdict
from tests.support.releases import ask

FILE = FOLDER / "lint_grid.json"
SEED = 7
_OFTEN = {"0.32.0": (120, 50), "0.33.0": (120, 50)}
_ELSE = (40, 25)
"""Cells drawn, and probes of each: more for the releases that people are on."""


def extent(release: str) -> tuple[int, int]:
    """Cells of a release, and probes of each."""
    return _OFTEN.get(release, _ELSE)


def observe(
    release: str, seed: int, cells: int, count: int, async_depth: int = 0
) -> list[dict[str, Any]]:
    """What the release does with each cell; one release a process.

    Raises:
        InputError: the release was not fetched.
    """
    from impl.vllm.launch.source import cache_folder, unpacked
    from impl.vllm.runs.target import VllmLoop
    from proofs.describe.scenarios import describe_scenario
    from tests.support.lint_grid import first_that_stops, release_cells

    source = unpacked(cache_folder(), release)
    if source is None:
        raise InputError(f"vllm {release} was not fetched; run `residency vllm fetch {release}`")
    target = VllmLoop(source)
    entries = []
    for drawn in release_cells(release, seed, cells):
        cell = replace(drawn, settings=replace(drawn.settings, async_depth=async_depth))
        scenario, _ = first_that_stops(target, cell, seed, count)
        entries.append(
            {
                "settings": _not_default(cell.settings),
                "stopped_by": None if scenario is None else describe_scenario(scenario),
            }
        )
    return entries


def _not_default(settings: Settings) -> dict[str, Any]:
    defaults = {field.name: field.default for field in fields(Settings)}
    return {name: v for name, v in asdict(settings).items() if v != defaults[name]}


def recorded() -> dict[str, list[dict[str, Any]]]:
    """What was recorded, by release."""
    if not FILE.exists():
        return {}
    data = json.loads(FILE.read_text(encoding="utf-8"))
    return {entry["release"]: entry["cells"] for entry in data["releases"]}


def text_of(releases: dict[str, list[dict[str, Any]]]) -> str:
    """The file's text: one line a cell."""
    parts = []
    for name in RELEASES:
        if name in releases:
            cells = ",\n".join("  " + json.dumps(cell) for cell in releases[name])
            parts.append(f' {{"release": "{name}", "cells": [\n{cells}\n ]}}')
    return f'{{"schema": 1, "seed": {SEED}, "releases": [\n' + ",\n".join(parts) + "\n]}\n"


def disagrees(verdict: Verdict, entry: dict[str, Any]) -> bool:
    """Whether a verdict on a cell's settings is another than what was seen of them."""
    stopped = entry["stopped_by"] is not None
    return (verdict is Verdict.PROVED and stopped) or (verdict is Verdict.REFUTED and not stopped)


_ASK = """
import json, sys
from tests.recorders.record_lint_grid import SEED, observe
release, *numbers = sys.argv[1:]
print("RESULT" + json.dumps(observe(release, SEED, *map(int, numbers))))
"""


def observed_apart(
    release: str, cells: int, probes: int, async_depth: int = 0
) -> list[dict[str, Any]]:
    """What the release does with the first so many cells, from a process that holds it."""
    found: list[dict[str, Any]] = ask(release, _ASK, str(cells), str(probes), str(async_depth))
    return found


def main() -> int:
    """Write or compare; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="*", choices=[[], *RELEASES], metavar="RELEASE")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    found = recorded()
    before = text_of(found)
    for release in given.releases or RELEASES:
        found[release] = observed_apart(release, *extent(release))
        if not given.check:
            write_atomically(FILE, text_of(found))
    return int(given.check and text_of(found) != before)


if __name__ == "__main__":
    sys.exit(main())
