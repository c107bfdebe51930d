"""Scenarios and traces as files: nothing is lost, the schema fits, bad files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from impl.target import Runner
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from proofs.run.record import record
from proofs.search.runs.scenarios import scenarios
from spec.errors import InputError
from spec.functions.case_files import write_atomically
from spec.record.compare import Difference, first_difference
from spec.record.config import EngineConfig
from spec.record.document import (
    SCHEMA_FILE,
    SCHEMA_VERSION,
    ScenarioDocument,
    TraceDocument,
    dumps_scenario,
    dumps_trace,
    finding_to_json,
    json_schema,
    load,
    loads,
)
from spec.record.feature import Feature
from spec.record.itf import VARIABLES, to_itf
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Continuation, Scenario, ScenarioRequest
from spec.record.steps import PassSeen, Trace, UpdateSeen, WorkerSeen
from tests.support.nightly import fewer

VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))
WORDS = st.text(max_size=20)
RUNNERS = st.sampled_from(get_args(Runner))

A_SCENARIO = Scenario(
    EngineConfig(
        max_num_batched_tokens=6,
        encoder_compute_budget=6,
        encoder_cache_size=6,
        num_kv_blocks=40,
        scheduler_lookahead=1,
        gather_lookahead=1,
        num_speculative_tokens=1,
    ),
    (
        ScenarioRequest(
            8,
            (Feature(0, 3, "A"), Feature(4, 3, "B", (True, False, True))),
            max_tokens=3,
            accepted_drafts=(1,),
            continuations=(Continuation(4, 3, (Feature(1, 2, "C"),)),),
        ),
        ScenarioRequest(3, (Feature(0, 3, "A"),), arrival=1),
    ),
    resets=(40,),
)


def run(scenario: Scenario, runner: Runner = "V1", tensors: TensorSettings | None = None) -> Trace:
    """The reference's run, at most 60 passes of it."""
    return record(ReferenceLoop(), scenario, runner, tensors=tensors, max_passes=60).trace


A_TRACE = run(A_SCENARIO)
A_FINDING = LoopFinding("no-stall", 3, 0, 1, "nothing", "something", "waits for room", (2, 3))


@given(
    scenarios(),
    RUNNERS,
    st.lists(
        st.builds(
            LoopFinding,
            WORDS,
            st.just(0),
            st.none(),
            st.none(),
            WORDS,
            WORDS,
            WORDS,
            st.none() | st.just((1, 2)),
            WORDS,
        ),
        max_size=2,
    ),
)
def test_what_is_written_is_read_back(
    scenario: Scenario, runner: Runner, findings: list[LoopFinding]
) -> None:
    """Wrong: a scenario or a run that cannot be replayed from its file, or a valid one refused."""
    text = dumps_scenario(scenario, findings)
    assert loads(text) == ScenarioDocument(SCHEMA_VERSION, "scenario", scenario, tuple(findings))
    VALIDATOR.validate(json.loads(text))
    trace = run(scenario, runner)
    text = dumps_trace(trace, findings)
    document = loads(text)
    assert isinstance(document, TraceDocument)
    assert (document.trace, document.findings) == (trace, tuple(findings))


@settings(max_examples=fewer("runs laid against their schema"))
@given(scenarios(), RUNNERS)
def test_runs_fit_the_schema(scenario: Scenario, runner: Runner) -> None:
    """Wrong: a run whose file other tools refuse by the published schema."""
    VALIDATOR.validate(json.loads(dumps_trace(run(scenario, runner), [A_FINDING])))


def test_a_run_with_tensors_is_read_back() -> None:
    """Wrong: what only tensors show has no place in a file."""
    trace = run(A_SCENARIO, tensors=TensorSettings())
    reads = [s.worker.target for s in trace.steps if isinstance(s, PassSeen) and s.worker]
    assert any(read.merged for read in reads)
    document = loads(dumps_trace(trace))
    assert isinstance(document, TraceDocument)
    assert document.trace == trace


def test_the_schema_file_is_generated_from_the_classes() -> None:
    """Wrong: the published schema describes other files than those that are written."""
    assert json.loads(SCHEMA_FILE.read_text()) == json_schema()
    VALIDATOR.check_schema(json_schema())


def test_every_class_of_the_schema_is_closed() -> None:
    """Wrong: a class whose unknown fields are dropped unread."""
    definitions = json_schema()["$defs"]
    assert {
        name
        for name, definition in definitions.items()
        if definition.get("additionalProperties", True)
    } == (set())


