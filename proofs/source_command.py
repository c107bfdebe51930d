"""``residency prove --source-of``: the claims on the source of one vLLM."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from impl.vllm.fetch import fetch
from impl.vllm.source import Source, from_directory
from proofs.solvers import require_solvers
from proofs.source.check import check_source
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


def prove_source(release_or_folder: str, json_file: Path | None = None) -> int:
    """Prove or refute every claim on the source, print the result, write the file asked for.

    Returns:
        The exit code of the worst verdict.

    Raises:
        InputError: an unknown release, a folder without vLLM, a missing solver, or a file that
            cannot be written.
    """
    require_solvers()
    source = named_source(release_or_folder)
    console = Console()
    with Progress(
        TextColumn(source.name),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("", total=None)
        report = check_source(
            source.package,
            source.name,
            advance=lambda done, total: progress.update(task, completed=done, total=total),
        )
    print_source_report(report, console)
    if json_file is not None:
        write_atomically(json_file, json.dumps(source_report_to_json(report), indent=2) + "\n")
    return exit_code(result.verdict for result in report.results)
