"""Record what the releases show, from the JSON files of the two commands; never by hand.

    mkdir -p build
    for release in 0.23.0 0.24.0 0.33.0; do
        residency prove --source-of $release --json build/source-$release.json
        residency check --target vllm --release $release --json build/function-$release.json
    done
    python -m tests.recorders.record_releases build [--check]

``--check`` compares with the record instead of writing it, and exits with 1 where they differ.
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
    rules = {o["claim"]: o["detail"] for o in source["obligations"] if o["detail"]}
    refuted = sorted({(o["claim"], _part(o)) for o in source["obligations"] if _is(o, "REFUTED")})
    open_questions = sorted(
        {(o["claim"], _part(o)) for o in source["obligations"] if not _is(o, "REFUTED", "PROVED")}
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
            [r["claim"], r["part"]] for r in function["results"] if r["verdict"] == "REFUTED"
        ),
    }


def _is(obligation: dict[str, Any], *verdicts: str) -> bool:
    return obligation["verdict"] in verdicts


def _part(obligation: dict[str, Any]) -> str:
    part: str = obligation["name"].split(".")[1]
    return part


def read(folder: Path) -> dict[str, Any]:
    """Summaries of every release with both files in the folder."""
    found: dict[str, Any] = {}
    for source_file in sorted(folder.glob("source-*.json")):
        release = source_file.stem.removeprefix("source-")
        function_file = folder / f"function-{release}.json"
        source = json.loads(source_file.read_text(encoding="utf-8"))
        function = json.loads(function_file.read_text(encoding="utf-8"))
        found[release] = summary_of(source, function)
    return found


def main() -> int:
    """Write or check the record; 0 if it is written or equal, 1 if it differs or is empty."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
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
        known = recorded().get(release, {})
        for key, value in summary.items():
            if value != known.get(key):
                print(f"{release} {key}:\n  recorded {known.get(key)}\n  now      {value}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
