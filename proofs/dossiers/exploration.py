"""Reports on what an exploration found: each shortest scenario, run on the reference."""

from __future__ import annotations

from impl.target import RUNNERS
from proofs.describe.scenarios import describe_scenario
from proofs.dossiers.runs import report_runs
from proofs.drive.documents import run_document
from proofs.drive.origin import Origin
from proofs.explore.exploration_text import explored_details, explored_settings
from proofs.explore.search import ClaimResult, ExploreReport
from proofs.results.document import Results, results_of
from proofs.results.outcome import Checked, Outcome
from proofs.results.publish import MachineFiles, publish
from proofs.results.violation import Violation, of_loop
from proofs.run.record import MAX_PASSES
from proofs.run.targets import TargetChoice
from proofs.search.runs.results import LoopCounterexample
from spec.record.document import ScenarioDocument
from spec.verdict import INTERRUPTED_EXIT_CODE, exit_code


def publish_exploration(report: ExploreReport, files: MachineFiles) -> int:
    """Write the files asked for, and a report on each violation where asked for; the exit code.

    Args:
        report: what was found.
        files: where to write; its folder gets the reports.

    Raises:
        InputError: a file cannot be written.
    """
    choice, target, examples = _examples(report)
    sections = []
    if files.folder is not None and examples:
        sections = report_runs(examples, Origin(target, faults=choice.faults), None, files.folder)
    title = f"{target}: the scope {report.settings.scope}"
    return publish(title, _results(report, target, examples), files, sections)


def explored_results(report: ExploreReport) -> Results:
    """What an exploration found, as the document that ``--json`` writes."""
    _, target, examples = _examples(report)
    return _results(report, target, examples)


def _examples(report: ExploreReport) -> tuple[TargetChoice, str, list[LoopCounterexample]]:
    """What was explored, its name, and each violation as a run of the reference shows it."""
    fault = report.settings.fault
    choice = TargetChoice("reference", faults=() if fault is None else (fault,))
    target = " ".join(["reference", *(f"+{name}" for name in choice.faults)])
    examples = [e for result in report.claims if (e := _example(result, choice)) is not None]
    return choice, target, examples


def _results(report: ExploreReport, target: str, examples: list[LoopCounterexample]) -> Results:
    violations = {
        example.finding.claim: of_loop(
            example.finding, example.trace.scenario, target, example.runners, None
        )
        for example in examples
    }
    outcomes = tuple(_outcome(result, violations.get(result.claim)) for result in report.claims)
    code = INTERRUPTED_EXIT_CODE if report.interrupted else exit_code(report.verdicts)
    return results_of(
        "explore",
        [Checked(target, outcomes, tuple(violations.values()))],
        settings=explored_settings(report),
        details=explored_details(report),
        code=code,
    )


def _example(result: ClaimResult, choice: TargetChoice) -> LoopCounterexample | None:
    """The violation as a run of the reference shows it; ``None`` where it does not."""
    violation = result.violation
    if violation is None or violation.finding is None:
        return None
    document = ScenarioDocument(1, "scenario", violation.found.scenario)
    replay = run_document(document, choice, RUNNERS, None, MAX_PASSES)
    return next((e for e in replay.examples if e.finding.claim == result.claim), None)


def _outcome(result: ClaimResult, violation: Violation | None) -> Outcome:
    found = result.violation
    return Outcome(
        result.claim,
        "all scenarios of the scope",
        result.verdict,
        cases=0 if found is None else found.found.cases,
        fingerprints=() if violation is None else (violation.fingerprint,),
        reason=None
        if found is None or violation is not None
        else f"the reference does not show it: {describe_scenario(found.found.scenario)}",
    )
