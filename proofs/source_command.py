"""The claims on the source of one vLLM, for ``residency prove`` and ``residency check``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from impl.vllm.fetch import fetch
from impl.vllm.source import Source, from_directory
from proofs.prove_command import prove_options, run_or_usage_error
from proofs.report.checked import checked_source
from proofs.report.publish import MachineFiles, publish
from proofs.search.results import CheckSettings
from proofs.solvers import require_solvers
from proofs.source.check import MAX_FEATURES, SourceReport, check_source
from proofs.source.present import print_source_report, source_report_to_json
from proofs.source.run_claims import RULES as RUN_RULES
from proofs.source.run_scenario import FEW_PASSES, MOST_PASSES
from proofs.source.scenario_files import replay_commands, write_scenarios
from proofs.source.scheduling_claims import CLAIMS as SCHEDULING_CLAIMS
from spec.errors import InputError
from spec.trace import require_writable, write_atomically
from spec.verdict import exit_code


def named_source(release_or_folder: str) -> Source:
    """The source of a release, fetched if need be, or of a folder that exists.

    Raises:
        InputError: neither a known release nor a folder with a vLLM.
    """
    folder = Path(release_or_folder)
    if folder.is_dir():
        return from_directory(folder)
    return fetch(release_or_folder)


@click.command("prove")
@prove_options
@click.option(
    "--source-of",
    metavar="RELEASE|DIR",
    help="Prove the claims on the source of this vLLM instead of on the rules.",
)
@click.option(
    "--max-features",
    type=click.IntRange(1, MAX_FEATURES),
    default=MAX_FEATURES,
    show_default=True,
    help="With --source-of: features of a request at once. Fewer are quicker and prove less.",
)
@click.option(
    "--passes",
    "num_passes",
    type=click.IntRange(FEW_PASSES, MOST_PASSES),
    default=FEW_PASSES,
    show_default=True,
    help="With --source-of: passes of a whole run of the scheduler. More take minutes.",
)
@click.option(
    "--scenarios",
    "scenario_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --source-of: write the counterexamples of whole runs here, to be replayed.",
)
@click.option(
    "--sarif",
    "sarif_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --source-of: write what is refuted, with its source line, to this SARIF file.",
)
@click.pass_context
def prove_command(
    context: click.Context,
    /,
    source_of: str | None,
    max_features: int,
    num_passes: int,
    scenario_folder: Path | None,
    sarif_file: Path | None,
    **options: Any,
) -> None:
    """Prove the rules for all integers; or, with --source-of, a release's own source.

    Exits 0 when all are proved, 1 when one is refuted, 3 for unknown, 4 for vacuous, 5 for errors
    or when nothing was done, 2 for wrong input and 130 after Ctrl-C.
    """
    if source_of is None:
        if sarif_file is not None:
            raise click.UsageError("--sarif names lines of a vLLM; add --source-of")
        if scenario_folder is not None:
            raise click.UsageError("--scenarios are of a vLLM's runs; add --source-of")
        context.exit(run_or_usage_error(**options))
    for name, option in _ONLY_FOR_RULES.items():
        if options[name]:
            raise click.UsageError(f"{option} cannot be used with --source-of")
    try:
        files = MachineFiles(options["junit_file"], sarif_file)
        code = prove_source(
            source_of,
            options["claims"],
            options["json_file"],
            max_features,
            num_passes,
            files,
            scenario_folder,
        )
    except InputError as error:
        raise click.UsageError(str(error)) from None
    context.exit(code)


_ONLY_FOR_RULES = {
    "groups": "--group",
    "smt2_folder": "--smt2",
    "show_ablations": "--ablations",
}
"""Options of the rules' proofs that mean nothing for a source."""


