"""A violation as files for machines and lines for a pull request tell it, at whatever level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofs.describe.cases import describe_case
from proofs.describe.scenarios import describe_scenario
from proofs.describe.words import describe_target
from proofs.report.machines.blame import SourcePlace, place_of_loop_claim, place_of_part
from spec.claims.on_functions import BY_ID as ON_FUNCTIONS
from spec.claims.on_functions import ClaimText
from spec.claims.on_runs import BY_ID as ON_LOOP
from spec.functions.findings import Finding
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

    @property
    def text(self) -> ClaimText | None:
        """The claim's text; ``None`` for an id that is not known here."""
        return ON_LOOP.get(self.claim) or ON_FUNCTIONS.get(self.claim)


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
    )


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
    )


def of_recorded(data: Mapping[str, Any], target: str, package: Path | None) -> Violation:
    """A violation by a run, from the data of ``check --level loop --json`` or of a sweep."""
    runners = tuple(str(runner) for runner in data["runners"])
    claim, scenario = str(data["claim"]), str(data["scenario"])
    place = None
    if package is not None:
        place = place_of_loop_claim(
            package, claim, runners, is_encoder_decoder="encoder-decoder" in str(data["shape"])
        )
    return Violation(
        claim,
        str(data["mechanism"]),
        str(data["fingerprint"]),
        f"{target} {' and '.join(runners)}",
        str(data["observed"]),
        str(data["expected"]),
        scenario,
        place,
    )
