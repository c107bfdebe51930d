"""Findings that a command wrote with ``--json``, as documents that can be run again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofs.drive.documents import AnyDocument, loads_any
from proofs.run.targets import TargetChoice, faults_of
from spec.errors import InputError
from spec.record.json_document import read_text

_KEYS = ("findings", "obligations", "reports", "releases", "claims")
"""Fields of which a file with findings has one: of a check, of proofs, of several checks, of a
sweep, of an exploration."""


@dataclass(frozen=True)
class RecordedFindings:
    """What a command found on one target.

    Attributes:
        choice: the target, as options name it.
        documents: the smallest case or run of each finding.
        num_without: findings that hold nothing to run.
    """

    choice: TargetChoice
    documents: tuple[AnyDocument, ...]
    num_without: int


def read_findings(path: Path) -> list[RecordedFindings] | None:
    """The findings in a file; ``None`` where it is none that a command wrote with ``--json``.

    Raises:
        InputError: the file cannot be read, or a finding in it is broken.
    """
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or "kind" in data or "case" in data:
        return None
    if not any(key in data for key in _KEYS):
        return None
    try:
        return [_findings_of(report, str(path)) for report in _reports(data)]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: not the results of a check ({type(error).__name__}: {error}); give a "
            "scenario, a trace, or what --json wrote"
        ) from None


def _reports(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "reports" in data:
        yield from data["reports"]
    elif "releases" in data:
        for entry in data["releases"]:
            found = [one for search in entry["searches"] for one in search["findings"]]
            yield {**entry, "findings": found}
    elif "claims" in data:
        fault = data["fault"]
        target = "reference" if fault is None else f"reference +{fault}"
        found = [one for one in data["claims"] if "document" in one]
        yield {"target": target, "findings": found}
    else:
        yield data


def _findings_of(report: Mapping[str, Any], where: str) -> RecordedFindings:
    found = report.get("findings")
    if found is None:
        found = [o["finding"] for o in report["obligations"] if o.get("finding") is not None]
    texts = [text for finding in found if (text := _text(finding)) is not None]
    documents = tuple(loads_any(text, where) for text in dict.fromkeys(texts))
    return RecordedFindings(_choice(report), documents, len(found) - len(texts))


def _text(finding: Mapping[str, Any]) -> str | None:
    """The document of a finding; ``None`` where nothing of it can be run."""
    if "document" in finding:
        return json.dumps(finding["document"])
    case = finding.get("case")
    if case is None or case.get("kind") == "scheduling":
        return None  # It begins in the middle of a run; `prove --report` looks for one.
    if case.get("kind") == "scenario":
        return json.dumps({"schema": 1, "kind": "scenario", "scenario": case, "findings": []})
    return json.dumps({"schema": 1, "case": case, "findings": [finding]})


def _choice(report: Mapping[str, Any]) -> TargetChoice:
    target = str(report["target"])
    faults = faults_of(target)
    if faults is not None:
        return TargetChoice("reference", faults=faults)
    release, source = report.get("release"), report.get("source")
    scheduler_class = report.get("scheduler_class")
    if release is None and source is None:
        # Results of single functions name the release in the target's name only.
        name, _, rest = target.partition(" ")
        if name != "vllm" or not rest:
            raise KeyError("target")
        folder = rest.removeprefix("at ")
        release, source = (rest, None) if folder == rest else (None, folder)
    return TargetChoice(
        "vllm",
        None if release is None else str(release),
        None if source is None else Path(source),
        None if scheduler_class is None else str(scheduler_class),
    )
