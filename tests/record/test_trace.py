"""Cases and findings as JSON: nothing is lost, the schema is the code's, bad files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.search.functions import strategies
from spec.claims.texts import FUNCTION_CLAIMS
from spec.errors import InputError
from spec.functions.case_files import (
    SCHEMA_FILE,
    SCHEMA_VERSION,
    Document,
    dumps,
    finding_to_json,
    json_schema,
    load,
    loads,
    write_atomically,
)
from spec.functions.cases import Case, RowRangeCase
from spec.functions.findings import Finding, finding

ANY_CASE = st.one_of(
    strategies.gather_cases(),
    strategies.free_cases(),
    strategies.book_cases(),
    strategies.book_cases(content_is_hashed=False),
    strategies.encoder_decoder_book_cases(),
    strategies.window_cases(),
    strategies.row_range_cases(),
)
WORDS = st.text(max_size=20)
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))
A_CASE = RowRangeCase((True, False), 0, 1)


@given(
    ANY_CASE,
    st.lists(st.tuples(st.sampled_from(tuple(FUNCTION_CLAIMS.values())), WORDS, WORDS), max_size=2),
)
def test_what_is_written_is_read_back(case: Case, drawn: list[tuple[Any, str, str]]) -> None:
    """Wrong: a counterexample that cannot be replayed from its file."""
    findings = tuple(
        finding(claim.id, case, observed=o, expected=e, target="x V1", mechanism=o)
        for claim, o, e in drawn
    )
    text = dumps(case, findings)
    assert loads(text) == Document(SCHEMA_VERSION, "function-case", case, findings)
    VALIDATOR.validate(json.loads(text))


@pytest.mark.parametrize("claim", FUNCTION_CLAIMS.values(), ids=lambda claim: claim.id)
def test_every_witness_survives_a_round_trip(claim: Any) -> None:
    """Wrong: a kind of case without a place in the schema."""
    assert loads(dumps(claim.witness)).case == claim.witness


def test_every_kind_of_case_has_a_witness() -> None:
    """Wrong: a kind of case that the round trips never saw."""
    assert {claim.witness.kind for claim in FUNCTION_CLAIMS.values()} == {
        kind.__dataclass_fields__["kind"].default for kind in get_args(Case)
    }


def test_the_schema_file_is_generated_from_the_classes() -> None:
    """Wrong: the published schema describes other files than those that are written."""
    assert json.loads(SCHEMA_FILE.read_text()) == json_schema()
    VALIDATOR.check_schema(json_schema())


def test_a_finding_alone_is_json_too() -> None:
    """Wrong: reports and traces say different things about one finding."""
    found = finding(
        "rows-exact", A_CASE, observed="1", expected="2", target="x", mechanism="rows differ"
    )
    data = json.loads(json.dumps(finding_to_json(found)))
    assert set(data) == set(Finding.__dataclass_fields__)
    document = {"schema": 1, "kind": "function-case", "case": data["case"], "findings": [data]}
    VALIDATOR.validate(document)
    assert loads(json.dumps(document)).findings == (found,)


def _document(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(dumps(A_CASE))
    document["case"].update(changes)
    return document


def _broken(change: Callable[[dict[str, Any]], Any]) -> str:
    document = _document()
    change(document)
    return json.dumps(document)


def _document_of(case: dict[str, Any]) -> str:
    return json.dumps({"schema": 1, "kind": "function-case", "case": case})


FEATURE = {"offset": 0, "length": 2, "identifier": "A", "is_embed": None}
GATHER = {
    "kind": "gather",
    "requests": [
        {
            "num_computed_tokens": 0,
            "num_scheduled_tokens": 2,
            "prefill_len": 4,
            "features": [FEATURE],
        }
    ],
    "resident": [],
    "draft_lookahead": 0,
}


def _gather(*path: str | int, value: Any) -> str:
    """A gather case with one place changed."""
    case = json.loads(json.dumps(GATHER))
    place = case
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps({"schema": 1, "kind": "function-case", "case": case})


STRUCTURE = {
    "missing case": (_broken(lambda d: d.pop("case")), "case"),
    "unknown kind": (_broken(lambda d: d["case"].update(kind="dance")), "case"),
    "no kind": (_broken(lambda d: d["case"].pop("kind")), "case"),
    "unknown field": (_broken(lambda d: d.update(extra=1)), "extra"),
    "unknown field in the case": (_broken(lambda d: d["case"].update(extra=1)), "extra"),
    "text for a number": (_broken(lambda d: d["case"].update(start="0")), "start"),
    "fraction for a number": (_broken(lambda d: d["case"].update(start=0.5)), "start"),
    "number for a list": (_broken(lambda d: d["case"].update(is_embed=3)), "is_embed"),
    "missing field": (_broken(lambda d: d["case"].pop("end")), "end"),
    "field of a request": (_gather("requests", 0, "prefill_len", value=None), "prefill_len"),
    "field of a feature": (
        _gather("requests", 0, "features", 0, "identifier", value=7),
        "features.0.identifier",
    ),
    "finding without fields": (_broken(lambda d: d.update(findings=[{}])), "findings.0"),
}


@pytest.mark.parametrize("name", STRUCTURE)
def test_a_document_of_another_shape_is_refused_and_the_place_named(name: str) -> None:
    """Wrong: a file with a typing error is read as if it said something else."""
    text, place = STRUCTURE[name]
    with pytest.raises(InputError) as error:
        loads(text, "file.json")
    assert str(error.value).startswith("file.json: ")
    assert place in str(error.value)
    assert "Traceback" not in str(error.value)


@pytest.mark.parametrize("name", sorted(set(STRUCTURE) - {"no kind"}))
def test_the_schema_refuses_the_same_documents(name: str) -> None:
    """Wrong: the published schema lets through what the program refuses.

    A case without its kind is the exception: a schema cannot require a field with a default.
    """
    text, _ = STRUCTURE[name]
    assert not VALIDATOR.is_valid(json.loads(text))


RULES = {
    "mask of another length": (
        _gather("requests", 0, "features", 0, "is_embed", value=[True]),
        "its mask has 1 entries but the feature spans 2 tokens",
    ),
    "empty feature": (_gather("requests", 0, "features", 0, "length", value=0), "must span"),
    "negative offset": (_gather("requests", 0, "features", 0, "offset", value=-1), "negative"),
    "features out of order": (
        _gather("requests", 0, "features", value=[{**FEATURE, "offset": 2}, FEATURE]),
        "sort features by offset",
    ),
    "overlapping features": (
        _gather("requests", 0, "features", value=[FEATURE, {**FEATURE, "offset": 1}]),
        "overlap",
    ),
    "feature past the prefill": (
        _gather("requests", 0, "prefill_len", value=1),
        "end by the prefill length 1",
    ),
    "no scheduled token": (
        _gather("requests", 0, "num_scheduled_tokens", value=0),
        "at least one token",
    ),
    "no request": (_gather("requests", value=[]), "at least one request"),
    "output with other rows": (
        _gather("resident", value=[{"identifier": "A", "num_rows": 3}]),
        "has 3 rows but its features take 2",
    ),
    "output listed twice": (
        _gather("resident", value=[{"identifier": "Z", "num_rows": 1}] * 2),
        "listed twice",
    ),
    "range outside the mask": (json.dumps(_document(end=9)), "does not lie in a mask"),
    "drafts without placeholders": (
        json.dumps(
            {
                "schema": 1,
                "kind": "function-case",
                "case": {
                    "kind": "free",
                    "features": [FEATURE],
                    "cache_size": 2,
                    "progress": [{"num_computed_tokens": 2, "num_drafts_in_flight": 1}],
                },
            }
        ),
        "drafts in flight <= placeholders",
    ),
    "operation on nothing": (
        json.dumps(
            {
                "schema": 1,
                "kind": "function-case",
                "case": {
                    "kind": "book",
                    "cache_size": 2,
                    "requests": [[FEATURE]],
                    "operations": [{"action": "take", "request": 1}],
                },
            }
        ),
        "operation 0: no feature 0 of request 1",
    ),
    "empty window": (
        json.dumps(
            {
                "schema": 1,
                "kind": "function-case",
                "case": {"kind": "window", "features": [], "start": 1, "end": 1},
            }
        ),
        "must span at least one token",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_case_that_cannot_be_is_refused(name: str) -> None:
    """Wrong: an impossible case is run, and what it shows is taken for a fault of the target."""
    text, words = RULES[name]
    with pytest.raises(InputError) as error:
        loads(text, "file.json")
    assert str(error.value).startswith("file.json: ")
    assert words in str(error.value)


def test_the_unchanged_gather_document_is_valid() -> None:
    """Wrong: the documents above are refused for another reason than the one they change."""
    loads(json.dumps({"schema": 1, "kind": "function-case", "case": GATHER}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", r"not JSON \(line 1, column 2"),
        ("[1]", 'not a trace: it has no "schema"'),
        ('{"schema": 2}', "schema version 2; this program reads version 1"),
        ('{"case": {}}', 'it has no "schema"'),
    ],
)
def test_other_files_are_refused(text: str, words: str) -> None:
    """Wrong: a file of another program or version is half understood."""
    with pytest.raises(InputError, match=words):
        loads(text, "file.json")


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    """Wrong: a traceback for a typing error in a file's name."""
    with pytest.raises(InputError, match=r"nowhere\.json: cannot be read"):
        load(tmp_path / "nowhere.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.json: cannot be read"):
        load(tmp_path / "binary.json")


def test_files_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: Any) -> None:
    """Wrong: half a file, or a leftover, after a failure."""
    path = tmp_path / "folder" / "case.json"
    write_atomically(path, dumps(A_CASE))
    assert load(path).case == A_CASE

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match="No space left on device"):
        write_atomically(path, "other")
    assert load(path).case == A_CASE
    assert [file.name for file in path.parent.iterdir()] == ["case.json"]
