"""Reports on what the proofs of a source refuted: each finding on passes as a run of the engine.

A finding on a single function has its case. One on scheduling or on whole runs is driven on the
release itself, in the loop: a run of its engine is what a maintainer believes. Where that cannot be
done, or does not show the claim broken, the page says so and tells what the proof saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from impl.vllm.launch.source import Source
from proofs.describe.cases import describe_case
from proofs.describe.words import describe_part
from proofs.dossiers.runs import finish, written_runs
from proofs.drive.drive import DriveJob, Shown, Wanted, driven
from proofs.drive.from_case import Likeness, runs_like
from proofs.drive.origin import Origin, vllm_origin
from proofs.drive.source_run import source_run
from proofs.jobs.terminal import interrupts, progress_bar
from proofs.report.pages.account import NO_EVIDENCE, Evidence
from proofs.report.pages.function_report import write_function_reports
from proofs.report.pages.index import Written
from proofs.report.pages.pass_report import write_pass_report
from proofs.run.targets import VllmName
from proofs.search.runs.results import LoopCounterexample
from proofs.source.check import SourceReport, SourceResult
from proofs.symbolic.integers import NotModelled
from spec.errors import InputError
from spec.functions.cases import SchedulingCase
from spec.functions.findings import Finding
from spec.record.scenario import Scenario


@dataclass(frozen=True)
class _Driven:
    """A finding on passes, with the scenarios for it and what the engine showed."""

    result: SourceResult
    finding: Finding
    likenesses: tuple[Likeness, ...]
    shown: Shown

    @property
    def why_not(self) -> str:
        """Why no run shows it, as a sentence without a full stop."""
        if not self.likenesses:
            return (
                "no legal scenario is known that brings an engine to this case: it holds an entry "
                "that the request took before, or settings that no engine starts with"
            )
        if not self.shown.num_run:
            return f"the engine could not be driven: {'; '.join(self.shown.reasons)}"
        number = self.shown.num_run
        what = "the scenario closest to it was" if number == 1 else f"{number} scenarios were"
        return (
            f"{what} run on the engine, and the claim held: the engine comes to this case by "
            "another way, or not at all"
        )


def report_source(report: SourceReport, source: Source, folder: Path) -> list[str]:
    """Write a report on each refuted claim; the texts for a pull request.

    Args:
        report: what the proofs found.
        source: the vLLM that they are about.
        folder: where the reports go.

    Raises:
        InputError: a file cannot be written.
        KeyboardInterrupt: it was interrupted; findings on functions, and those on passes that were
            run until then, have their pages.
    """
    origin = vllm_origin(VllmName(source))
    refuted = [(r, r.finding) for r in report.results if r.finding is not None]
    on_passes = [pair for pair in refuted if isinstance(pair[1].case, (SchedulingCase, Scenario))]
    functions = [finding for result, finding in refuted if (result, finding) not in on_passes]
    written = write_function_reports(functions, folder, origin)
    examples: dict[str, LoopCounterexample] = {}
    evidence: dict[str, Evidence] = {}
    found, was_interrupted = _drive(on_passes, source)
    for pair in found:
        if not pair.shown.is_done and was_interrupted:
            continue
        example = pair.shown.example
        if example is not None:
            key = example.finding.fingerprint
            examples.setdefault(key, example)
            evidence_of_run = evidence.get(key, NO_EVIDENCE)
            evidence[key] = Evidence(
                (*evidence_of_run.shown, *_evidence(pair, example, evidence_of_run.shown))
            )
        else:
            written.append(_without_run(pair, source, origin, folder))
    runs = written_runs(
        list(examples.values()),
        origin,
        VllmName(source),
        folder,
        there=examples if was_interrupted else (),  # Nothing is run beside what there is.
        evidence=evidence,
    )
    written = [*runs, *written]
    sections = finish(written, origin, folder) if written else []
    if was_interrupted:
        raise KeyboardInterrupt
    return sections


def _drive(
    found: Sequence[tuple[SourceResult, Finding]], source: Source
) -> tuple[list[_Driven], bool]:
    """Run what each finding is about on the engine of the source, in one process.

    Returns:
        What became of each, and whether it was interrupted.
    """
    likenesses = [_likenesses(finding) for _, finding in found]
    wanted = tuple(
        Wanted(
            finding.claim,
            finding.mechanism,
            tuple(likeness.scenario for likeness in likely),
            shrinks=True,
        )
        for (_, finding), likely in zip(found, likenesses, strict=True)
    )
    with progress_bar() as report_progress, interrupts() as interrupted:
        shown = driven(DriveJob(VllmName(source), wanted), report_progress, interrupted)
        was_interrupted = interrupted()
    done = [
        _Driven(result, finding, likely, likeness)
        for (result, finding), likely, likeness in zip(found, likenesses, shown, strict=True)
    ]
    return done, was_interrupted


def _likenesses(finding: Finding) -> tuple[Likeness, ...]:
    if isinstance(finding.case, Scenario):
        return (Likeness(finding.case),)
    assert isinstance(finding.case, SchedulingCase)
    return runs_like(finding.case)


def _evidence(
    driven: _Driven, example: LoopCounterexample, reported: Sequence[str]
) -> tuple[str, ...]:
    """How the proof came to a run, and where the run is not the proof's own case."""
    remarks = (_remark(driven.result, driven.finding), *_otherwise(driven.finding, example))
    if reported:
        return remarks
    likeness = driven.likenesses[driven.shown.index]
    way = "" if not likeness.differs else f" ({'; '.join(likeness.differs)})"
    if example.trace.scenario == likeness.scenario:
        run = f"This run is a scenario that brings the engine there{way}"
        if likeness.scenario == driven.finding.case:
            run = "This run is that very scenario on the engine"
    else:
        began = f"A scenario brought the engine there{way}"
        if likeness.scenario == driven.finding.case:
            began = "The engine breaks it in that very scenario"
        run = (
            f"{began}, which was then made smaller for as long as the engine broke the claim in "
            "the way that this run shows: it is what is left of it"
        )
    return (*remarks, run)


