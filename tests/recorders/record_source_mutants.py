"""Record what turns red for each mutant of 0.33.0's scheduling; never by hand.

    python -m tests.recorders.record_source_mutants [--check]

``--check`` compares with the record instead of writing it, and exits with 1 where they differ. It
takes some seven minutes of one core.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from proofs.recorded import FOLDER
from spec.errors import InputError
from spec.verdict import Verdict
from tests.recorders.recording import write_or_compare
from tests.support.source_mutants import (
    RELEASE,
    against_the_rule,
    first_red,
    key_of,
    made,
    original,
)

RECORD = FOLDER / "source_mutants.json"


def recorded() -> dict[str, dict[str, Any]]:
    """The record by mutant: where it differs from the rule, and a claim that it breaks."""
    data = json.loads(RECORD.read_text(encoding="utf-8"))
    return {entry["mutant"]: entry for entry in data["mutants"]}


def text() -> str:
    """What the record should be: one line a mutant.

    Raises:
        InputError: the release is not here.
    """
    release = original()
    if release is None:
        raise InputError(f"vllm {RELEASE} was not fetched; run `make vllm`")
    lines = []
    for mutant in made(release):
        rule, red = against_the_rule(mutant.tree), first_red(mutant.tree)
        entry = {
            "mutant": key_of(mutant),
            "function": mutant.function,
            "rule": rule.detail if rule.verdict is Verdict.REFUTED else None,
            "claim": None if red is None else asdict(red),
        }
        print(entry["mutant"], entry["claim"], file=sys.stderr)
        lines.append("  " + json.dumps(entry))
    whole = ",\n".join(lines)
    return f'{{\n "schema": 1,\n "release": "{RELEASE}",\n "mutants": [\n{whole}\n ]\n}}\n'


if __name__ == "__main__":
    sys.exit(write_or_compare(RECORD, text, "tests.recorders.record_source_mutants", __doc__))
