"""Violations with a source line to blame, in the Static Analysis Results Interchange Format 2.1.0.

Code-scanning services show each at its line. A violation without one is left out: every such
service asks for a place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from proofs.describe.visible import visible
from proofs.results.outcome import Checked
from proofs.results.violation import Violation

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_REPOSITORY = "https://github.com/vllm-project/vllm"
_ROOT = "SRCROOT"
"""Files are given relative to the folder that holds the package; the reader knows where that is."""


def to_sarif(targets: Iterable[Checked]) -> str:
    """The violations as the text of a SARIF file, with a run for each target.

    What was there before a change becomes a note.
    """
    runs = [_run(checked.release, checked.violations) for checked in targets]
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": runs}, indent=1) + "\n"


def _run(release: str | None, violations: Sequence[Violation]) -> dict[str, Any]:
    placed = [violation for violation in violations if violation.place is not None]
    rules = list(dict.fromkeys(violation.claim for violation in placed))
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "residency",
                "version": version("residency"),
                "rules": [_rule(claim, placed) for claim in rules],
            }
        },
        "results": [_result(violation, rules.index(violation.claim)) for violation in placed],
        "columnKind": "unicodeCodePoints",
    }
    if release is not None:
        # A release is tagged with a v in front.
        run["versionControlProvenance"] = [
            {"repositoryUri": _REPOSITORY, "revisionTag": f"v{release}"}
        ]
    return run


def _rule(claim: str, violations: Sequence[Violation]) -> dict[str, Any]:
    text = next(violation for violation in violations if violation.claim == claim).text
    rule: dict[str, Any] = {"id": claim, "defaultConfiguration": {"level": "error"}}
    if text is not None:
        rule["shortDescription"] = {"text": f"{text.sentence[0].upper()}{text.sentence[1:]}."}
        rule["fullDescription"] = {"text": f"{text.why[0].upper()}{text.why[1:]}."}
    return rule


def _result(violation: Violation, rule: int) -> dict[str, Any]:
    place = violation.place
    assert place is not None
    message = (
        f"{violation.target}: {violation.mechanism}. Observed: {violation.observed}. Expected: "
        f"{violation.expected}. Smallest: {violation.smallest}."
    )
    return {
        "ruleId": violation.claim,
        "ruleIndex": rule,
        "level": "error" if violation.is_new else "note",
        "message": {"text": visible(message, 4000)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(place.file), "uriBaseId": _ROOT},
                    "region": {"startLine": place.line},
                },
                "logicalLocations": [{"fullyQualifiedName": place.name, "kind": "function"}],
            }
        ],
        "partialFingerprints": {"residency/v1": violation.fingerprint},
    }
