"""Scenarios and traces as versioned JSON with a published schema.

The schema is ``schema/loop-v1.json`` beside this module, generated from the dataclasses; a test
holds the two equal. Traces get large: each request, finding and step takes one line, so that tools
for lines of text can pick one out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter
from pydantic_core import to_json

from spec.errors import InputError
from spec.record.consistency import require_consistent, require_findings_fit
from spec.record.json_document import parse, published_schema, read_text
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario
from spec.record.steps import Ending, Step, Trace

SCHEMA_VERSION = 1
SCHEMA_FILE = Path(__file__).parent / "schema" / "loop-v1.json"

_STRICT = {"extra": "forbid", "strict": True}
_ONE_PER_LINE = ("requests", "findings", "steps")


@dataclass(frozen=True)
class ScenarioDocument:
    """A file with a scenario, and the findings that were made on it."""

    schema: int
    kind: Literal["scenario"]
    scenario: Scenario
    findings: tuple[LoopFinding, ...] = ()

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class TraceDocument:
    """A file with a trace, field by field, and the findings that were made on it.

    The attributes are those of :class:`spec.record.steps.Trace`; the steps come last, so that the
    start of a large file says what it is.
    """

    schema: int
    kind: Literal["trace"]
    target: str
    runner: Literal["V1", "V2"]
    ending: Ending
    findings: tuple[LoopFinding, ...]
    scenario: Scenario
    steps: tuple[Annotated[Step, Field(discriminator="kind")], ...]

    __pydantic_config__ = _STRICT

    @property
    def trace(self) -> Trace:
        """The trace that the file holds."""
        return Trace(self.scenario, self.target, self.runner, self.steps, self.ending)


LoopDocument: TypeAlias = ScenarioDocument | TraceDocument


@cache
def _documents() -> TypeAdapter[LoopDocument]:
    return TypeAdapter(Annotated[LoopDocument, Field(discriminator="kind")])


def json_schema() -> dict[str, Any]:
    """The JSON schema of a loop document."""
    title = f"residency scenario or trace of the loop, version {SCHEMA_VERSION}"
    return published_schema(_documents(), title)


def dumps_scenario(scenario: Scenario, findings: Iterable[LoopFinding] = ()) -> str:
    """A scenario and its findings as the text of a loop document."""
    return _text(ScenarioDocument(SCHEMA_VERSION, "scenario", scenario, tuple(findings))) + "\n"


def dumps_trace(trace: Trace, findings: Iterable[LoopFinding] = ()) -> str:
    """A trace and its findings as the text of a loop document."""
    document = TraceDocument(
        SCHEMA_VERSION,
        "trace",
        trace.target,
        trace.runner,
        trace.ending,
        tuple(findings),
        trace.scenario,
        trace.steps,
    )
    return _text(document) + "\n"


def _text(value: LoopDocument | Scenario) -> str:
    parts = []
    for field in fields(value):
        item = getattr(value, field.name)
        if field.name in _ONE_PER_LINE and item:
            text = "[\n" + ",\n".join(to_json(element).decode() for element in item) + "\n]"
        elif isinstance(item, Scenario):
            text = _text(item)
        else:
            text = to_json(item).decode()
        parts.append(f'"{field.name}":{text}')
    return "{" + ",\n".join(parts) + "}"


def loads(text: str, where: str = "document") -> LoopDocument:
    """Read a loop document's text, and check that such a scenario or trace can be.

    Args:
        text: the JSON text.
        where: the file's name, for error messages.

    Raises:
        InputError: not JSON, another version, an unknown or missing field, an impossible scenario,
            or a trace that contradicts itself.
    """
    document = parse(text, _documents(), SCHEMA_VERSION, where, "scenario or trace")
    try:
        document.scenario.validate()
        require_findings_fit(document.findings, document.scenario)
        if isinstance(document, TraceDocument):
            require_consistent(document.trace)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return document


def load(path: Path) -> LoopDocument:
    """Read a loop document.

    Raises:
        InputError: the file cannot be read or is not a valid loop document.
    """
    return loads(read_text(path), str(path))


def finding_to_json(finding: LoopFinding) -> dict[str, Any]:
    """A finding as plain JSON data, with its fingerprint."""
    adapter: TypeAdapter[LoopFinding] = TypeAdapter(LoopFinding)
    data: dict[str, Any] = adapter.dump_python(finding, mode="json")
    return {**data, "fingerprint": finding.fingerprint}
