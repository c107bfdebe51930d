"""The JSON document that ``--json`` writes: one shape for every command, with a published schema.

The schema is ``schema/results-v2.json`` beside this module, generated from the dataclasses; a test
holds the two equal. A file says what it is: ``kind`` names the command that wrote it. Fields that
have their default are left out. Version 1, up to 0.1.0, had a shape for each command.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pydantic import TypeAdapter

from proofs.results.outcome import Checked
from spec.record.json_document import parse, published_schema, read_text
from spec.verdict import Verdict, exit_code

SCHEMA_VERSION: Literal[2] = 2
SCHEMA_FILE = Path(__file__).parent / "schema" / "results-v2.json"

Kind: TypeAlias = Literal[
    "ablate",
    "bench",
    "check-functions",
    "check-runs",
    "claims",
    "explore",
    "lint-config",
    "prove-rules",
    "prove-source",
    "replay",
    "sweep",
]
"""What was done; the command, and its level where it has several."""

KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True)
class Results:
    """What a command found.

    Attributes:
        schema: version of this shape.
        kind: what was done.
        exit_code: that of the command; 130 where it was interrupted and the rest is incomplete.
        counts: how many outcomes have each verdict; ``NOT AVAILABLE`` for none.
        settings: what was asked for.
        targets: what became of each target.
        details: what only this kind has.
    """

    schema: Literal[2]
    kind: Kind
    exit_code: int
    counts: Mapping[str, int]
    settings: Mapping[str, Any]
    targets: tuple[Checked, ...]
    details: Mapping[str, Any] = field(default_factory=dict)

    __pydantic_config__ = {"extra": "forbid"}


@cache
def _results() -> TypeAdapter[Results]:
    return TypeAdapter(Results)


def json_schema() -> dict[str, Any]:
    """The JSON schema of every file that ``--json`` writes."""
    return published_schema(_results(), f"residency results, version {SCHEMA_VERSION}")


def results_of(
    kind: Kind,
    targets: Sequence[Checked],
    *,
    settings: Mapping[str, Any],
    details: Mapping[str, Any] | None = None,
    code: int | None = None,
) -> Results:
    """The document of what a command found.

    Args:
        kind: what was done.
        targets: what became of each target.
        settings: what was asked for, as JSON data.
        details: what only this kind has, as JSON data.
        code: the command's exit code; that of the worst verdict when not given.
    """
    outcomes = [outcome for checked in targets for outcome in checked.outcomes]
    counts = Counter(outcome.verdict_name for outcome in outcomes)
    verdicts: list[Verdict] = [o.verdict for o in outcomes if o.verdict is not None]
    return Results(
        SCHEMA_VERSION,
        kind,
        exit_code(verdicts) if code is None else code,
        dict(sorted(counts.items())),
        settings,
        tuple(targets),
        details or {},
    )


def to_data(results: Results) -> dict[str, Any]:
    """The document as JSON data."""
    data: dict[str, Any] = _results().dump_python(results, mode="json", exclude_defaults=True)
    for target in data["targets"]:
        target.setdefault("violations", [])  # That there is none is said.
    return data


def dumps(results: Results) -> str:
    """The document as the text of a file."""
    return json.dumps(to_data(results), indent=1) + "\n"


def loads(text: str, where: str) -> Results:
    """Read the text of such a file.

    Raises:
        InputError: not JSON, another version, or another shape.
    """
    return parse(text, _results(), SCHEMA_VERSION, where, "file of results")


def load(path: Path) -> Results:
    """Read such a file.

    Raises:
        InputError: it cannot be read, or is none.
    """
    return loads(read_text(path), str(path))
