"""The claims on the source of one vLLM, for ``residency prove`` and ``residency check``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from impl.vllm.fetch import fetch
from impl.vllm.source import Source, from_directory
from proofs.solvers import require_solvers
from proofs.source.check import MAX_FEATURES, SourceReport, check_source
from proofs.source.present import print_source_report, source_report_to_json
from spec.trace import write_atomically
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


def prove_source(
    release_or_folder: str, json_file: Path | None = None, max_features: int = MAX_FEATURES
) -> int:
    """Prove or refute every claim on the source, print the result, write the file asked for.

    Returns:
        The exit code of the worst verdict.

    Raises:
        InputError: an unknown release, a folder without vLLM, a missing solver, or a file that
            cannot be written.
    """
    console = Console()
    source = named_source(release_or_folder)
    return show(source_report(source, console, max_features=max_features), console, json_file)


def source_report(
    source: Source,
    console: Console,
    parts: Sequence[str] | None = None,
    max_features: int = MAX_FEATURES,
) -> SourceReport:
    """Run the questions on the source, with a progress bar on a terminal.

    Args:
        source: a vLLM.
        console: where the progress is shown.
        parts: parts to check; all by default.
        max_features: features of a request at once, 1 to 3.

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