def prove_source(
    release_or_folder: str,
    claims: Sequence[str] = (),
    json_file: Path | None = None,
    max_features: int = MAX_FEATURES,
    num_passes: int = FEW_PASSES,
    files: MachineFiles | None = None,
    scenario_folder: Path | None = None,
) -> int:
    """Prove or refute the claims on the source, print the result, write the files asked for.

    Args:
        release_or_folder: a release, or a folder with a vLLM.
        claims: ids of claims; all, and the rules, when none is given.
        json_file: where to write the result as JSON.
        max_features: features of a request at once, 1 to 3.
        num_passes: passes of a whole run, 2 or 3.
        files: what other tools are told.
        scenario_folder: where the counterexamples of whole runs are written, if anywhere.

    Returns:
        The exit code of the worst verdict.

    Raises:
        InputError: an unknown release or claim, a folder without vLLM, a missing solver, or a file
            that cannot be written.
    """
    outputs = files or MachineFiles()
    outputs.require_writable()
    for output in (json_file, scenario_folder):
        if output is not None:
            require_writable(output)
    console = Console()
    parts = parts_of_claims(claims) if claims else None
    source = named_source(release_or_folder)
    report = source_report(source, console, parts, max_features, num_passes)
    if claims:
        report = only_claims(report, claims)
    code = show(report, console, json_file)
    if scenario_folder is not None:
        tell_scenarios(report, source, scenario_folder)
    checked = checked_source(report, source.package, source.release)
    publish(f"{source.name}: the claims on its source", [checked], outputs)
    return code


def parts_of_claims(claims: Sequence[str]) -> tuple[str, ...]:
    """The parts on which any of the claims is proved.

    Raises:
        InputError: an unknown claim, or one that no source proof is about.
    """
    on_passes = {"scheduling": SCHEDULING_CLAIMS, "runs": tuple(RUN_RULES)}
    parts = tuple(part for part, asked in on_passes.items() if set(claims) & set(asked))
    known = {claim for asked in on_passes.values() for claim in asked}
    settings = CheckSettings(claims=tuple(claims))
    of_functions = tuple(part for part in settings.parts if settings.claims_of(part))
    for claim in claims:
        if claim not in known:
            CheckSettings(claims=(claim,)).validate()
    return (*of_functions, *parts)


def parts_with_claims(settings: CheckSettings) -> tuple[str, ...] | None:
    """The parts on which any of the chosen claims is checked; ``None`` for all."""
    return None if settings.claims is None else parts_of_claims(settings.claims)


def source_report(
    source: Source,
    console: Console,
    parts: Sequence[str] | None = None,
    max_features: int = MAX_FEATURES,
    num_passes: int = FEW_PASSES,
) -> SourceReport:
    """Run the questions on the source, with a progress bar on a terminal.

    Args:
        source: a vLLM.
        console: where the progress is shown.
        parts: parts to check; all by default.
        max_features: features of a request at once, 1 to 3.
        num_passes: passes of a whole run, 2 or 3.

    Raises:
        InputError: a missing solver, or source that cannot be read.
    """
    require_solvers()
    with Progress(
        TextColumn(source.name),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("", total=None)
        return check_source(
            source.package,
            source.name,
            parts=parts,
            max_features=max_features,
            num_passes=num_passes,
            advance=lambda done, total: progress.update(task, completed=done, total=total),
        )


def only_claims(report: SourceReport, claims: Sequence[str] | None) -> SourceReport:
    """The report without the rules, and with the given claims only; all of them when ``None``."""
    kept = (
        result
        for result in report.results
        if not result.is_rule and (claims is None or result.claim in claims)
    )
    return replace(report, results=tuple(kept))


def tell_scenarios(report: SourceReport, source: Source, folder: Path) -> None:
    """Write the counterexamples of whole runs, and print the command that replays each.

    Raises:
        InputError: a file cannot be written.
    """
    findings = [result.finding for result in report.results if result.finding is not None]
    for command in replay_commands(write_scenarios(findings, folder), source):
        click.echo(command)


def show(report: SourceReport, console: Console, json_file: Path | None) -> int:
    """Print the report and write the file asked for.

    Returns:
        The exit code of the worst verdict.

    Raises:
        InputError: the file cannot be written.
    """
    print_source_report(report, console)
    if json_file is not None:
        write_atomically(json_file, json.dumps(source_report_to_json(report), indent=2) + "\n")
    return exit_code(result.verdict for result in report.results)
