"""A violated claim, as files, other tools and pages tell it, whatever engine found it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proofs.describe.cases import describe_case
from proofs.describe.scenarios import describe_scenario
from proofs.describe.shape import has_derived_sizes
from proofs.describe.words import describe_target
from proofs.results.blame import SourcePlace, place_of_loop_claim, place_of_part
from spec.claims.texts import FUNCTION_CLAIMS, LOOP_CLAIMS, ClaimText
from spec.functions import case_files
from spec.functions.findings import Finding
from spec.functions.scheduling_cases import SchedulingCase
from spec.record.document import dumps_scenario, finding_to_json
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario


@dataclass(frozen=True)
class Violation:
    """One violated claim.

    Attributes:
        claim: id of the claim.
        mechanism: the guard or duty that failed.
        fingerprint: the same for the same fault, on whatever target.
        target: what it was found on, with its part or runners.
        observed: what the target did.
        expected: what the claim asks for.
        smallest: the smallest case or run that shows it, on one line.
        place: the function to blame; ``None`` where no source line is known.
        is_new: whether it counts as a failure; false for what was there before the change.
        runners: of a run, those that show it.
        document: the smallest case or run as a document that can be run again, with the schema
            ``trace-v1`` or ``loop-v1``; ``None`` where it begins in the middle of a run.
        details: where in the run it shows, or a case that has no document.
    """

    claim: str
    mechanism: str
    fingerprint: str
    target: str
    observed: str
    expected: str
    smallest: str
    place: SourcePlace | None = None
    is_new: bool = True
    runners: tuple[str, ...] = ()
    document: Mapping[str, Any] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    __pydantic_config__ = {"extra": "forbid"}

    @property
    def text(self) -> ClaimText | None:
        """The claim's text; ``None`` for an id that is not known here."""
        return LOOP_CLAIMS.get(self.claim) or FUNCTION_CLAIMS.get(self.claim)


def of_function(finding: Finding, part: str, package: Path | None) -> Violation:
    """A violation by one function, or by the whole runs that a proof of a source is about.

    Args:
        finding: what was found.
        part: the part of the target, such as ``V1`` or ``free``.
        package: the folder ``vllm`` of what was checked; ``None`` for the reference.
    """
    place = None
    if package is not None and isinstance(finding.case, Scenario):
        place = place_of_loop_claim(package, finding.claim, ())
    elif package is not None:
        place = place_of_part(package, part)
    return Violation(
        finding.claim,
        finding.mechanism,
        finding.fingerprint,
        describe_target(finding.target),
        finding.observed,
        finding.expected,
        describe_case(finding.case),
        place,
        document=_document(finding),
        details=_details(finding),
    )


def _document(finding: Finding) -> dict[str, Any] | None:
    if isinstance(finding.case, SchedulingCase):
        return None
    if isinstance(finding.case, Scenario):
        scenario: dict[str, Any] = json.loads(dumps_scenario(finding.case))
        return scenario
    case: dict[str, Any] = json.loads(case_files.dumps(finding.case, (finding,)))
    return case


def _details(finding: Finding) -> dict[str, Any]:
    if isinstance(finding.case, SchedulingCase):
        return {"case": case_files.finding_to_json(finding)["case"]}
    return {}


def of_loop(
    finding: LoopFinding,
    scenario: Scenario,
    target: str,
    runners: Iterable[str],
    package: Path | None,
    *,
    is_new: bool = True,
) -> Violation:
    """A violation by a run.

    Args:
        finding: what was found.
        scenario: the smallest run that shows it.
        target: name of the target.
        runners: those that show it.
        package: the folder ``vllm`` of what was checked; ``None`` for the reference.
        is_new: false for what was there before the change.
    """
    shown_by = tuple(runners)
    place = None
    if package is not None:
        is_encoder_decoder = scenario.config.is_encoder_decoder
        place = place_of_loop_claim(
            package, finding.claim, shown_by, is_encoder_decoder=is_encoder_decoder
        )
    return Violation(
        finding.claim,
        finding.mechanism,
        finding.fingerprint,
        f"{target} {' and '.join(shown_by)}",
        finding.observed,
        finding.expected,
        describe_scenario(scenario),
        place,
        is_new,
        shown_by,
        json.loads(dumps_scenario(scenario, [finding])),
        {
            **{name: value for name, value in finding_to_json(finding).items() if name in _OF_RUNS},
            "any_sizes": not has_derived_sizes(scenario.config),
        },
    )


_OF_RUNS = ("pass_index", "request", "feature", "loop", "shape")
"""What a violation by a run says of its place; ``any_sizes`` tells sizes that vLLM cannot have."""


def with_place(violation: Violation, package: Path | None) -> Violation:
    """A violation by a run that a file holds, with the line to blame in a source that is at hand.

    Args:
        violation: what a search of a sweep found.
        package: the folder ``vllm`` of what was searched, where it is there.
    """
    if package is None or violation.document is None:
        return violation
    is_encoder_decoder = bool(violation.document["scenario"]["config"]["is_encoder_decoder"])
    place = place_of_loop_claim(
        package, violation.claim, violation.runners, is_encoder_decoder=is_encoder_decoder
    )
    return replace(violation, place=place)