def test_each_step_takes_one_line() -> None:
    """Wrong: tools for lines of text cannot pick out a step."""
    lines = dumps_trace(A_TRACE, [A_FINDING]).splitlines()
    steps = [line for line in lines if '"state":' in line]
    assert len(steps) == len(A_TRACE.steps)
    assert [json.loads(line.rstrip(","))["kind"] for line in steps] == [
        step.kind for step in A_TRACE.steps
    ]


def test_a_finding_in_a_report_names_its_fingerprint() -> None:
    """Wrong: a report's findings cannot be matched with those of a file."""
    data = json.loads(json.dumps(finding_to_json(A_FINDING)))
    assert data.pop("fingerprint") == A_FINDING.fingerprint
    document = loads(dumps_scenario(A_SCENARIO, [A_FINDING]))
    assert document.findings == (A_FINDING,)
    assert set(data) == set(LoopFinding.__dataclass_fields__)


def _document(trace: Trace = A_TRACE) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(dumps_trace(trace, [A_FINDING]))
    return document


def _at(document: dict[str, Any], path: str) -> Any:
    place: Any = document
    for word in path.split("."):
        place = place[int(word) if word.isdigit() else word]
    return place


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Put a value at a place; ``steps.pass2`` is the step of that pass."""

    def change(document: dict[str, Any]) -> None:
        before, _, last = _named(document, path).rpartition(".")
        place = _at(document, before) if before else document
        place[int(last) if last.isdigit() else last] = value

    return change


def _named(document: dict[str, Any], path: str) -> str:
    """Steps by their kind and pass: ``pass0``, ``update0``, ``arrival0``."""
    words = path.split(".")
    if words[0] == "steps" and len(words) > 1:
        words[1] = str(_index(document, words[1]))
    return ".".join(words)


def _index(document: dict[str, Any], name: str) -> int:
    kind, number = name.rstrip("0123456789"), int(name.lstrip("abcdefghijklmnopqrstuvwxyz"))
    for index, step in enumerate(document["steps"]):
        shown = step["event"] if step["kind"] == "event" else step["kind"]
        if (shown, step["before"] if step["kind"] == "event" else step["index"]) == (kind, number):
            return index
    raise AssertionError(f"no step {name}")


def _remove(path: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        before, _, last = _named(document, path).rpartition(".")
        place = _at(document, before) if before else document
        del place[int(last) if last.isdigit() else last]

    return change


def _repeat(path: str) -> Callable[[dict[str, Any]], None]:
    """List the first entry of a list twice."""

    def change(document: dict[str, Any]) -> None:
        entries = _at(document, _named(document, path))
        entries.append(entries[0])

    return change


STRUCTURE: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "unknown version": (_set("schema", 2), "schema version 2; this program reads version 1"),
    "no version": (_remove("schema"), 'it has no "schema"'),
    "unknown kind": (_set("kind", "dance"), "dance"),
    "no kind": (_remove("kind"), "kind"),
    "unknown field": (_set("extra", 1), "extra: "),
    "unknown field of a step": (_set("steps.pass0.extra", 1), ".pass.extra: "),
    "unknown field of an error": (
        _set("steps.pass0.error", {"type": "E", "message": "", "extra": 1}),
        "error.extra: ",
    ),
    "unknown kind of step": (_set("steps.pass0.kind", "dance"), "dance"),
    "missing field": (_remove("steps.pass0.scheduled.0.prefill_len"), "prefill_len: "),
    "text for a number": (_set("steps.pass0.index", "0"), "index: "),
    "truth for a number": (_set("steps.pass0.scheduled.0.request", True), "request: "),
    "number for a list": (_set("steps.pass0.notices", 3), "notices: "),
    "unknown method": (_set("steps.pass0.calls.0.method", "dance"), "method: "),
    "unknown ending": (_set("ending", "sunset"), "ending: "),
    "unknown setting": (_set("scenario.config.extra", 1), "scenario.config.extra: "),
    "negative offset": (_set("scenario.requests.0.features.0.offset", -1), "offset -1"),
}

RULES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "impossible scenario": (_set("scenario.requests", []), "it has no request"),
    "impossible setting": (_set("scenario.config.block_size", 0), "block_size is 0"),
    "finding on no request": (_set("findings.0.request", 2), "findings.0: no request 2"),
    "finding on no feature": (_set("findings.0.feature", 3), "findings.0: no feature 3"),
    "feature without its request": (_set("findings.0.request", None), "of no request"),
    "call for no request": (_set("steps.pass0.calls.0.request", 2), "calls.0: no request 2"),
    "call for no feature": (
        _set("steps.pass0.calls.0", {"method": "allocate", "request": 0, "feature": 2}),
        "calls.0: request 0: no feature 2; features are numbered below 2",
    ),
    "feature without request": (
        _set("steps.pass0.calls.0", {"method": "allocate", "request": -1, "feature": 0}),
        "calls.0: no request -1",
    ),
    "input of no feature": (
        _set("steps.pass0.encoder_inputs", [[0, 9]]),
        "encoder_inputs: request 0: no feature 9",
    ),
    "batch with no request": (
        _set("steps.pass0.scheduled.0.request", 7),
        "scheduled.0: no request 7",
    ),
    "nothing scheduled": (
        _set("steps.pass0.scheduled.0.num_scheduled_tokens", 0),
        "num_scheduled_tokens is 0; it must be at least 1",
    ),
    "negative progress": (
        _set("steps.pass0.scheduled.0.num_computed_tokens", -1),
        "num_computed_tokens is -1",
    ),
    "passes out of order": (_set("steps.pass1.index", 2), "pass 2 follows 1 passes"),
    "event before another pass": (_set("steps.arrival1.before", 2), "before pass 2"),
    "arrival twice": (_set("steps.arrival1.request", 0), "each arrives once"),
    "state before arrival": (_set("steps.pass0.state.requests.0.request", 1), "has not arrived"),
    "twice in the state": (_set("steps.pass0.state.running", [0, 0]), "request 0 is listed twice"),
    "update of no pass": (_set("steps.update0.index", 1), "1 passes happened"),
    "update before pass 0": (_set("steps.update0.index", -1), "1 passes happened"),
    "update again": (_set("steps.update1.index", 0), "follows that of 0"),
    "update missing": (_remove("steps.update0"), "pass 0 ran requests and was not updated"),
    "outcome of another request": (
        _set("steps.update0.outcomes.0.request", 1),
        "request 1 did not run in pass 0",
    ),
    "negative outcome": (_set("steps.update0.outcomes.0.num_emitted", -1), "num_emitted is -1"),
    "continuation too many": (_set("steps.arrival1.continued", [[1, 0]]), "no more than 0"),
    "continuation before its start": (_set("steps.arrival1.continued", [[0, -1]]), "base is -1"),
    "encoding again": (
        _set(
            "steps.pass1.worker.encoded", [{"number": 0, "request": 0, "feature": 0, "num_rows": 3}]
        ),
        "number 0 was used before",
    ),
    "unknown encoding": (
        _set("steps.pass0.worker.contents", [["A", 9]]),
        "encoding 9 did not happen",
    ),
    "row without encoding": (
        _set("steps.pass0.worker.target.rows.0.encoding", 9),
        "rows: encoding 9 did not happen",
    ),
    "empty run of rows": (
        _set("steps.pass0.worker.target.rows.0.num_rows", 0),
        "num_rows is 0",
    ),
    "slices without rows": (
        _set("steps.pass0.worker.target.slices", [99]),
        "slices and rows differ",
    ),
    "empty window": (_set("steps.pass0.worker.target.mask", [[2, 2]]), "mask: [2,2) is empty"),
    "negative window": (_set("steps.pass0.worker.target.mask", [[-1, 2]]), "mask: [-1,2)"),
    "windows out of order": (
        _set("steps.pass0.worker.target.mask", [[3, 4], [0, 2]]),
        "mask: [0,2)",
    ),
    "rows beside an error": (
        _set("steps.pass0.worker.target.error", {"type": "E", "message": "x"}),
        "raised returned nothing",
    ),
    "request twice in a batch": (
        _repeat("steps.pass0.scheduled"),
        "scheduled: request 0 is listed twice",
    ),
    "request twice in an update": (
        _repeat("steps.update0.outcomes"),
        "outcomes: request 0 is listed twice",
    ),
    "continuation twice": (
        _set("steps.arrival1.continued", [[0, 9], [0, 9]]),
        "continued: request 0 is listed twice",
    ),
    "preempted nobody": (_set("steps.pass0.preempted", [9]), "preempted: no request 9"),
    "rejected nobody": (_set("steps.pass0.rejected", [-1]), "rejected: no request -1"),
    "forgotten nobody": (_set("steps.pass0.worker.forgotten", [9]), "forgotten: no request 9"),
    "received nothing": (_set("steps.pass0.worker.received", [[0, 9]]), "received: request 0: no"),
    "encoded nothing": (
        _set("steps.pass0.worker.encoded.0.feature", 9),
        "encoded: request 0: no feature 9",
    ),
    "encoding without number": (
        _set("steps.pass0.worker.encoded.0.number", -1),
        "number is -1; it must be at least 0",
    ),
    "row before the first": (
        _set("steps.pass0.worker.target.rows.0.first_row", -2),
        "first_row is -2; it must be at least -1",
    ),
    "drafter's row without encoding": (
        _set(
            "steps.pass0.worker.drafter.rows",
            [{"encoding": 9, "first_row": 0, "num_rows": 1, "position": -1}],
        ),
        "drafter: rows: encoding 9 did not happen",
    ),
    "merged row without encoding": (
        _set(
            "steps.pass0.worker.target.merged",
            [{"encoding": 9, "first_row": 0, "num_rows": 1, "position": 0}],
        ),
        "merged: encoding 9 did not happen",
    ),
    "waiting nobody": (_set("steps.pass0.state.waiting", [9]), "waiting: no request 9"),
    "reference by nobody": (
        _set("steps.pass0.state.book.references", [["A", [9]]]),
        "references of 'A': no request 9",
    ),
    "error in the middle": (
        _set("steps.update0.error", {"type": "E", "message": "x"}),
        "an error ends a run",
    ),
    "no worker": (_set("steps.pass0.worker", None), "the worker runs a pass unless"),
    "ending without error": (
        _set("ending", "error"),
        "ending: 'error', but the last step has none",
    ),
}


def _refused(change: Callable[[dict[str, Any]], None]) -> str:
    document = _document()
    change(document)
    with pytest.raises(InputError) as error:
        loads(json.dumps(document), "file.json")
    message = str(error.value)
    assert message.startswith("file.json: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", STRUCTURE)
def test_files_of_another_structure_are_refused(name: str) -> None:
    """Wrong: a typing error is ignored, or its place is not named."""
    change, words = STRUCTURE[name]
    assert words in _refused(change)


@pytest.mark.parametrize("name", RULES)
def test_what_cannot_be_is_refused(name: str) -> None:
    """Wrong: a trace that nothing could have recorded is judged, and blamed on the target."""
    change, words = RULES[name]
    assert words in _refused(change)


def test_the_unchanged_document_is_valid() -> None:
    """Wrong: the documents above are refused for another reason than the one they change."""
    loads(json.dumps(_document()))


def test_the_trace_shows_what_the_table_changes() -> None:
    """Wrong: the table changes fields of a run in which they mean nothing."""
    kinds = {step.kind for step in A_TRACE.steps}
    assert kinds == {"event", "pass", "update"}
    first = next(step for step in A_TRACE.steps if isinstance(step, PassSeen))
    assert first.worker is not None
    assert first.worker.target.rows
    assert first.worker.encoded
    assert A_TRACE.ending == "idle"


@pytest.mark.parametrize("text", ["{", "[1]", "null", "3", '{"schema": 1}', "[" * 100_000])
def test_other_files_are_refused(text: str) -> None:
    """Wrong: a file of another program is half understood, or shows a traceback."""
    with pytest.raises(InputError, match=r"^file\.json: "):
        loads(text, "file.json")


def test_files_are_found_by_their_path(tmp_path: Path) -> None:
    """Wrong: an error does not say which file it is about."""
    path = tmp_path / "scenario.json"
    with pytest.raises(InputError, match=r"scenario\.json: cannot be read"):
        load(path)
    write_atomically(path, dumps_scenario(A_SCENARIO))
    assert load(path).scenario == A_SCENARIO


def _change(trace: Trace, index: int, **changes: Any) -> Trace:
    step: Any = replace(trace.steps[index], **changes)
    return replace(trace, steps=(*trace.steps[:index], step, *trace.steps[index + 1 :]))


def test_equal_runs_do_not_differ() -> None:
    """Wrong: a difference where only order, or what tensors alone show, differs."""
    with_tensors = run(A_SCENARIO, tensors=TensorSettings())
    assert first_difference(A_TRACE.steps, with_tensors.steps) is None
    index, step = next(
        (index, step)
        for index, step in enumerate(A_TRACE.steps)
        if isinstance(step, PassSeen) and step.worker and len(step.worker.contents) > 1
    )
    assert isinstance(step.worker, WorkerSeen)
    worker = replace(step.worker, contents=step.worker.contents[::-1])
    assert first_difference(A_TRACE.steps, _change(A_TRACE, index, worker=worker).steps) is None


def test_the_first_difference_is_named() -> None:
    """Wrong: a later difference hides the first, or its place is missing."""
    updates = [i for i, step in enumerate(A_TRACE.steps) if isinstance(step, UpdateSeen)]
    step = A_TRACE.steps[updates[0]]
    assert isinstance(step, UpdateSeen)
    outcome = replace(step.outcomes[0], num_emitted=7)
    changed = _change(A_TRACE, updates[1], outcomes=())
    changed = _change(changed, updates[0], outcomes=(outcome, *step.outcomes[1:]))
    assert first_difference(A_TRACE.steps, changed.steps) == Difference(
        updates[0], "outcomes.0.num_emitted", str(step.outcomes[0].num_emitted), "7"
    )
    assert first_difference(A_TRACE.steps, A_TRACE.steps[:-1]) == Difference(
        len(A_TRACE.steps) - 1, "", f"{len(A_TRACE.steps)} steps", f"{len(A_TRACE.steps) - 1} steps"
    )
    assert first_difference(A_TRACE.steps, A_TRACE.steps[1:]) is not None


def _require_value(value: Any) -> None:
    """An expression of the Informal Trace Format; integers as big integers only."""
    match value:
        case str():
            return
        case list():
            items = value
        case {"#bigint": str(digits), **rest}:
            assert not rest
            assert str(int(digits)) == digits
            return
        case {"#tup": list(items), **rest} | {"#set": list(items), **rest}:
            assert not rest
        case {"#map": list(pairs), **rest}:
            assert not rest
            assert all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
            keys = [json.dumps(key) for key, _ in pairs]
            assert len(set(keys)) == len(keys)
            items = [item for pair in pairs for item in pair]
        case _:
            raise AssertionError(f"no expression: {value!r}")
    for item in items:
        _require_value(item)


def _require_itf(data: Any) -> None:
    assert set(data) == {"#meta", "params", "vars", "states"}
    assert data["params"] == []
    assert data["vars"] == list(dict.fromkeys(data["vars"]))
    for index, state in enumerate(data["states"]):
        assert state["#meta"] == {"index": index}
        assert list(state) == ["#meta", *data["vars"]]
        for name in data["vars"]:
            _require_value(state[name])


@given(scenarios(), RUNNERS)
def test_every_run_can_be_written_in_the_informal_trace_format(
    scenario: Scenario, runner: Runner
) -> None:
    """Wrong: Apalache's tools refuse the file."""
    trace = run(scenario, runner)
    data = to_itf(trace)
    assert json.loads(json.dumps(data)) == data
    _require_itf(data)
    assert len(data["states"]) == len(trace.steps)
    assert data["#meta"]["varTypes"].keys() == VARIABLES.keys() == set(data["vars"])


