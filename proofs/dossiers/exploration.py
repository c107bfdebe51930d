"""Reports on what an exploration found: each shortest scenario, run on the reference."""

from __future__ import annotations

from impl.target import RUNNERS
from proofs.dossiers.runs import report_runs
from proofs.drive.documents import run_document
from proofs.drive.origin import Origin
from proofs.explore.search import ClaimResult, ExploreReport
from proofs.report.machines.junit import Outcome
from proofs.report.machines.publish import Checked, MachineFiles, publish, text_of
from proofs.report.machines.violation import Violation, of_loop
from proofs.run.record import MAX_PASSES
from proofs.run.targets import TargetChoice
from proofs.search.runs.results import LoopCounterexample
from spec.record.document import ScenarioDocument


def publish_exploration(report: ExploreReport, files: MachineFiles) -> None:
    """Tell machines of an exploration, and write a report on each violation where asked for.

    Args:
        report: what was found.
        files: where to write; its folder gets the reports.

    Raises:
        InputError: a file cannot be written.
    """
    fault = report.settings.fault
    choice = TargetChoice("reference", faults=() if fault is None else (fault,))
    target = " ".join(["reference", *(f"+{name}" for name in choice.faults)])
    examples = [e for result in report.claims if (e := _example(result, choice)) is not None]
    by_claim = {
        example.finding.claim: of_loop(
            example.finding, example.trace.scenario, target, example.runners, None
        )
        for example in examples
    }
    sections = []
    if files.folder is not None and examples:
        sections = report_runs(examples, Origin(target, faults=choice.faults), None, files.folder)
    outcomes = tuple(_outcome(result, by_claim.get(result.claim)) for result in report.claims)
    checked = Checked(target, tuple(by_claim.values()), outcomes)
    publish(f"{target}: the scope {report.settings.scope}", [checked], files, sections)


def _example(result: ClaimResult, choice: TargetChoice) -> LoopCounterexample | None:
    """The violation as a run of the reference shows it; ``None`` where it does not."""
    violation = result.violation
    if violation is None or violation.finding is None:
        return None
    document = ScenarioDocument(1, "scenario", violation.found.scenario)
    replay = run_document(document, choice, RUNNERS, None, MAX_PASSES)
    return next((e for e in replay.examples if e.finding.claim == result.claim), None)


def _outcome(result: ClaimResult, violation: Violation | None) -> Outcome:
    told = () if violation is None else text_of(violation)
    return Outcome(result.claim, "all scenarios of the scope", result.verdict, told)
