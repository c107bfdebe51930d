"""How an exploration is shown: a line for each claim, its shortest counterexample, counts, JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from proofs.describe.scenarios import describe_scenario
from proofs.describe.visible import print_lines
from proofs.describe.words import counted
from proofs.explore.case import rows
from proofs.explore.chunk import CALLS_EVERY, ChunkResult, Counts
from proofs.explore.lockstep import Difference
from proofs.explore.scope import cases, scope_named
from proofs.explore.search import ClaimResult, Confirmed, ExploreReport
from spec.verdict import Verdict


def totals(whole: ChunkResult) -> Counts:
    """The counts of all rows together."""
    counts = Counts()
    for row in whole.rows.values():
        counts.add(row)
    return counts


def print_report(report: ExploreReport) -> None:
    """Print what was explored, a line for each claim, counterexamples, and the sums."""
    settings = report.settings
    scope = cases(scope_named(settings.scope))
    subject = "the reference" if settings.fault is None else f"the reference +{settings.fault}"
    print_lines(
        f"{subject}, scope {settings.scope}: {len(scope):,} cases of {scope.num_layouts:,} layouts "
        f"and {len(rows())} configurations"
    )
    if report.whole is None:
        print_lines("Nothing was explored.")
        return
    print_lines(f"{'claim':<30} {'verdict':<8} {'cases broken':>12} {'passes':>7}")
    for result in report.claims:
        print_lines(_line(result))
    for result in report.claims:
        if result.violation is not None:
            _print_violation(result, result.violation)
    for difference in report.whole.differences:
        _print_error("the target and the model part", difference)
    for difference in report.whole.outside:
        _print_error("the model leaves the relation of the proofs", difference)
    print_lines("")
    _print_sums(report.whole)
    if report.interrupted:
        print_lines(
            f"Interrupted after {report.jobs_done} of {report.jobs} jobs: the results above are "
            "incomplete."
        )


def _print_error(what: str, difference: Difference) -> None:
    print_lines(f"\n{Verdict.ERROR.name} {what} at step {difference.step}")
    print_lines(f"  {describe_scenario(difference.scenario)}")
    print_lines(f"  {difference.what}")


def _line(result: ClaimResult) -> str:
    line = f"{result.claim:<30} {result.verdict.name:<8}"
    violation = result.violation
    if violation is not None:
        line += f" {violation.found.cases:>12,} {violation.passes or violation.found.passes:>7}"
    return line


def _print_violation(result: ClaimResult, violation: Confirmed) -> None:
    found, finding = violation.found, violation.finding
    if finding is None:
        print_lines(f"\n{result.verdict.name} {found.claim}: the reference does not show it")
        print_lines(f"  {describe_scenario(found.scenario)}")
        return
    print_lines(f"\n{result.verdict.name} {found.claim} [{finding.fingerprint}]")
    print_lines(f"  {finding.mechanism}: {describe_scenario(found.scenario)}")
    print_lines(f"  shown in {counted(violation.passes, 'pass', 'passes')}")
    print_lines(f"  observed: {finding.observed}")
    print_lines(f"  expected: {finding.expected}")


def _print_sums(whole: ChunkResult) -> None:
    counts = totals(whole)
    print_lines(
        f"{counts.cases:,} cases: {counts.states:,} states, {counts.edges:,} rounds, up to "
        f"{counts.depth} passes deep."
    )
    if whole.seconds:
        print_lines(
            f"{counts.transitions:,} events, passes and updates of the model, claims included, in "
            f"{whole.seconds:.1f} CPU seconds: {counts.transitions / whole.seconds:,.0f} a second."
        )
    _print_walked(whole, counts)
    if whole.related:
        share = 100 * whole.related / max(counts.edges, 1)
        verdict = "some are outside" if whole.outside else "all of them lie in it"
        print_lines(
            f"{whole.related:,} rounds ({share:.0f}%) were laid against the relation of the "
            f"unbounded proofs; {verdict}."
        )
    else:
        print_lines("No round was laid against the relation of the unbounded proofs.")


def _print_walked(whole: ChunkResult, counts: Counts) -> None:
    walked = whole.walked
    if not walked.edges:
        print_lines("The reference walked nothing: --lockstep 0.")
        return
    share = 100 * walked.edges / max(counts.edges, 1)
    verdict = "parted from the model" if whole.differences else "agreed in every step"
    print_lines(
        f"The reference walked every round of {walked.cases:,} cases ({walked.edges:,} rounds, "
        f"{share:.0f}%) in {walked.runs:,} runs of {walked.steps:,} steps, and {verdict}; "
        f"its calls were compared in one case of {CALLS_EVERY}."
    )


def explored_settings(report: ExploreReport) -> dict[str, Any]:
    """What was asked for, as JSON data."""
    settings = report.settings
    return {
        "scope": settings.scope,
        "fault": settings.fault,
        "lockstep": settings.lockstep,
        "relation": settings.relation,
    }


def explored_details(report: ExploreReport) -> dict[str, Any]:
    """The counts of an exploration, and where the reference or the relation parts, as JSON data."""
    data: dict[str, Any] = {
        "jobs": report.jobs,
        "jobs_done": report.jobs_done,
        "interrupted": report.interrupted,
        "passes": {
            result.claim: result.violation.passes
            for result in report.claims
            if result.violation is not None
        },
    }
    if report.whole is not None:
        whole = report.whole
        table = rows()
        data |= {
            "totals": asdict(totals(whole)),
            "rows": [
                {"row": row, "settings": table[row], **asdict(whole.rows[row])}
                for row in sorted(whole.rows)
            ],
            "walked": asdict(whole.walked),
            "differences": [_difference_to_json(difference) for difference in whole.differences],
            "related": whole.related,
            "outside": [_difference_to_json(difference) for difference in whole.outside],
            "seconds": round(whole.seconds, 3),
        }
    return data


def _difference_to_json(difference: Difference) -> dict[str, Any]:
    return {
        "scenario": describe_scenario(difference.scenario),
        "step": difference.step,
        "what": difference.what,
    }