@pytest.mark.parametrize(
    "value", [3, True, None, {"#bigint": 3}, {"#set": [1]}, {"#map": [["a"]]}, {"#set": [], "x": 1}]
)
def test_the_rules_of_the_format_can_fail(value: Any) -> None:
    """Wrong: the check of the format lets everything pass."""
    with pytest.raises(AssertionError):
        _require_value(value)


def test_a_state_shows_what_the_step_shows() -> None:
    """Wrong: a variable holds something else than its name says."""
    states = to_itf(A_TRACE)["states"]
    index = next(i for i, step in enumerate(A_TRACE.steps) if step.kind == "pass")
    step, state = A_TRACE.steps[index], states[index]
    assert isinstance(step, PassSeen)
    assert step.worker is not None
    assert (state["step"], state["pass"]) == ("pass", {"#bigint": "0"})
    (scheduled,) = step.scheduled
    tokens = str(scheduled.num_scheduled_tokens)
    assert state["num_scheduled_tokens"] == {"#map": [[{"#bigint": "0"}, {"#bigint": tokens}]]}
    assert state["references"] == {
        "#map": [
            [identifier, {"#set": [{"#bigint": "0"}]}]
            for identifier, _ in step.state.book.references
        ]
    }
    assert state["resident"] == {"#set": [identifier for identifier, _ in step.worker.contents]}
    assert state["status"] == {"#map": [[{"#bigint": "0"}, "running"]]}
    arrival = states[0]
    assert (arrival["step"], arrival["resident"]) == ("arrival", {"#set": []})
