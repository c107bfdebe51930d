"""Write the faults that were found in the newest release, and their scenarios; never by hand.

    python -m tests.recorders.record_found [--check]

``--check`` compares with the files instead of writing them, and exits with 1 where they differ.
"""

from __future__ import annotations

import json
import sys

from proofs import recorded
from proofs.describe.scenarios import describe_scenario
from spec.functions.case_files import write_atomically
from spec.record.document import dumps_scenario
from tests.support.vllm_found_faults import FOUND, RELEASE

FOLDER = recorded.FOUND


def files() -> dict[str, str]:
    """The text of each file, by name."""
    entries = [
        {
            "name": fault.name,
            "claim": fault.claim,
            "sentence": fault.sentence,
            "where": fault.where,
            "reached": fault.reached,
            "runners": list(fault.runners),
            "scenario": describe_scenario(fault.scenario),
        }
        for fault in FOUND
    ]
    index = {"schema": 1, "release": RELEASE, "faults": entries}
    texts = {f"{fault.name}.json": dumps_scenario(fault.scenario) for fault in FOUND}
    return {**texts, "index.json": json.dumps(index, indent=1) + "\n"}


def main() -> int:
    """Write or compare; the exit code."""
    texts = files()
    present = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    if "--check" in sys.argv[1:]:
        return int(texts != present)
    for name in present.keys() - texts.keys():
        (FOLDER / name).unlink()
    for name, text in texts.items():
        write_atomically(FOLDER / name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
