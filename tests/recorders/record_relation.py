"""Write in which conjuncts the runs of releases leave the relation; never by hand.

    python -m tests.recorders.record_relation [--check] [RELEASE ...]

Runs every recorded scenario on each release, in a process of its own, and writes
``recorded/relation.json``. ``--check`` compares instead, and exits with 1 where it differs.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from proofs.recorded import FOLDER
from spec.functions.case_files import write_atomically
from spec.record import document
from spec.relation.runs.outside import outside_the_proof, why_not_covered
from tests.support.releases import ask

RECORDED = FOLDER
FILE = RECORDED / "relation.json"
SCENARIOS = ("found", "scenarios")
"""Folders of what is run."""

RELEASES = ("0.23.0", "0.24.0", "0.27.1", "0.28.0", "0.32.0", "0.33.0")
MAX_PASSES = 24
"""Passes after which a run that stands still is left; it shows nothing new."""


def differences(release: str) -> dict[str, Any]:
    """Which runs of the release lie in the relation, and what the others differ in.

    To be called in a process that holds no other vLLM.
    """
    from proofs.drive.jobs import make_target
    from proofs.run.record import record
    from proofs.run.targets import named_vllms

    target = make_target(named_vllms([release], None, None)[0])
    inside: list[str] = []
    outside: dict[str, list[str]] = {}
    paths = [path for folder in SCENARIOS for path in (RECORDED / folder).glob("*.json")]
    for path in sorted(paths):
        if path.name == "index.json":
            continue
        scenario = document.loads(path.read_text(encoding="utf-8"), str(path)).scenario
        if why_not_covered(scenario) is not None or target.missing(scenario, "V2") is not None:
            continue
        trace = record(target, scenario, "V2", max_passes=MAX_PASSES).trace
        shown = {
            f"{difference.taken.transition}: {difference.conjunct}"
            for difference in outside_the_proof(trace)
        }
        name = f"{path.parent.name}/{path.stem}"
        if shown:
            outside[name] = sorted(shown)
        else:
            inside.append(name)
    return {"inside": inside, "outside": outside}


_ASK = """
import json, sys
from tests.recorders.record_relation import differences
print("RESULT" + json.dumps(differences(sys.argv[1])))
"""


def differences_apart(release: str) -> dict[str, Any]:
    """The same, from a process that holds this release."""
    found: dict[str, Any] = ask(release, _ASK)
    return found


def text_of(releases: tuple[str, ...]) -> str:
    """The file's text."""
    found = {release: differences_apart(release) for release in releases}
    return json.dumps({"schema": 1, "releases": found}, indent=1) + "\n"


def main() -> int:
    """Write or compare; the exit code."""
    named = tuple(word for word in sys.argv[1:] if not word.startswith("--"))
    text = text_of(named or RELEASES)
    if "--check" in sys.argv[1:]:
        return int(text != FILE.read_text(encoding="utf-8"))
    write_atomically(FILE, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
