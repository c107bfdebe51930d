"""Record what the releases show, from what the commands of ``.ci/run`` write; never by hand.

    .ci/run sources functions loops
    python -m tests.recorders.record_releases build/releases [--check]

``--check`` compares with the record instead of writing it, and exits with 1 where they differ.
``--violated FILE`` only looks whether one of the files names a violation, and exits with 1 where it
does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from proofs.recorded import FOLDER
from spec.functions.case_files import write_atomically

RECORD = FOLDER / "releases.json"


def recorded() -> dict[str, Any]:
    """The record: by release, its exact rules, and what is refuted on its source and functions."""
    data: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return data


def summary_of(source: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
    """What is recorded of one release."""
    (proved,), (called,) = source["targets"], function["targets"]
    asked = [o for o in proved["outcomes"] if o["verdict"] is not None]
    rules = {o["claim"]: o["reason"] for o in asked if "reason" in o}
    refuted = sorted({(o["claim"], o["part"]) for o in asked if _is(o, "REFUTED")})
    open_questions = sorted(
        {(o["claim"], o["part"]) for o in asked if not _is(o, "REFUTED", "PROVED")}
    )
    return {
        "free_rule": rules["rule:reference_may_go"],
        "tolerated": {
            "V1": rules["rule:miss_tolerated_v1"],
            "V2": rules["rule:miss_tolerated_v2"],
        },
        "source_refuted": [list(pair) for pair in refuted],
        "source_not_settled": [list(pair) for pair in open_questions],
        "function_violated": sorted(
            [o["claim"], o["part"]] for o in called["outcomes"] if _is(o, "REFUTED")
        ),
    }


def _is(outcome: dict[str, Any], *verdicts: str) -> bool:
    return outcome["verdict"] in verdicts


def read(folder: Path) -> dict[str, Any]:
    """Summaries of every release with its files in the folder."""
    found: dict[str, Any] = {}
    for source_file in sorted(folder.glob("source-*.json")):
        release = source_file.stem.removeprefix("source-")
        source, function = (
            json.loads((folder / f"{kind}-{release}.json").read_text(encoding="utf-8"))
            for kind in ("source", "function")
        )
        found[release] = summary_of(source, function)
    return found


def names_a_violation(file: Path) -> bool:
    """Whether a result of a file that one of the commands wrote is refuted."""
    data = json.loads(file.read_text(encoding="utf-8"))
    return bool(data["counts"].get("REFUTED", 0))


def main() -> int:
    """Write or check the record; 0 if it is written or equal, 1 if it differs or is empty."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--violated", action="store_true")
    arguments = parser.parse_args()
    if arguments.violated:
        if not names_a_violation(arguments.folder):
            print(f"{arguments.folder}: names no violation", file=sys.stderr)
            return 1
        return 0
    found = read(arguments.folder)
    if not found:
        print(f"{arguments.folder}: no source-RELEASE.json here", file=sys.stderr)
        return 1
    if not arguments.check:
        write_atomically(RECORD, json.dumps(found, indent=2) + "\n")
        return 0
    if found == recorded():
        print(f"{len(found)} releases show what is recorded")
        return 0
    for release, summary in found.items():
        earlier = recorded().get(release, {})
        for key, value in summary.items():
            if value != earlier.get(key):
                print(f"{release} {key}:\n  recorded {earlier.get(key)}\n  now      {value}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