def _otherwise(finding: Finding, example: LoopCounterexample) -> tuple[str, ...]:
    """Where what the engine does is not told in the words of the proof, how each tells it."""
    shown = example.finding.mechanism
    if shown == finding.mechanism:
        return ()
    remark = f"on the engine, {shown}; in the proof, {finding.mechanism}"
    if isinstance(finding.case, Scenario):
        return (f"The engine breaks the claim in another way than the proof's run: {remark}",)
    return (f"Case and run are told in words of their own, and may be two faults: {remark}",)


def _remark(result: SourceResult, finding: Finding) -> str:
    """That a proof of the source refutes the claim, and on what."""
    return (
        f"The proof of the release's source refutes the claim ({describe_part(result.part)}): both "
        f"solvers do, and so does its code on plain integers, with {describe_case(finding.case)}"
    )


def _without_run(driven: _Driven, source: Source, origin: Origin, folder: Path) -> Written:
    """The report on what no run of the engine shows."""
    result, finding, why = driven.result, driven.finding, driven.why_not
    if isinstance(finding.case, Scenario):
        try:
            example = source_run(source, finding)
        except (InputError, NotModelled):
            example = None
        if example is not None:
            own = replace(
                origin,
                target=example.trace.target,
                release=None,
                source=None,
                package=None,
                recorded=True,
                by_source_proof=True,
            )
            not_shown = (f"That the engine of {source.name} does the same: {why}",)
            evidence = {
                example.finding.fingerprint: Evidence((_remark(result, finding),), not_shown)
            }
            (written,) = written_runs([example], own, None, folder, evidence=evidence)
            return written
    return write_pass_report(finding, result.part, result.assumptions, why, origin, folder)
