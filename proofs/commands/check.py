"""``residency check``: check the claims on a target, function by function or on its source."""

from __future__ import annotations

import json
from pathlib import Path

import click

from impl.target import FunctionTarget
from impl.tensors import TensorSettings
from impl.vllm.launch.source import Source
from proofs.commands.check_loop import check_loop, check_vllm_loops, loop_check_settings
from proofs.commands.options import faults_option, json_option, runner_option, source_option
from proofs.jobs.ending import PlainCommand
from proofs.jobs.terminal import interrupts, progress_bar
from proofs.report.machines.checked import checked_functions
from proofs.report.machines.publish import MachineFiles, machine_options, publish
from proofs.report.ready.target_info import TargetInfo
from proofs.run.targets import compared_with, named_vllms
from proofs.search.functions.check import run_check
from proofs.search.functions.parts import CheckedPart
from proofs.search.functions.present import print_report, report_to_json
from proofs.search.functions.results import (
    ALL_PARTS,
    DEFAULT_EXAMPLES,
    CheckReport,
    CheckSettings,
)
from proofs.search.runs.results import DEFAULT_EXAMPLES as DEFAULT_SCENARIOS
from proofs.search.runs.results import Mode
from spec.errors import InputError
from spec.functions.case_files import write_atomically
from spec.verdict import INTERRUPTED_EXIT_CODE, Verdict, exit_code


@click.command("check", cls=PlainCommand)
@click.option(
    "--target",
    "target_name",
    type=click.Choice(["reference", "vllm"]),
    default="reference",
    show_default=True,
    help="What to check: our reference implementation or a real vLLM.",
)
@click.option(
    "--release",
    "releases",
    multiple=True,
    help="Release of vLLM, such as 0.24.0; fetched when it is not cached. With --level loop it may "
    "be repeated.",
)
@source_option
@click.option(
    "--scheduler-class",
    metavar="PACKAGE.MODULE:CLASS",
    help="Scheduler to run in place of vLLM's own, of a fork for instance (--level loop).",
)
@click.option(
    "--against",
    metavar="RELEASE|DIR|FILE",
    help="Run the same scenarios of --level loop on this vLLM too, or take the results of an "
    "earlier --json; only violations that are new exit 1.",
)
@click.option(
    "--level",
    type=click.Choice(["function", "loop", "source"]),
    default="function",
    show_default=True,
    help="Call the functions with drawn cases, run whole drawn scenarios, or prove the claims on "
    "the source.",
)
@runner_option
@click.option(
    "--mode",
    type=click.Choice(["sync", "async", "both"]),
    default="both",
    show_default=True,
    help="Whether passes of --level loop run one by one or are scheduled ahead.",
)
@click.option("--claims", help="Ids of claims, separated by commas; all when not given.")
@click.option(
    "--examples",
    type=int,
    help=f"Cases drawn for each family of parts ({DEFAULT_EXAMPLES} when not given), or scenarios "
    f"of --level loop ({DEFAULT_SCENARIOS} when not given).",
)
@click.option(
    "--minutes",
    type=float,
    help="Search with --level loop for so long instead of --examples, making small what is found "
    "included; pages of --report come on top.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the same cases again.")
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="cpu or cuda; with --level loop also none, to run without tensors.",
)
@faults_option
@json_option
@click.option(
    "--report",
    "report_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a page and a ready test for each violation into this folder.",
)
@machine_options
def check(
    *,
    target_name: str,
    releases: tuple[str, ...],
    source: Path | None,
    scheduler_class: str | None,
    against: str | None,
    level: str,
    runner: str,
    mode: Mode,
    claims: str | None,
    examples: int | None,
    minutes: float | None,
    seed: int,
    device: str,
    faults: tuple[str, ...],
    json_file: Path | None,
    report_folder: Path | None,
    junit_file: Path | None,
    sarif_file: Path | None,
) -> int:
    """Check every claim and print what became of it.

    Exits 0 when all held, 1 when one is violated, 4 when one was never put to the test, 5 when
    nothing could be run, 2 for wrong input and 130 after Ctrl-C.
    """
    if len(releases) > 1 and level != "loop":
        raise InputError(f"--level {level} checks one release; give --release once")
    release = releases[0] if releases else None
    _refuse_contradictions(target_name, release, source, level, faults)
    if (target_name, level) != ("vllm", "loop") and (against or scheduler_class):
        raise InputError("--against and --scheduler-class go with --target vllm --level loop")
    if mode != "both" and level != "loop":
        raise InputError("--mode goes with --level loop")
    if minutes is not None and (level != "loop" or examples is not None):
        raise InputError("--minutes goes with --level loop, and without --examples")
    files = MachineFiles(junit_file, sarif_file, report_folder)
    files.require_writable(json_file)
    wanted = None if claims is None else _split(claims)
    if level == "loop":
        loop_settings = loop_check_settings(runner, wanted, examples, minutes, seed, device, mode)
        if target_name == "vllm":
            vllms = named_vllms(releases, source, scheduler_class)
            earlier = None if against is None else compared_with(against, scheduler_class)
            return check_vllm_loops(vllms, loop_settings, earlier, json_file, report_folder, files)
        return check_loop(faults, loop_settings, json_file, report_folder, files)
    if level == "source":
        from proofs.commands.prove import prove_source

        vllm = _vllm_source(release, source)
        return prove_source(vllm, claims=wanted, runner=runner, json_file=json_file, files=files)
    check_settings = CheckSettings(
        parts=_parts(runner),
        claims=wanted,
        examples=DEFAULT_EXAMPLES if examples is None else examples,
        seed=seed,
        tensors=TensorSettings(device=device),
    )
    check_settings.validate()
    package = None
    if target_name == "vllm":
        vllm = _vllm_source(release, source)
        package = vllm.package
        target = _vllm_target(vllm)
    else:
        target = _reference(faults)
    with progress_bar() as report_progress, interrupts() as interrupted:
        report = run_check(target, check_settings, report_progress, interrupted)
    print_report(report)
    if json_file is not None:
        write_atomically(json_file, json.dumps(report_to_json(report), indent=2) + "\n")
    sections = []
    if report_folder is not None:
        from proofs.dossiers.runs import report_functions

        info: TargetInfo = {"name": report.target, "release": release, "source": source}
        sections = report_functions(report.findings, report_folder, info)
    checked = checked_functions(report, package, release)
    publish(f"{report.target}: the claims on its functions", [checked], files, sections)
    return _exit_code(report, runner)


