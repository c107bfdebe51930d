"""``residency check --level loop``: search whole runs of a target for violated claims."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from impl.target import RUNNERS, Runner
from impl.tensors import TensorSettings
from proofs.describe.visible import print_lines
from proofs.drive.origin import Origin, vllm_origin
from proofs.jobs.terminal import interrupts, progress_bar
from proofs.releases.against import code_against
from proofs.releases.search import VllmReport, check_vllms
from proofs.releases.vllm_present import print_patches, print_vllm_report, vllm_report_to_json
from proofs.report.machines.checked import checked_loop
from proofs.report.machines.junit import Outcome
from proofs.report.machines.publish import Checked, MachineFiles, publish
from proofs.run.targets import VllmName
from proofs.search.runs.present import loop_report_to_json, print_loop_report
from proofs.search.runs.results import (
    DEFAULT_EXAMPLES,
    LoopCheckSettings,
    Mode,
)
from proofs.search.runs.search import run_loop_check
from spec.errors import InputError
from spec.functions.case_files import write_atomically
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
        examples: scenarios to draw; ``None`` for the usual number, or no limit with minutes.
        minutes: how long to search instead.
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
        examples=DEFAULT_EXAMPLES if examples is None and minutes is None else examples,
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
    from impl.targets.runs import ReferenceLoop

    target = ReferenceLoop(faults)
    with progress_bar() as report_progress, interrupts() as interrupted:
        report = run_loop_check(target, settings, report_progress, interrupted)
    print_loop_report(report)
    if json_file is not None:
        write_atomically(json_file, json.dumps(loop_report_to_json(report), indent=2) + "\n")
    sections = []
    if report_folder is not None:
        from proofs.dossiers.runs import report_runs

        origin = Origin(report.target, faults=tuple(sorted(faults)), seed=settings.seed)
        sections = report_runs(
            report.counterexamples, origin, None, report_folder, tensors=settings.tensors
        )
    publish(f"{report.target}: {TITLE}", [checked_loop(report)], files, sections)
    if report.interrupted:
        return INTERRUPTED_EXIT_CODE
    return exit_code(report.verdicts)


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
            print_lines("")
        print_vllm_report(report)
    print_patches()
    if json_file is not None:
        data = [vllm_report_to_json(report) for report in reports]
        whole = data[0] if len(data) == 1 else {"schema": 1, "level": "loop", "reports": data}
        write_atomically(json_file, json.dumps(whole, indent=1) + "\n")
    sections: list[str] = []
    if report_folder is not None:
        from proofs.dossiers.runs import TargetRuns, report_targets

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
