"""The results of the commands, as machines are told of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from proofs.drive.examples import Replay
from proofs.releases.sweep import Deviation
from proofs.report.machines.junit import Outcome
from proofs.report.machines.publish import Checked, text_of
from proofs.report.machines.violation import Violation, of_function, of_loop, of_recorded
from proofs.search.functions.present import NOT_AVAILABLE
from proofs.search.functions.results import CheckReport, Result
from proofs.search.runs.results import LoopReport
from proofs.source.check import SourceReport
from spec.functions.findings import Finding
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario
from spec.verdict import Verdict

_THERE_BEFORE = "was there before"


def checked_functions(
    report: CheckReport, package: Path | None = None, release: str | None = None
) -> Checked:
    """A check of single functions.

    Args:
        report: what was found.
        package: the folder ``vllm`` of what was checked; ``None`` for the reference.
        release: its release, where it is one.
    """
    violations = tuple(
        of_function(finding, _part(finding, report.target), package) for finding in report.findings
    )
    outcomes = tuple(_outcome(result, violations) for result in report.results)
    return Checked(report.target, violations, outcomes, release)


def _part(finding: Finding, target: str) -> str:
    return finding.target.removeprefix(target).strip()


def checked_loop(
    report: LoopReport,
    package: Path | None = None,
    release: str | None = None,
    there: Collection[str] = (),
) -> Checked:
    """A search over whole runs.

    Args:
        report: what was found.
        package: the folder ``vllm`` of what was checked; ``None`` for the reference.
        release: its release, where it is one.
        there: fingerprints of what was there before a change.
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
    outcomes = tuple(_outcome(result, violations) for result in report.results)
    return Checked(report.target, violations, outcomes, release)


def _outcome(result: Result, violations: Sequence[Violation]) -> Outcome:
    """A claim on one part; one that is only broken as it was before is skipped."""
    shown = [v for v in violations if v.fingerprint in result.fingerprints]
    told = [line for violation in shown for line in text_of(violation)]
    if result.reason is not None:
        told.append(result.reason)
    verdict = result.verdict
    if verdict is Verdict.REFUTED and shown and not any(v.is_new for v in shown):
        verdict, told = None, [_THERE_BEFORE, *told]
    return Outcome(result.claim, result.part, verdict, tuple(told))


def checked_source(
    report: SourceReport, package: Path | None = None, release: str | None = None
) -> Checked:
    """The claims on the source of a release."""
    violations = []
    outcomes = []
    for result in report.results:
        told = [result.detail] if result.detail else []
        if result.finding is not None:
            violation = of_function(result.finding, result.part, package)
            violations.append(violation)
            told += text_of(violation)
        outcomes.append(Outcome(result.claim, result.part, result.verdict, tuple(told)))
    for part, reason in report.unavailable.items():
        outcomes.append(Outcome("every claim", part, None, (reason,)))
    return Checked(report.release, tuple(violations), tuple(outcomes), release)


def checked_replay(replay: Replay) -> Checked:
    """A file that was run once more; its outcomes are about all claims together."""
    target, package, replayed = replay.target, replay.origin.package, replay.replayed
    violations: list[Violation] = []
    outcomes = []
    scenario = next((one.trace.scenario for one in replayed if one.trace is not None), None)
    for one in replayed:
        shown = [_replayed(found, one.part, scenario, target, package) for found in one.findings]
        violations += shown
        told = [line for violation in shown for line in text_of(violation)]
        if one.reason is not None:
            told.append(one.reason)
        outcomes.append(Outcome("every claim", one.part, one.verdict, tuple(told)))
    return Checked(target, tuple(violations), tuple(outcomes), replay.origin.release)


def _replayed(
    finding: Finding | LoopFinding,
    part: str,
    scenario: Scenario | None,
    target: str,
    package: Path | None,
) -> Violation:
    if isinstance(finding, Finding):
        return of_function(finding, part, package)
    assert scenario is not None, "a finding of the loop comes from a run"
    return of_loop(finding, scenario, target, (part,), package)


def checked_sweep(
    entries: Sequence[Mapping[str, Any]],
    deviations: Sequence[Deviation] = (),
    packages: Mapping[str, Path] | None = None,
) -> list[Checked]:
    """What the fresh searches of a sweep found, and where the record is not met, by release.

    Args:
        entries: what each release showed.
        deviations: recorded faults that are not where the record has them.
        packages: the folder ``vllm`` of each target, by its name.
    """
    checked = []
    for entry in entries:
        name = str(entry["target"])
        target = str(entry["release"] or name)
        package = (packages or {}).get(name)
        found = {
            finding["fingerprint"]: of_recorded(finding, target, package)
            for search in entry["searches"]
            for finding in search["findings"]
        }
        outcomes = [
            _searched(result, search["mode"], found)
            for search in entry["searches"]
            for result in search["results"]
        ]
        deviating = {one.name: one for one in deviations if one.target == name}
        for one in entry.get("recorded", ()):
            outcomes.append(_recorded(one, deviating.get(one["name"])))
        checked.append(Checked(target, tuple(found.values()), tuple(outcomes), entry["release"]))
    return checked


def _searched(result: Mapping[str, Any], mode: str, found: Mapping[str, Violation]) -> Outcome:
    """What became of a claim in the search of one mode."""
    told = [
        line
        for fingerprint in result["fingerprints"]
        if fingerprint in found
        for line in text_of(found[fingerprint])
    ]
    if "reason" in result:
        told.append(result["reason"])
    verdict = None if result["verdict"] == NOT_AVAILABLE else Verdict[result["verdict"]]
    return Outcome(result["claim"], f"{result['runner']} {mode}", verdict, tuple(told))


def _recorded(one: Mapping[str, Any], deviation: Deviation | None) -> Outcome:
    """Whether a recorded fault is where the record has it."""
    seen = tuple(
        f"{runner}: {claim} {verdict}"
        for runner, verdicts in sorted(one["verdicts"].items())
        for claim, verdict in verdicts.items()
    )
    part = f"{one['mode']}, {one['scenario']}"
    if deviation is None:
        return Outcome(f"recorded fault {one['name']}", part, Verdict.HELD, seen)
    return Outcome(f"recorded fault {one['name']}", part, deviation.verdict, (deviation.text,))
