"""The claims on the source of one vLLM, for ``residency prove`` and ``residency check``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from impl.target import RUNNERS
from impl.vllm.launch.source import Source
from proofs.describe.visible import print_lines, table_text
from proofs.jobs.ending import PlainCommand
from proofs.results.document import results_of
from proofs.results.publish import NO_FILES, MachineFiles, publish, tell_pages
from proofs.run.targets import vllm_of
from proofs.search.functions.results import ALL_PARTS, CheckSettings
from proofs.smt.solvers import require_solvers
from proofs.source.answers import Answers
from proofs.source.check import SourceReport, check_source
from proofs.source.jobs import MAX_FEATURES
from proofs.source.passes.run_claims import RULES as RUN_RULES
from proofs.source.passes.run_scenario import FEW_PASSES, MOST_PASSES
from proofs.source.passes.scheduling_claims import CLAIMS as SCHEDULING_CLAIMS
from proofs.source.scenario_files import replay_commands, write_scenarios
from proofs.source.source_text import checked_source, print_source_report
from proofs.theorems.prove import prove_options, run
from spec.claims.texts import LOOP_CLAIMS
from spec.errors import InputError


@click.command("prove", cls=PlainCommand)
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
    "--no-cache",
    is_flag=True,
    help="With --source-of: ask every question again, also those that an earlier run settled on "
    "the same text.",
)
@click.option(
    "--scenarios",
    "scenario_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --source-of: write the counterexamples of whole runs here, to be replayed.",
)
@click.option(
    "--report",
    "report_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --source-of: write a page for each refuted claim into this folder; what is refuted "
    "about passes is run on the engine of that vLLM.",
)
@click.option(
    "--sarif",
    "sarif_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --source-of: write what is refuted, with its source line, to this SARIF file.",
)
def prove_command(
    *,
    source_of: str | None,
    max_features: int,
    num_passes: int,
    no_cache: bool,
    scenario_folder: Path | None,
    report_folder: Path | None,
    sarif_file: Path | None,
    **options: Any,
) -> int:
    """Prove the rules, or with --source-of a release's source.

    Rules are proved for all integers; a source for the shapes that docs/limits.md names.

    Exits 0 when all are proved, 1 when one is refuted, 2 for wrong input, 3 for unknown, 4 for
    vacuous, 5 for errors or when nothing was done and 130 after Ctrl-C.
    """
    if source_of is None:
        for given, refusal in (
            (sarif_file, "--sarif names lines of a vLLM; add --source-of"),
            (scenario_folder, "--scenarios are of a vLLM's runs; add --source-of"),
            (report_folder, "--report shows what a vLLM does; add --source-of"),
        ):
            if given is not None:
                raise InputError(refusal)
        return run(**options)
    for name, option in _ONLY_FOR_RULES.items():
        if options[name]:
            raise InputError(f"{option} cannot be used with --source-of")
    files = MachineFiles(options["json_file"], options["junit_file"], sarif_file, report_folder)
    files.require_writable(scenario_folder)
    return prove_source(
        vllm_of(source_of).source,
        claims=options["claims"] or None,
        max_features=max_features,
        num_passes=num_passes,
        answers=None if no_cache else Answers(),
        scenario_folder=scenario_folder,
        files=files,
        with_rules=not options["claims"],
    )


_ONLY_FOR_RULES = {
    "groups": "--group",
    "smt2_folder": "--smt2",
    "show_ablations": "--ablations",
}
"""Options of the rules' proofs that mean nothing for a source."""


