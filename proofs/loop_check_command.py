"""``residency check --level loop``: search whole runs of a target for violated claims."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from impl.target import RUNNERS, Runner
from impl.tensors import TensorSettings
from impl.vllm.fetch import fetch
from impl.vllm.source import from_directory
from proofs.loop.against import code_against
from proofs.loop.jobs import VllmName
from proofs.loop.vllm_check import VllmReport, check_vllms
from proofs.loop.vllm_present import print_patches, print_vllm_report, vllm_report_to_json
from proofs.report.checked import checked_loop
from proofs.report.junit import Outcome
from proofs.report.origin import Origin, vllm_origin
from proofs.report.publish import Checked, MachineFiles, publish
from proofs.search.loop.present import loop_report_to_json, print_loop_report
from proofs.search.loop.results import (
    DEFAULT_EXAMPLES,
    LoopCheckSettings,
    Mode,
)
from proofs.search.loop.search import run_loop_check
from proofs.terminal import interrupts, progress_bar
from spec.errors import InputError
from spec.trace import write_atomically
from spec.verdict import INTERRUPTED_EXIT_CODE, USAGE_EXIT_CODE, Verdict, exit_code

TITLE = "the claims on whole runs"
"""What is said of a search, after the target's name."""


def loop_check_settings(
    runner: str,
    claims: tuple[str, ...] | None,
    examples: int | None,
    minutes: float | None,
    seed: int,
    device: str,
    mode: Mode = "both",
) -> LoopCheckSettings:
    """The settings that the options ask for.

    Args:
        runner: ``V1``, ``V2`` or ``both``.
        claims: ids of claims; ``None`` for all.
        examples: scenarios to draw; ``None`` for the usual number.
        minutes: how long to draw instead.
        seed: draws the same scenarios again.
        device: ``cpu``, ``cuda``, or ``none`` to run without tensors.
        mode: which engines run.

    Raises:
        InputError: nothing could be done with them.
    """
    runners: tuple[Runner, ...] = tuple(r for r in RUNNERS if runner in (r, "both"))
    settings = LoopCheckSettings(
        runners=runners,
        claims=claims,
        examples=DEFAULT_EXAMPLES if examples is None else examples,
        minutes=minutes,
        seed=seed,
        tensors=None if device == "none" else TensorSettings(device=device),
        mode=mode,
    )
    settings.validate()
    return settings


def check_loop(
    faults: Sequence[str],
    settings: LoopCheckSettings,
    json_file: Path | None,
    report_folder: Path | None,
    files: MachineFiles,
) -> int:
    """Search the reference with the given faults and print what was found; the exit code.

    Args:
        faults: switches of the reference that are on.
        settings: for what, and how hard.
        json_file: where to write the results, or ``None``.
        report_folder: where to write the reports, or ``None``.
        files: what other tools are told.

    Raises:
        InputError: an unknown fault, or a file cannot be written.
    """
    from impl.reference.loop_target import ReferenceLoop

    target = ReferenceLoop(faults)
    with progress_bar() as report_progress, interrupts() as interrupted:
        report = run_loop_check(target, settings, report_progress, interrupted)
    print_loop_report(report)
    if json_file is not None:
        write_atomically(json_file, json.dumps(loop_report_to_json(report), indent=2) + "\n")
    sections = []
    if report_folder is not None:
        from proofs.reporting import report_runs

        origin = Origin(report.target, faults=tuple(sorted(faults)), seed=settings.seed)
        sections = report_runs(
            report.counterexamples, origin, None, report_folder, tensors=settings.tensors
        )
    publish(f"{report.target}: {TITLE}", [checked_loop(report)], files, sections)
    if report.interrupted:
        return INTERRUPTED_EXIT_CODE
    return exit_code(report.verdicts)


def named_vllms(
    releases: Sequence[str], source: Path | None, scheduler_class: str | None
) -> tuple[VllmName, ...]:
    """The vLLMs that the options name, each once; releases are fetched when they are not cached.

    Raises:
        InputError: an unknown release, no network, or a folder without vLLM.
    """
    if source is not None:
        return (VllmName(from_directory(source), scheduler_class),)
    named = (VllmName(fetch(release), scheduler_class) for release in releases)
    return tuple(dict.fromkeys(named))


