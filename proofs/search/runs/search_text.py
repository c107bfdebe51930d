"""A search over whole runs in words, and as files and other tools are told of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from proofs.describe.scenarios import describe_scenario
from proofs.describe.shape import has_derived_sizes
from proofs.describe.visible import print_lines
from proofs.describe.words import counted, describe_place
from proofs.results.code_digest import code_digest
from proofs.results.outcome import Checked
from proofs.results.result_table import print_results, summary
from proofs.results.violation import of_loop
from proofs.search.runs.results import LoopCheckSettings, LoopCounterexample, LoopReport
from spec.verdict import Verdict

_ANY_SIZES = (
    "any sizes: not settable in vLLM, which derives the encoder cache and the encoder budget: both "
    "are the larger of token budget and largest item"
)


def print_loop_report(report: LoopReport) -> None:
    """Print the table, the smallest run of each violation, what was drawn, and the sums."""
    drawn = counted(report.num_scenarios, "scenario")
    title = f"{report.target}: {drawn}, seed {report.settings.seed}"
    print_results(report.results, title, "runner", ("runs", "premise met in"))
    for counterexample in report.counterexamples:
        _print_counterexample(counterexample)
    for failure in report.failures:
        print_lines(f"\n{Verdict.ERROR.name} {failure}")
    if report.num_scenarios:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(report.families.items()))
        print_lines(f"\nScenarios by family: {counts}.")
    else:
        print_lines("\nNothing was run.")
    for line in _not_given(report):
        print_lines(line)
    if report.interrupted:
        print_lines("\nInterrupted: the results above are incomplete.")
    elif report.num_not_shrunk:
        print_lines(f"\n{_left(report)}")
    faults = {counterexample.finding.fingerprint for counterexample in report.counterexamples}
    print_lines(f"\n{summary(report.results, len(faults))}")


def _left(report: LoopReport) -> str:
    """What the minutes did not suffice for."""
    violations = counted(len(report.counterexamples), "violation")
    return f"The minutes were over: {report.num_not_shrunk} of {violations} may have a smaller run."


def _not_given(report: LoopReport) -> list[str]:
    """How many scenarios each runner could not be given, and why."""
    lines = []
    for runner, reasons in report.not_given.items():
        number = counted(sum(reasons.values()), "scenario")
        lines.append(f"\nNot given to {runner}: {number}.")
        by_number = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        lines += [f"  {count}: {reason}" for reason, count in by_number]
    return lines


def _print_counterexample(counterexample: LoopCounterexample) -> None:
    finding = counterexample.finding
    where = describe_place(finding)
    if finding.loop is not None:
        where += f", passes {finding.loop[0]} to {finding.loop[1]} again and again"
    runners = " and ".join(counterexample.runners)
    print_lines(f"\n{Verdict.REFUTED.name} {finding.claim} on {runners} [{finding.fingerprint}]")
    print_lines(f"  {finding.mechanism}: {describe_scenario(counterexample.trace.scenario)}")
    print_lines(f"  needs: {finding.shape or 'not shrunk'}")
    if not has_derived_sizes(counterexample.trace.scenario.config):
        print_lines(f"  {_ANY_SIZES}")
    print_lines(f"  {where}")
    print_lines(f"  observed: {finding.observed}")
    print_lines(f"  expected: {finding.expected}")


def checked_runs(
    report: LoopReport,
    package: Path | None = None,
    *,
    there: Collection[str] = (),
    details: Mapping[str, Any] | None = None,
    **named: Any,
) -> Checked:
    """A search over whole runs, as files and other tools are told of it.

    Args:
        package: the folder ``vllm`` of what was searched; ``None`` for the reference.
        there: fingerprints of what was there before a change.
        details: what else is known of the target.
        named: release, source, digest and scheduler class of the vLLM.
    """
    violations = tuple(
        of_loop(
            example.finding,
            example.trace.scenario,
            report.target,
            example.runners,
            package,
            is_new=example.finding.fingerprint not in there,
        )
        for example in report.counterexamples
    )
    about = {
        "scenarios": report.num_scenarios,
        "families": dict(report.families),
        "failures": list(report.failures),
        "interrupted": report.interrupted,
        "not_shrunk": report.num_not_shrunk,
        "not_given": {runner: dict(reasons) for runner, reasons in report.not_given.items()},
        **(details or {}),
    }
    return Checked(report.target, report.results, violations, **named, details=about)


def search_settings(settings: LoopCheckSettings) -> dict[str, Any]:
    """What decides which scenario has which number, and how it is run, as JSON data."""
    return {
        "seed": settings.seed,
        "mode": settings.mode,
        "large_every": settings.large_every,
        "code": search_code(),
    }


def search_code() -> str:
    """A digest of the code that draws scenarios, runs them, and tells whether two runs differ."""
    return code_digest("proofs.search.runs.search", "proofs.run.digest", "impl.vllm.runs.target")
