"""The JSON document that every command writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from proofs.results.document import (
    KINDS,
    SCHEMA_FILE,
    dumps,
    json_schema,
    loads,
    results_of,
    to_data,
)
from proofs.results.outcome import Checked, Outcome
from proofs.results.violation import Violation
from spec.errors import InputError
from spec.verdict import Verdict
from tests.support.results_files import VALIDATOR

TESTS = Path(__file__).parents[1]


def test_the_schema_file_is_generated_from_the_classes() -> None:
    """Wrong: the published schema describes other files than those that are written."""
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == json_schema()
    VALIDATOR.check_schema(json_schema())


def test_every_kind_is_written_by_a_command_in_some_test() -> None:
    """Wrong: a command writes a file that nobody ever laid against the schema."""
    read = {
        kind
        for path in TESTS.rglob("test_*.py")
        for kind in re.findall(r'read_results\(.*"([a-z-]+)"\)', path.read_text("utf-8"))
    }
    assert read == set(KINDS)


def test_what_is_written_says_what_became_of_it() -> None:
    """Wrong: a reader has to know the command to tell good from bad, or fields get lost."""
    outcomes = (
        Outcome("a", "V1", Verdict.HELD, 3, 2),
        Outcome("a", "V2", None, reason="no V2"),
        Outcome("b", "V1", Verdict.REFUTED, fingerprints=("f",)),
    )
    violation = Violation("b", "m", "f", "t V1", "o", "e", "s", document={"schema": 1})
    results = results_of("check-runs", [Checked("t", outcomes, (violation,))], settings={"seed": 0})
    data = to_data(results)
    VALIDATOR.validate(data)
    assert (data["exit_code"], data["counts"]) == (
        1,
        {"HELD": 1, "NOT AVAILABLE": 1, "REFUTED": 1},
    )
    assert loads(dumps(results), "x") == results
    assert results_of("check-runs", [], settings={}).exit_code == 5  # Nothing was done.


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 1}, "schema version 1; this program reads version 2"),
        ({"kind": "another"}, "kind: "),
        ({"extra": 1}, "extra: unknown field"),
        ({"targets": [{"target": "t", "outcomes": [{"claim": "a", "part": "b"}]}]}, "verdict"),
    ],
)
def test_another_shape_is_refused(change: dict[str, object], words: str) -> None:
    """Wrong: a file of another version is read as if it held nothing."""
    data = {**to_data(results_of("check-runs", [], settings={})), **change}
    with pytest.raises(InputError, match=re.escape(words)):
        loads(json.dumps(data), "x.json")
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(data)