def compared_with(against: str, scheduler_class: str | None) -> VllmName | Path:
    """What ``--against`` names: a folder with a vLLM, a file of results, or a release.

    A release runs with its own scheduler; a folder with the class named, as an earlier state of the
    same fork has it.

    Raises:
        InputError: none of them.
    """
    path = Path(against)
    if path.is_dir():
        return VllmName(from_directory(path), scheduler_class)
    if path.is_file():
        return path
    if path.suffix == ".json" or len(path.parts) > 1:
        raise InputError(f"{against}: no such file or folder")
    return VllmName(fetch(against))


def check_vllm_loops(
    vllms: Sequence[VllmName],
    settings: LoopCheckSettings,
    against: VllmName | Path | None,
    json_file: Path | None,
    report_folder: Path | None,
    files: MachineFiles,
) -> int:
    """Search real vLLMs, each in a process of its own, and print what was found; the exit code.

    Args:
        vllms: what to search.
        settings: for what, and how hard.
        against: what to compare with, or ``None``.
        json_file: where to write the results, or ``None``.
        report_folder: where to write the reports, or ``None``.
        files: what other tools are told.

    Raises:
        InputError: a file cannot be read or written, or nothing can be searched.
    """
    keeps = json_file is not None
    with progress_bar() as report_progress, interrupts() as interrupted:
        reports = check_vllms(vllms, settings, against, keeps, report_progress, interrupted)
        was_interrupted = interrupted()
    if len(reports) == 1 and reports[0].refused is not None:
        raise InputError(reports[0].refused)
    for index, report in enumerate(reports):
        if index:
            click.echo("")
        print_vllm_report(report)
    print_patches()
    if json_file is not None:
        data = [vllm_report_to_json(report) for report in reports]
        whole = data[0] if len(data) == 1 else {"schema": 1, "level": "loop", "reports": data}
        write_atomically(json_file, json.dumps(whole, indent=1) + "\n")
    sections: list[str] = []
    if report_folder is not None:
        from proofs.reporting import TargetRuns, report_targets

        runs = [
            TargetRuns(
                report.searched.report.counterexamples,
                vllm_origin(report.vllm, settings.seed),
                report.vllm,
                _there(report),
            )
            for report in reports
            if report.searched is not None
        ]
        several = len(reports) > 1
        sections = report_targets(runs, report_folder, settings.tensors, apart=several)
    publish(f"{_names(reports)}: {TITLE}", [_checked(r) for r in reports], files, sections)
    if was_interrupted:
        return INTERRUPTED_EXIT_CODE
    return _worst([_code(report) for report in reports])


def _there(report: VllmReport) -> tuple[str, ...]:
    """Fingerprints of what was there before."""
    return () if report.compared is None else report.compared.there


def _names(reports: Sequence[VllmReport]) -> str:
    return ", ".join(report.vllm.source.name for report in reports)


def _checked(report: VllmReport) -> Checked:
    source = report.vllm.source
    if report.searched is None:
        reason = report.refused or report.failed or "not searched"
        failure = Outcome("every claim", "the loop", Verdict.ERROR, (reason,))
        return Checked(source.name, (), (failure,), source.release)
    return checked_loop(report.searched.report, source.package, source.release, _there(report))


def _code(report: VllmReport) -> int:
    if report.refused is not None:
        return USAGE_EXIT_CODE
    if report.searched is None:
        return exit_code([Verdict.ERROR])
    found = report.searched.report
    if report.compared is not None:
        return code_against(found, report.compared)
    return exit_code(found.verdicts)


def _worst(codes: Sequence[int]) -> int:
    """The worst exit code: bad input, then the order in which verdicts are worse."""
    if USAGE_EXIT_CODE in codes:
        return USAGE_EXIT_CODE
    by_code = {exit_code([verdict]): verdict for verdict in Verdict}
    return exit_code(by_code[code] for code in codes)
