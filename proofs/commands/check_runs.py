"""``residency check --level loop``: search whole runs of a target for violated claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proofs.commands.options import chosen_runners, tensors_on
from proofs.describe.visible import print_lines
from proofs.drive.origin import Origin, vllm_origin
from proofs.jobs.terminal import interrupts, progress_bar
from proofs.releases.against import code_against, load_earlier
from proofs.releases.search import VllmReport, check_vllms
from proofs.releases.vllm_text import checked_vllm, print_patches, print_vllm_report
from proofs.results.document import results_of
from proofs.results.publish import MachineFiles, publish
from proofs.run.targets import NamedTargets, VllmName, compared_with
from proofs.search.runs.results import (
    DEFAULT_EXAMPLES,
    LoopCheckSettings,
    Mode,
)
from proofs.search.runs.search import run_loop_check
from proofs.search.runs.search_text import checked_runs, print_loop_report, search_settings
from spec.errors import InputError
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
    settings = LoopCheckSettings(
        runners=chosen_runners(runner),
        claims=claims,
        examples=DEFAULT_EXAMPLES if examples is None and minutes is None else examples,
        minutes=minutes,
        seed=seed,
        tensors=tensors_on(device),
        mode=mode,
    )
    settings.validate()
    return settings


def check_runs(
    targets: NamedTargets, settings: LoopCheckSettings, against: str | None, files: MachineFiles
) -> int:
    """Search whole runs of what the options name, and print what was found; the exit code.

    Args:
        targets: the reference, or one or more vLLMs.
        settings: for what, and how hard.
        against: what to compare a vLLM with, as ``--against`` names it.
        files: where to write.

    Raises:
        InputError: options that do not fit each other, a file cannot be read or written, or nothing
            can be searched.
    """
    if targets.name == "reference":
        return _check_reference(targets.single().faults, settings, files)
    earlier = None if against is None else compared_with(against, targets.scheduler_class)
    if isinstance(earlier, Path) and not load_earlier(earlier).is_of_this_code:
        print_lines(
            f"{earlier}: was made by another version of this program, so that only findings are "
            "compared, and what looks new may be so for this program alone",
            err=True,
        )
    return _check_vllms(targets.vllms(), settings, earlier, files)


def _check_reference(
    faults: Sequence[str], settings: LoopCheckSettings, files: MachineFiles
) -> int:
    from impl.targets.runs import ReferenceLoop

    target = ReferenceLoop(faults)
    with progress_bar() as report_progress, interrupts() as interrupted:
        report = run_loop_check(target, settings, report_progress, interrupted)
    print_loop_report(report)
    sections = []
    if files.folder is not None:
        from proofs.dossiers.runs import report_runs

        origin = Origin(report.target, faults=tuple(sorted(faults)), seed=settings.seed)
        sections = report_runs(
            report.counterexamples, origin, None, files.folder, tensors=settings.tensors
        )
    code = INTERRUPTED_EXIT_CODE if report.interrupted else exit_code(report.verdicts)
    results = results_of(
        "check-runs", [checked_runs(report)], settings=search_settings(settings), code=code
    )
    return publish(f"{report.target}: {TITLE}", results, files, sections)


def _check_vllms(
    vllms: Sequence[VllmName],
    settings: LoopCheckSettings,
    against: VllmName | Path | None,
    files: MachineFiles,
) -> int:
    """Search real vLLMs, each in a process of its own."""
    keeps = files.json is not None
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
    sections: list[str] = []
    if files.folder is not None:
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
        sections = report_targets(runs, files.folder, settings.tensors, apart=several)
    code = _worst([_code(report) for report in reports])
    results = results_of(
        "check-runs",
        [checked_vllm(report) for report in reports],
        settings=search_settings(settings),
        code=INTERRUPTED_EXIT_CODE if was_interrupted else code,
    )
    return publish(f"{_names(reports)}: {TITLE}", results, files, sections)


def _there(report: VllmReport) -> tuple[str, ...]:
    """Fingerprints of what was there before."""
    return () if report.compared is None else report.compared.there


def _names(reports: Sequence[VllmReport]) -> str:
    return ", ".join(report.vllm.source.name for report in reports)


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
