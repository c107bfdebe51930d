"""How the results of a replay are shown: a few lines for people, and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proofs.describe.visible import print_lines
from proofs.describe.words import counted, describe_part, describe_place
from proofs.drive.documents import AnyDocument
from proofs.drive.examples import Replay
from proofs.drive.replay import Comparison, Replayed
from proofs.results.outcome import Checked, Outcome
from proofs.results.violation import Violation, of_function, of_loop
from proofs.search.functions.check_text import print_finding
from spec.claims.assumptions import assumption
from spec.claims.texts import FUNCTION_CLAIMS, LOOP_CLAIMS
from spec.functions.case_files import Document, finding_to_json
from spec.functions.cases import BookCase
from spec.functions.findings import Finding
from spec.record.document import finding_to_json as loop_finding_to_json
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario
from spec.record.steps import Step, Trace
from spec.verdict import Verdict

_LONGEST_VALUE = 160
"""Characters of a value that is shown; files hold it whole."""


def print_broken_assumptions(document: AnyDocument) -> None:
    """Print each assumption that what the file holds breaks, and the claims that rest on it."""
    for name in broken_assumptions(document):
        texts = FUNCTION_CLAIMS if isinstance(document, Document) else LOOP_CLAIMS
        resting = [claim for claim, text in texts.items() if name in text.assumptions]
        print_lines(
            f"outside the assumption {name}: {assumption(name).sentence}. Here that is not so, "
            f"and claims that rest on it may break on a right engine: {', '.join(resting)}"
        )


def broken_assumptions(document: AnyDocument) -> tuple[str, ...]:
    """Ids of the assumptions that a case or a scenario breaks."""
    if isinstance(document, Document):
        case = document.case
        is_broken = isinstance(case, BookCase) and not case.content_is_hashed
        return ("hash-is-content",) if is_broken else ()
    return document.scenario.broken_assumptions


def print_replayed(replayed: Replayed) -> None:
    """Print the verdict, one line for each finding, and how the run relates to the recorded one."""
    print_lines(_headline(replayed))
    for finding in replayed.findings:
        if isinstance(finding, LoopFinding):
            print_lines(f"  {describe_finding(finding)}")
        else:
            print_finding(finding)
    if replayed.comparison is not None:
        assert replayed.trace is not None
        print_lines(f"  {_describe_comparison(replayed.comparison, replayed.trace)}")


def print_gone(finding: Finding | LoopFinding) -> None:
    """Print that a recorded finding did not show again."""
    print_lines(f"recorded, but did not show again: {finding.claim}: {finding.mechanism}")


def _headline(replayed: Replayed) -> str:
    words = [replayed.verdict.name]
    if replayed.findings:
        claims = {finding.claim for finding in replayed.findings}
        words.append(f"({counted(len(claims), 'claim')})")
    if replayed.reason is not None:
        words.append(f"({replayed.reason})")
    if replayed.trace is not None:
        ends = f"ends: {replayed.trace.ending}"
        words.append(f"after {counted(num_passes(replayed.trace), 'pass', 'passes')}, {ends}")
    return f"{describe_part(replayed.part)}: {' '.join(words)}"


def num_passes(trace: Trace) -> int:
    """Passes of a run."""
    return sum(step.kind == "pass" for step in trace.steps)


def describe_finding(finding: LoopFinding) -> str:
    """Everything about a finding on one line."""
    place = describe_place(finding)
    if finding.loop is not None:
        place += f", loop of passes {finding.loop[0]} to {finding.loop[1]}"
    return (
        f"{Verdict.REFUTED.name} {finding.claim} [{finding.fingerprint}] {place}: "
        f"{finding.mechanism}; observed: {finding.observed}; expected: {finding.expected}"
    )


def _describe_comparison(comparison: Comparison, trace: Trace) -> str:
    found = comparison.difference
    if found is None:
        steps = counted(comparison.num_steps, "step")
        return f"equals the run recorded on {comparison.recorded_on} in {steps}"
    start = f"differs from the run recorded on {comparison.recorded_on}"
    if not found.place:
        return f"{start} in its length: recorded {found.first}, now {found.second}"
    step = f"step {found.step} ({describe_step(trace.steps[found.step])})"
    return (
        f"{start}, first in {step}: {found.place}: recorded {shortened(found.first)}, "
        f"now {shortened(found.second)}"
    )


def describe_step(step: Step) -> str:
    """Which step it is, in words."""
    match step.kind:
        case "event":
            return f"{step.event} before pass {step.before}"
        case "pass":
            return f"pass {step.index}"
        case "update":
            return f"update of pass {step.index}"


def shortened(value: str) -> str:
    """A value, cut where it is long."""
    return value if len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 3] + "..."


def checked_replay(replay: Replay) -> Checked:
    """A file that was run once more, as files and other tools are told of it.

    Its outcomes are about all claims together.
    """
    target, origin = replay.target, replay.origin
    scenario = next(
        (result.trace.scenario for result in replay.replayed if result.trace is not None), None
    )
    violations: list[Violation] = []
    outcomes = []
    for result in replay.replayed:
        shown = [
            _violation(found, result.part, scenario, target, origin.package)
            for found in result.findings
        ]
        violations += shown
        fingerprints = tuple(violation.fingerprint for violation in shown)
        outcomes.append(
            Outcome(
                "every claim",
                result.part,
                result.verdict,
                fingerprints=fingerprints,
                reason=result.reason,
            )
        )
    return Checked(
        target,
        tuple(outcomes),
        tuple(violations),
        **origin.named,
    )


def _violation(
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


def run_to_json(replayed: Replayed) -> dict[str, Any]:
    """How a run ended, and how it relates to the recorded one, as JSON data."""
    assert replayed.trace is not None
    data: dict[str, Any] = {
        "passes": num_passes(replayed.trace),
        "ending": replayed.trace.ending,
    }
    if replayed.comparison is not None:
        data["comparison"] = _comparison_to_json(replayed.comparison)
    return data


def any_finding_to_json(finding: Finding | LoopFinding) -> dict[str, Any]:
    """A finding of either level as JSON data."""
    if isinstance(finding, LoopFinding):
        return loop_finding_to_json(finding)
    return finding_to_json(finding)


def _comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    found = comparison.difference
    data: dict[str, Any] = {
        "recorded_on": comparison.recorded_on,
        "steps": comparison.num_steps,
        "equal": found is None,
    }
    if found is not None:
        data["difference"] = {
            "step": found.step,
            "place": found.place,
            "recorded": found.first,
            "now": found.second,
        }
    return data
