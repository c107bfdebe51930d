"""Write reports at the end of a command, and print where they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from impl.tensors import TensorSettings
from proofs.describe.visible import print_lines
from proofs.describe.words import counted
from proofs.drive.examples import Replay
from proofs.drive.origin import Origin
from proofs.report.near.rerun import reference_rerun, vllm_reruns
from proofs.report.pages.account import Evidence
from proofs.report.pages.function_report import write_function_reports
from proofs.report.pages.index import Written, write_index
from proofs.report.pages.reproduce import Links
from proofs.report.pages.run_report import RerunFor, folder_name, write_run_reports
from proofs.run.targets import VllmName
from proofs.search.runs.results import LoopCounterexample
from spec.functions.findings import Finding


def report_runs(
    examples: Sequence[LoopCounterexample],
    origin: Origin,
    vllm: VllmName | None,
    folder: Path,
    *,
    tensors: TensorSettings | None = None,
    there: Collection[str] = (),
) -> list[str]:
    """Write a report on each violation by a run, and print the names of the files.

    Args:
        examples: the violations.
        origin: where they come from.
        vllm: the vLLM that was run, if it was one.
        folder: where the reports go.
        tensors: device, dtype and hidden size of runs of what lies near.
        there: fingerprints of what was there before a change; nothing is run for these.

    Returns:
        The texts for a pull request, of what is new.

    Raises:
        InputError: a file cannot be written.
    """
    return report_targets([TargetRuns(examples, origin, vllm, there)], folder, tensors)


@dataclass(frozen=True)
class TargetRuns:
    """Violations by runs of one target.

    Attributes:
        examples: the violations.
        origin: where they come from.
        vllm: the vLLM that was run, if it was one.
        there: fingerprints of what was there before a change; nothing is run for these.
    """

    examples: Sequence[LoopCounterexample]
    origin: Origin
    vllm: VllmName | None
    there: Collection[str] = ()


def report_targets(
    targets: Sequence[TargetRuns],
    folder: Path,
    tensors: TensorSettings | None = None,
    *,
    apart: bool = False,
) -> list[str]:
    """Write a report on each violation, and print the names of the files.

    Several targets get a folder each, and one page over all of them.

    Args:
        targets: the violations, target by target.
        folder: where the reports go.
        tensors: device, dtype and hidden size of runs of what lies near.
        apart: whether even a single target gets a folder of its own: others were asked for.

    Returns:
        The texts for a pull request, of what is new.

    Raises:
        InputError: a file cannot be written.
    """
    several = apart or len(targets) > 1
    sections: list[str] = []
    of_targets: list[tuple[str, Sequence[Written]]] = []
    for target in targets:
        name = folder_of(target.origin.target)
        place = folder / name if several else folder
        written = written_runs(
            target.examples, target.origin, target.vllm, place, tensors=tensors, there=target.there
        )
        old = {folder_name(e) for e in target.examples if e.finding.fingerprint in target.there}
        sections += finish(written, target.origin, place, left_out=old)
        of_targets.append((name, written))
    if several:
        _write_overview(of_targets, folder)
    return sections


def _write_overview(of_targets: Sequence[tuple[str, Sequence[Written]]], folder: Path) -> None:
    """Write the page over the violations of several targets."""
    written = [
        replace(report, row=replace(report.row, folder=f"{name}/{report.row.folder}"))
        for name, of_target in of_targets
        for report in of_target
    ]
    origin = Origin(counted(len(of_targets), "target"))
    print_lines(f"wrote {write_index(folder, written, origin)}")


def written_runs(
    examples: Sequence[LoopCounterexample],
    origin: Origin,
    vllm: VllmName | None,
    folder: Path,
    *,
    tensors: TensorSettings | None = None,
    there: Collection[str] = (),
    evidence: Mapping[str, Evidence] | None = None,
) -> list[Written]:
    """The reports on violations by runs, without the page over all; arguments as above.

    Args:
        examples: the violations.
        origin: where they come from.
        vllm: the vLLM that was run, if it was one.
        folder: where the reports go.
        tensors: device, dtype and hidden size of runs of what lies near.
        there: fingerprints of what was there before a change; nothing is run for these.
        evidence: by fingerprint, what else is known of how a violation was found.

    Raises:
        InputError: a file cannot be written.
    """
    new = [example for example in examples if example.finding.fingerprint not in there]
    rerun_for = _rerun_for(new, origin, vllm, tensors)
    return write_run_reports(examples, origin, folder, rerun_for, evidence)


def finish(
    written: Sequence[Written], origin: Origin, folder: Path, left_out: Collection[str] = ()
) -> list[str]:
    """Write the page over all, and print the names of the files.

    Args:
        written: the reports.
        origin: what they are about.
        folder: where they lie.
        left_out: folders that a pull request is told nothing of.

    Returns:
        The texts for a pull request.

    Raises:
        InputError: the page cannot be written.
    """
    index = write_index(folder, written, origin)
    paths = [*(path for report in written for path in report.paths), index]
    for path in paths:
        print_lines(f"wrote {path}")
    return [
        path.read_text("utf-8")
        for path in paths
        if path.name == Links().markdown and path.parent.name not in left_out
    ]


def report_replays(
    replays: Sequence[Replay], folder: Path, tensors: TensorSettings | None
) -> list[str]:
    """Write a report on each violation that replays showed; the texts for a pull request.

    Runs on several targets get a folder each.

    Args:
        replays: the files that were run.
        folder: where the reports go.
        tensors: device, dtype and hidden size of runs of what lies near.

    Raises:
        InputError: a file cannot be written.
    """
    by_target: dict[str, list[Replay]] = {}
    for replay in replays:
        by_target.setdefault(replay.target, []).append(replay)
    sections = []
    of_targets: list[tuple[str, Sequence[Written]]] = []
    for target, runs in by_target.items():
        place = folder / folder_of(target) if len(by_target) > 1 else folder
        origin = runs[0].origin
        written = _written_functions(runs, place)
        # One fault may show in several files.
        examples = {
            example.finding.fingerprint: example
            for replay in reversed(runs)
            for example in reversed(replay.examples)
        }
        if examples:
            in_order = list(examples.values())[::-1]
            written += written_runs(in_order, origin, runs[0].vllm, place, tensors=tensors)
        if written:
            sections += finish(written, origin, place)
            of_targets.append((folder_of(target), written))
    if len(by_target) > 1 and of_targets:
        _write_overview(of_targets, folder)
    return sections


def folder_of(target: str) -> str:
    """Name of a target's folder where reports are about several."""
    return re.sub(r"[^A-Za-z0-9.+-]+", "-", target).strip("-")[:100] or "target"


def _written_functions(replays: Sequence[Replay], folder: Path) -> list[Written]:
    """The reports on violations by single functions, without the page over all."""
    findings = {
        (found.target, found.fingerprint): found
        for replay in replays
        for run in replay.replayed
        for found in run.findings
        if isinstance(found, Finding)
    }
    return write_function_reports(list(findings.values()), folder, replays[0].origin)


def report_functions(findings: Sequence[Finding], folder: Path, origin: Origin) -> list[str]:
    """Write a report on each violation by a function, if any; the texts for a pull request.

    Args:
        findings: the violations.
        folder: where the reports go.
        origin: what they were found on.

    Raises:
        InputError: a file cannot be written.
    """
    if not findings:
        return []
    return finish(write_function_reports(findings, folder, origin), origin, folder)


def _rerun_for(
    examples: Sequence[LoopCounterexample],
    origin: Origin,
    vllm: VllmName | None,
    tensors: TensorSettings | None,
) -> RerunFor:
    """How to run what lies near; nothing can be of a run that was only recorded."""
    if origin.recorded:
        return lambda example: None
    if vllm is None:
        return lambda example: reference_rerun(example, origin.faults)
    return vllm_reruns(vllm, examples, tensors)