def _refuse_contradictions(
    target_name: str,
    release: str | None,
    source: Path | None,
    level: str,
    faults: tuple[str, ...],
) -> None:
    if target_name == "vllm" and release is None and source is None:
        raise InputError("--target vllm needs --release R or --source DIR")
    if release is not None and source is not None:
        raise InputError("--release and --source name two vLLMs; give one of them")
    if target_name == "reference" and (release is not None or source is not None):
        raise InputError("--release and --source name a vLLM; add --target vllm")
    if target_name == "reference" and level == "source":
        raise InputError("--level source reads the source of a vLLM; add --target vllm")
    if target_name == "vllm" and faults:
        raise InputError("--fault breaks the reference; it cannot be used with --target vllm")


def _split(names: str) -> tuple[str, ...]:
    chosen = tuple(name.strip() for name in names.split(",") if name.strip())
    if not chosen:
        raise InputError("--claims is empty; give ids separated by commas")
    return chosen


def _parts(runner: str) -> tuple[CheckedPart, ...]:
    """Everything but the gather of the runner that was not asked for."""
    left_out: dict[str, tuple[CheckedPart, ...]] = {
        "V1": ("V2", "V1 with V2"),
        "V2": ("V1", "V1 with V2"),
        "both": (),
    }
    return tuple(part for part in ALL_PARTS if part not in left_out[runner])


def _vllm_source(release: str | None, source: Path | None) -> Source:
    from impl.vllm.launch.fetch import fetch
    from impl.vllm.launch.source import from_directory

    if source is not None:
        return from_directory(source)
    assert release is not None
    return fetch(release)


def _reference(faults: tuple[str, ...]) -> FunctionTarget:
    from impl.targets.functions import ReferenceTarget

    return ReferenceTarget(faults=frozenset(faults))


def _vllm_target(vllm: Source) -> FunctionTarget:
    from impl.vllm.functions.target import VllmTarget

    return VllmTarget(vllm)


def _exit_code(report: CheckReport, runner: str) -> int:
    if report.interrupted:
        return INTERRUPTED_EXIT_CODE
    nothing_ran = (r.part == runner and not r.cases for r in report.results)
    if any(nothing_ran) and Verdict.REFUTED not in report.verdicts:
        return exit_code([Verdict.ERROR])
    return exit_code(report.verdicts)
