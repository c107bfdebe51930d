"""``residency report``: write what a reviewer reads, from a scenario, a trace or findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from impl.tensors import TensorSettings
from proofs.commands.options import (
    SOURCE_HELP,
    faults_option,
    max_passes_option,
    replayed_device_option,
    replayed_runner_option,
    scheduler_class_option,
)
from proofs.describe.visible import print_lines
from proofs.dossiers.comparison import runs_to_compare, write_comparison
from proofs.dossiers.runs import report_replays
from proofs.drive.documents import AnyDocument, kind_of, load_any, run_document
from proofs.drive.examples import Replay
from proofs.drive.recorded_findings import read_findings
from proofs.drive.replay import RunnerChoice, runners_of
from proofs.jobs.ending import PlainCommand
from proofs.releases.replay_present import print_replayed
from proofs.report.machines.checked import checked_replay
from proofs.report.machines.publish import Checked, MachineFiles, machine_options, publish
from proofs.report.near.comparison import compare
from proofs.run.targets import TargetChoice, TargetName
from spec.errors import InputError
from spec.record.document import TraceDocument
from spec.verdict import exit_code

DEFAULT_FOLDER = Path("residency-report")


@click.command("report", cls=PlainCommand)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Folder for the report.",
)
@click.option(
    "--diff",
    "is_diff",
    is_flag=True,
    help="Put two traces of one scenario side by side; or a scenario on two of --release, --source "
    "and --target reference.",
)
@click.option(
    "--target",
    "target_name",
    type=click.Choice(["reference", "vllm", "recorded"]),
    help="What to run it on. When not given: a trace is judged as it was recorded, findings run on "
    "what they were found on, and the rest on our reference implementation.",
)
@click.option(
    "--release",
    "releases",
    multiple=True,
    help="Release of vLLM, such as 0.24.0; fetched when it is not cached. Twice with --diff.",
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path),
    help=SOURCE_HELP,
)
@scheduler_class_option
@replayed_runner_option
@replayed_device_option
@max_passes_option
@faults_option
@machine_options
def report(
    *,
    files: tuple[Path, ...],
    folder: Path,
    is_diff: bool,
    target_name: TargetName | None,
    releases: tuple[str, ...],
    sources: tuple[Path, ...],
    scheduler_class: str | None,
    runner: RunnerChoice | None,
    device: str,
    max_passes: int,
    faults: tuple[str, ...],
    junit_file: Path | None,
    sarif_file: Path | None,
) -> int:
    """Write a folder with a page, a text for a pull request and a test for each violation.

    FILES is a scenario, a trace, a function-level case, or what a check wrote with --json. With
    --diff it is two traces of one scenario: what did the change fix?

    Exits as replay does: 0 when all held, 1 when a claim is violated, 3 for unknown, 4 when nothing
    ran, 5 for errors, 2 for wrong input and 130 after Ctrl-C. With --diff, 1 when the second run
    breaks a claim that the first one keeps, and else 0.
    """
    outputs = MachineFiles(junit_file, sarif_file, folder)
    outputs.require_writable()
    settings = None if device == "none" else TensorSettings(device=device)
    if settings is not None:
        settings.require_device()
    choices = _choices(target_name, releases, sources, scheduler_class, faults)
    if is_diff:
        if junit_file is not None or sarif_file is not None:
            raise InputError("--junit and --sarif hold the results of a run, not of --diff")
        first, second = runs_to_compare(files, choices, runner or "V1", settings, max_passes)
        return write_comparison(compare(first, second), folder)
    if len(files) > 1 or len(choices) > 1:
        raise InputError("a report is about one file on one target; --diff compares two")
    chosen = choices[0] if choices else None
    replays = []
    for document, choice in _documents(files[0], chosen):
        runners = runners_of(document, runner)
        replay = run_document(document, choice, runners, settings, max_passes)
        print_lines(f"{files[0]}: {kind_of(document)} on {replay.target}")
        for one in replay.replayed:
            print_replayed(one)
        replays.append(replay)
    sections = report_replays(replays, folder, settings)
    publish(f"report on {files[0].name}", _checked(replays), outputs, sections)
    return exit_code(one.verdict for replay in replays for one in replay.replayed)


def _choices(
    target_name: TargetName | None,
    releases: Sequence[str],
    sources: Sequence[Path],
    scheduler_class: str | None,
    faults: tuple[str, ...],
) -> list[TargetChoice]:
    """The targets that options name, in the order of releases, folders, and the rest.

    Raises:
        InputError: options that do not fit each other.
    """
    found = [TargetChoice("vllm", release, None, scheduler_class) for release in releases]
    found += [TargetChoice("vllm", None, source, scheduler_class) for source in sources]
    if found and target_name in ("reference", "recorded"):
        if target_name == "recorded" or len(found) > 1:
            raise InputError(f"--target {target_name} does not go with --release and --source")
        found.insert(0, TargetChoice("reference", faults=faults))
    elif found and faults:
        raise InputError("--fault breaks the reference; it cannot be used with a vLLM")
    elif not found and (target_name is not None or faults):
        name = target_name or "reference"
        found.append(TargetChoice(name, scheduler_class=scheduler_class, faults=faults))
    elif not found and scheduler_class is not None:
        raise InputError("--scheduler-class names a class of a vLLM; give --release or --source")
    for choice in found:
        choice.refuse_contradictions()
    return found


def _documents(path: Path, chosen: TargetChoice | None) -> list[tuple[AnyDocument, TargetChoice]]:
    """What the file holds, each with what to run it on.

    Raises:
        InputError: the file cannot be read, or holds nothing to run.
    """
    recorded = read_findings(path)
    if recorded is None:
        document = load_any(path)
        name: TargetName = "recorded" if isinstance(document, TraceDocument) else "reference"
        return [(document, chosen or TargetChoice(name))]
    for one in recorded:
        if one.num_without:
            print_lines(f"{one.num_without} findings of {path} hold nothing that can be run")
    pairs = [(document, chosen or one.choice) for one in recorded for document in one.documents]
    if not pairs:
        raise InputError(f"{path}: no finding to report on")
    return pairs


def _checked(replays: Sequence[Replay]) -> list[Checked]:
    """What became of all files, target by target."""
    by_target: dict[str, Checked] = {}
    for replay in replays:
        checked = checked_replay(replay)
        known = by_target.get(checked.target)
        if known is not None:
            checked = replace(
                known,
                violations=(*known.violations, *checked.violations),
                outcomes=(*known.outcomes, *checked.outcomes),
            )
        by_target[checked.target] = checked
    return list(by_target.values())
