"""A named example for this project's own tests: one run of the reference, and one claim.

The file holds the scenario as literals. It fails while the reference has the fault, and passes
without it: with the switches that the run was found with, or until the reference is mended.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from impl.target import RUNNERS, Runner
from proofs.describe.scenarios import describe_scenario
from proofs.report.text.literals import LINE_LENGTH, assignment, printable, python_string, wrapped
from proofs.report.text.templates import text_templates
from proofs.run.targets import faults_of
from proofs.search.runs.results import BOTH_RUNNERS_CLAIMS
from spec.claims.texts import loop_claim
from spec.errors import InputError
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Continuation, FailedLoad, Scenario, ScenarioRequest
from spec.record.steps import PassSeen, Trace

_CLASSES = (EngineConfig, Scenario, ScenarioRequest, Continuation, FailedLoad, Feature)
_INDENT = 4


def reference_test(
    finding: LoopFinding, trace: Trace, name: str, *, runners: Sequence[Runner]
) -> str:
    """The text of the test file.

    Args:
        finding: what was found.
        trace: the smallest run that shows it, on the reference.
        name: the test function's name, without ``test_``.
        runners: those that show it.

    Raises:
        InputError: the run is not one of the reference.
    """
    faults = faults_of(trace.target)
    if faults is None:
        raise InputError(f"{trace.target}: an example for our own tests needs a reference run")
    both = finding.claim in BOTH_RUNNERS_CLAIMS
    shown_by = tuple(RUNNERS) if both else tuple(runners) or (trace.runner,)
    claim = loop_claim(finding.claim)
    return (
        text_templates()
        .get_template("reference.py.jinja")
        .render(
            docstring=_docstring(finding, trace, shown_by),
            scenario="SCENARIO = " + _literal(trace.scenario, 0, len("SCENARIO = ")),
            imports=_imports(trace.scenario),
            faults=assignment("FAULTS", faults),
            has_faults=bool(faults),
            runners=assignment("RUNNERS", shown_by),
            claim=python_string(finding.claim),
            both=both,
            name=name,
            says=_says(claim.sentence),
            with_tensors=_has_tensors(trace),
        )
    )


def _says(sentence: str) -> str:
    text = printable(f"{sentence[0].upper()}{sentence[1:]}.")
    lines = textwrap.wrap(text, LINE_LENGTH - _INDENT - len('"""'))
    return ("\n" + " " * _INDENT).join(lines)


def _docstring(finding: LoopFinding, trace: Trace, runners: Sequence[Runner]) -> str:
    observed, expected = finding.observed.rstrip("."), finding.expected.rstrip(".")
    found = (
        f"Found on {trace.target} with the order of {' and '.join(runners)}, in pass "
        f"{finding.pass_index}: {finding.mechanism}. Observed: {observed}. Asked for: "
        f"{expected}. Fingerprint {finding.fingerprint}."
    )
    opening = textwrap.fill(f"A run that breaks {finding.claim}.", LINE_LENGTH)
    run = f"The run: {describe_scenario(trace.scenario)}."
    return f'"""{opening}\n\n' + "\n\n".join(map(wrapped, (found, run))) + '\n"""'


def _has_tensors(trace: Trace) -> bool:
    """Whether rows were moved as tensors, so that the merged embeddings were seen."""
    return any(
        isinstance(step, PassSeen)
        and step.worker is not None
        and step.worker.target.merged is not None
        for step in trace.steps
    )


def _literal(value: object, indent: int, before: int) -> str:
    """A value of the scenario as the call that makes it; what is at its default is left out.

    Args:
        value: part of a scenario.
        indent: indentation of the line that the value starts on.
        before: characters on the first line in front of the value.
    """
    if isinstance(value, _CLASSES):
        given: Mapping[str, Any] = {
            field.name: getattr(value, field.name)
            for field in fields(value)
            if field.name != "kind" and not _is_default(field, getattr(value, field.name))
        }
        items = [(f"{name}=", item) for name, item in given.items()]
        opening, closing = f"{type(value).__name__}(", ")"
    elif isinstance(value, tuple):
        items = [("", item) for item in value]
        opening, closing = "(", ",)" if len(value) == 1 else ")"
    else:
        return python_string(value) if isinstance(value, str) else repr(value)
    flat = opening + ", ".join(name + _literal(item, 0, 0) for name, item in items) + closing
    if "\n" not in flat and before + len(flat) + 1 <= LINE_LENGTH:
        return flat
    inner = indent + _INDENT
    lines = [
        " " * inner + name + _literal(item, inner, inner + len(name)) + "," for name, item in items
    ]
    return "\n".join([opening, *lines, " " * indent + closing[-1]])


def _is_default(field: Any, value: object) -> bool:
    return field.default is not MISSING and bool(field.default == value)


def _imports(scenario: Scenario) -> list[str]:
    """The classes that the literal names, by module."""
    features = [f for request in scenario.requests for f in request.all_features()]
    names = ["Scenario", "ScenarioRequest"]
    if any(request.continuations for request in scenario.requests):
        names.append("Continuation")
    if any(request.failed_loads for request in scenario.requests):
        names.append("FailedLoad")
    found = [f"from spec.record.scenario import {', '.join(sorted(names))}"]
    return (["from spec.record.feature import Feature"] if features else []) + [
        "from spec.record.config import EngineConfig",
        "from spec.monitor.monitor import LoopMonitor",
        *found,
    ]