def prove_source(
    source: Source,
    *,
    claims: Sequence[str] | None = None,
    runner: str = "both",
    max_features: int = MAX_FEATURES,
    num_passes: int = FEW_PASSES,
    answers: Answers | None = None,
    scenario_folder: Path | None = None,
    files: MachineFiles = NO_FILES,
    with_rules: bool = False,
) -> int:
    """Prove or refute the claims on a source, print the result, write the files asked for.

    Args:
        source: a vLLM.
        claims: ids of claims; ``None`` for all.
        runner: ``V1``, ``V2`` or ``both``: whose gather is proved beside all else.
        max_features: features of a request at once, 1 to 3.
        num_passes: passes of a whole run, 2 or 3.
        answers: those of earlier runs, to be used and added to.
        scenario_folder: where the counterexamples of whole runs are written, if anywhere.
        files: what other tools are told; its folder gets the reports.
        with_rules: whether the source is compared with the rules too.

    Returns:
        The exit code of the worst verdict.

    Raises:
        InputError: an unknown claim, source that cannot be read, a missing solver, or a file that
            cannot be written.
    """
    console = Console()
    report = source_report(
        source, parts_to_prove(claims, runner), max_features, num_passes, answers
    )
    if not with_rules:
        report = only_claims(report, claims)
    print_source_report(report, console)
    if not report.results:
        print_lines("Nothing was run.")
    if scenario_folder is not None:
        tell_scenarios(report, source, scenario_folder)
    sections = []
    if files.folder is not None:
        from proofs.dossiers.source import report_source

        sections = report_source(report, source, files.folder)
        refuted = [result for result in report.results if result.finding is not None]
        tell_pages(len(refuted), len(sections))
    package = source.package.resolve()
    folder = None if source.release is not None else str(package.parent)
    checked = checked_source(
        report, package, release=source.release, source=folder, digest=source.digest
    )
    results = results_of(
        "prove-source",
        [checked],
        settings={"max_features": report.max_features, "num_passes": report.num_passes},
    )
    return publish(f"{source.name}: the claims on its source", results, files, sections)


def parts_to_prove(claims: Sequence[str] | None, runner: str) -> tuple[str, ...] | None:
    """The parts to prove, without the gather of the runner that was not asked for.

    Args:
        claims: ids of claims; ``None`` for all.
        runner: ``V1``, ``V2`` or ``both``.

    Returns:
        The parts; ``None`` for all.

    Raises:
        InputError: an unknown claim, or one that no source proof is about.
    """
    if claims is None and runner == "both":
        return None
    parts = ALL_SOURCE_PARTS if claims is None else parts_of_claims(claims)
    left_out = [name for name in RUNNERS if runner not in (name, "both")]
    return tuple(part for part in parts if part not in left_out)


def parts_of_claims(claims: Sequence[str]) -> tuple[str, ...]:
    """The parts on which any of the claims is proved.

    Raises:
        InputError: an unknown claim, or one that no source proof is about.
    """
    parts = tuple(part for part, asked in _ON_PASSES.items() if set(claims) & set(asked))
    of_parts = {claim for part in ALL_PARTS for claim in CheckSettings().claims_of(part)}
    claims_of_parts = of_parts.union(*_ON_PASSES.values())
    settings = CheckSettings(claims=tuple(claims))
    of_functions = tuple(part for part in settings.parts if settings.claims_of(part))
    for claim in claims:
        if claim not in claims_of_parts:
            accepted = ", ".join(sorted(claims_of_parts))
            what = "no source proof is about" if claim in LOOP_CLAIMS else "unknown"
            raise InputError(f"{what} claim {claim!r}; known claims: {accepted}")
    return (*of_functions, *parts)


_ON_PASSES = {"scheduling": SCHEDULING_CLAIMS, "runs": tuple(RUN_RULES)}
"""Parts about whole passes, and the claims on them."""

ALL_SOURCE_PARTS = (*ALL_PARTS, *_ON_PASSES)
"""Every part; those that no source proof is about are passed over."""


def source_report(
    source: Source,
    parts: Sequence[str] | None = None,
    max_features: int = MAX_FEATURES,
    num_passes: int = FEW_PASSES,
    answers: Answers | None = None,
) -> SourceReport:
    """Run the questions on the source; how far that is, is told on the standard error.

    Args:
        source: a vLLM.
        parts: parts to check; all by default.
        max_features: features of a request at once, 1 to 3.
        num_passes: passes of a whole run, 2 or 3.
        answers: those of earlier runs, to be used and added to.

    Raises:
        InputError: a missing solver, or source that cannot be read.
    """
    require_solvers()
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(table_text(source.name), total=None)
        last_shown = time.monotonic()

        def advance(done: int, total: int) -> None:
            nonlocal last_shown
            progress.update(task, completed=done, total=total)
            if not console.is_terminal and time.monotonic() - last_shown > _SECONDS_BETWEEN_LINES:
                last_shown = time.monotonic()
                print_lines(f"{source.name}: {done} of {total} questions", err=True)

        report = check_source(
            source.package,
            source.name,
            parts=parts,
            max_features=max_features,
            num_passes=num_passes,
            answers=answers,
            advance=advance,
        )
    if report.num_kept:
        print_lines(
            f"{report.num_kept} of {report.num_questions} answers are from earlier runs "
            "(--no-cache asks again)",
            err=True,
        )
    return report


_SECONDS_BETWEEN_LINES = 30
"""A log without a line for minutes looks as if the command hung."""


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
        print_lines(command)
