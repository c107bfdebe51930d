"""A check of single functions in words, and as files and other tools are told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proofs.describe.cases import describe_case
from proofs.describe.visible import print_lines
from proofs.describe.words import describe_target
from proofs.results.outcome import Checked
from proofs.results.result_table import print_results, summary, with_assumption
from proofs.results.violation import of_function
from proofs.search.functions.parts import WITHOUT
from proofs.search.functions.results import CheckReport
from spec.functions.findings import Finding
from spec.verdict import Verdict


def print_report(report: CheckReport) -> None:
    """Print the table, one paragraph for each violation with its smallest case, and the sums."""
    title = (
        f"{report.target}: {report.settings.examples} cases a family, seed {report.settings.seed}"
    )
    print_results(report.results, title)
    for finding in report.findings:
        print_finding(finding)
    if not any(result.cases for result in report.results):
        print_lines("\nNothing was run.")
    if report.interrupted:
        print_lines("\nInterrupted: the results above are incomplete.")
    faults = {finding.fingerprint for finding in report.findings}
    print_lines(f"\n{summary(report.results, len(faults))}")


def print_finding(finding: Finding) -> None:
    """Print a violation: its smallest case, what was seen and what the claim asks for."""
    verdict = with_assumption(Verdict.REFUTED.name, _broken_by(finding))
    target = describe_target(finding.target)
    print_lines(f"\n{verdict} {finding.claim} by {target} [{finding.fingerprint}]")
    print_lines(f"  {finding.mechanism}: {describe_case(finding.case)}")
    print_lines(f"  observed: {finding.observed}")
    print_lines(f"  expected: {finding.expected}")


def _broken_by(finding: Finding) -> str | None:
    """The assumption that the finding's case breaks on purpose; targets end with the part."""
    return next((a for part, a in WITHOUT.items() if finding.target.endswith(f" {part}")), None)


def checked_functions(report: CheckReport, package: Path | None = None, **named: Any) -> Checked:
    """A check of single functions, as files and other tools are told of it.

    Args:
        package: the folder ``vllm`` of what was checked; ``None`` for the reference.
        named: release, source and digest of the vLLM.
    """
    violations = tuple(
        of_function(finding, finding.target.removeprefix(report.target).strip(), package)
        for finding in report.findings
    )
    return Checked(report.target, report.results, violations, **named)
