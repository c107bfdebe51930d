"""``residency report``: write what a reviewer reads, from a scenario, a trace or findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from proofs.commands.files import file_options
from proofs.commands.options import (
    device_option,
    max_passes_option,
    replayed_runner_option,
    target_options,
    tensors_on,
)
from proofs.describe.visible import print_lines
from proofs.dossiers.comparison import runs_to_compare, write_comparison
from proofs.dossiers.runs import report_replays
from proofs.drive.documents import AnyDocument, kind_of, load_any, run_document
from proofs.drive.examples import Replay
from proofs.drive.recorded_findings import recorded_findings
from proofs.drive.replay import RunnerChoice, runners_of
from proofs.jobs.ending import PlainCommand
from proofs.releases.replay_text import checked_replay, print_replayed
from proofs.report.near.comparison import compare
from proofs.results.document import Results, results_of
from proofs.results.outcome import Checked
from proofs.results.publish import MachineFiles, publish
from proofs.run.targets import NamedTargets, TargetChoice, TargetName
from spec.errors import InputError
from spec.record.document import TraceDocument
from spec.verdict import exit_code

DEFAULT_FOLDER = Path("residency-report")


@click.command("report", cls=PlainCommand)
@click.argument(
    "paths", metavar="FILES...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
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
    help="Compare two traces of one scenario, or the runs of one scenario on two targets (two of "
    "--release, --source and --target reference).",
)
@target_options(
    default=None,
    note=" When not given: a trace is judged as it was recorded, what a check found is run on the "
    "reference or the release that it was found on, and all else on our reference implementation.",
)
@replayed_runner_option
@device_option
@max_passes_option
@file_options("junit", "sarif")
def report(
    *,
    paths: tuple[Path, ...],
    folder: Path,
    is_diff: bool,
    targets: NamedTargets,
    runner: RunnerChoice | None,
    device: str,
    max_passes: int,
    files: MachineFiles,
) -> int:
    """Write a page, a text and a test for each violation.

    FILES is a scenario, a trace, a function-level case, or what a check wrote with --json. With
    --diff it is two traces of one scenario, from before and after a change.

    Exits as replay does: 0 when all held, 1 when a claim is violated, 3 for unknown, 4 when nothing
    ran, 5 for errors, 2 for wrong input and 130 after Ctrl-C. With --diff, 1 when the second run
    breaks a claim that the first one keeps, and else 0.
    """
    files = replace(files, folder=folder)
    files.require_writable()
    settings = tensors_on(device)
    choices = targets.choices()
    if is_diff:
        if files.junit is not None or files.sarif is not None:
            raise InputError("--junit and --sarif hold the results of a run, not of --diff")
        first, second = runs_to_compare(paths, choices, runner or "V1", settings, max_passes)
        return write_comparison(compare(first, second), folder)
    if len(paths) > 1 or len(choices) > 1:
        raise InputError("a report is about one file on one target; --diff compares two")
    chosen = choices[0] if choices else None
    replays = []
    for document, choice in _documents(paths[0], chosen):
        runners = runners_of(document, runner)
        replay = run_document(document, choice, runners, settings, max_passes)
        print_lines(f"{paths[0]}: {kind_of(document)} on {replay.target}")
        for replayed in replay.replayed:
            print_replayed(replayed)
        replays.append(replay)
    sections = report_replays(replays, folder, settings)
    results = results_of(
        "replay",
        _checked(replays),
        settings={"file": str(paths[0])},
        code=exit_code(run.verdict for replay in replays for run in replay.replayed),
    )
    return publish(f"report on {paths[0].name}", results, files, sections)


def _documents(path: Path, chosen: TargetChoice | None) -> list[tuple[AnyDocument, TargetChoice]]:
    """What the file holds, each with what to run it on.

    Raises:
        InputError: the file cannot be read, holds nothing to run, or names code that the command
            line does not name.
    """
    content = load_any(path)
    if not isinstance(content, Results):
        name: TargetName = "recorded" if isinstance(content, TraceDocument) else "reference"
        return [(content, chosen or TargetChoice(name))]
    pairs = []
    for found in recorded_findings(content, str(path)):
        if found.num_without:
            print_lines(f"{found.num_without} findings of {path} hold nothing that can be run")
        if chosen is None and found.code_named is not None and found.documents:
            raise InputError(
                f"{path}: was found on code that only you may choose to run, not a file; give "
                f"{found.code_named}, or another target"
            )
        pairs += [(document, chosen or found.choice) for document in found.documents]
    if not pairs:
        raise InputError(f"{path}: no finding to report on")
    return pairs


def _checked(replays: Sequence[Replay]) -> list[Checked]:
    """What became of all files, target by target."""
    by_target: dict[str, Checked] = {}
    for replay in replays:
        checked = checked_replay(replay)
        merged = by_target.get(checked.target)
        if merged is not None:
            checked = replace(
                merged,
                violations=(*merged.violations, *checked.violations),
                outcomes=(*merged.outcomes, *checked.outcomes),
            )
        by_target[checked.target] = checked
    return list(by_target.values())
