"""Write reports at the end of a command, and print where they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

import click

from impl.tensors import TensorSettings
from proofs.loop.jobs import VllmName
from proofs.replaying import Replay
from proofs.report import TargetInfo, write_dossiers
from proofs.report.folders import RerunFor, folder_name, write_reports
from proofs.report.links import Links
from proofs.report.origin import Origin
from proofs.report.rerun import reference_rerun, vllm_reruns
from proofs.search.loop.results import LoopCounterexample
from spec.findings import Finding


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
    new = [example for example in examples if example.finding.fingerprint not in there]
    written = write_reports(examples, origin, folder, _rerun_for(new, origin, vllm, tensors))
    for path in written:
        click.echo(f"wrote {path}")
    fresh = {folder_name(example) for example in new}
    return [
        path.read_text("utf-8")
        for path in written
        if path.name == Links().markdown and path.parent.name in fresh
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
    for target, its in by_target.items():
        place = folder / folder_of(target) if len(by_target) > 1 else folder
        sections += _report_functions(its, place)
        # One fault may show in several files.
        examples = {
            example.finding.fingerprint: example
            for replay in reversed(its)
            for example in reversed(replay.examples)
        }
        if examples:
            in_order = list(examples.values())[::-1]
            sections += report_runs(in_order, its[0].origin, its[0].vllm, place, tensors=tensors)
    return sections


def folder_of(target: str) -> str:
    """Name of a target's folder where reports are about several."""
    return re.sub(r"[^A-Za-z0-9.+-]+", "-", target).strip("-")[:100] or "target"


def _report_functions(replays: Sequence[Replay], folder: Path) -> list[str]:
    """Write what belongs to violations by single functions; the texts for a pull request."""
    findings = {
        (found.target, found.fingerprint): found
        for replay in replays
        for one in replay.replayed
        for found in one.findings
        if isinstance(found, Finding)
    }
    origin = replays[0].origin
    info: TargetInfo = {
        "name": origin.target,
        "release": origin.release,
        "source": origin.source,
    }
    return report_functions(list(findings.values()), folder, info)


def report_functions(findings: Sequence[Finding], folder: Path, info: TargetInfo) -> list[str]:
    """Write a report on each violation by a function, if any; the texts for a pull request.

    Args:
        findings: the violations.
        folder: where the reports go.
        info: the target they were found on.

    Raises:
        InputError: a file cannot be written.
    """
    return _tell_written(write_dossiers(findings, folder, info)) if findings else []


def _tell_written(paths: Sequence[Path]) -> list[str]:
    """Print the names of the files of reports; the texts for a pull request among them."""
    for path in paths:
        click.echo(f"wrote {path}")
    return [path.read_text("utf-8") for path in paths if path.name == Links().markdown]


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
