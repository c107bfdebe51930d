"""The options that name files to write, alike on every command.

They stand apart from the other options, which take seconds to import: their values are tensors'
devices and targets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

import click

from proofs.results.publish import MachineFiles

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


def file_options(
    *names: str, report: str = "Write a page and a ready test for each violation into this folder."
) -> Decorator:
    """Add the options that name files to write; the command gets one ``files``.

    Args:
        names: of ``json``, ``report``, ``junit`` and ``sarif`` those wanted; all when not given.
        report: help of ``--report``.
    """
    wanted = names or ("json", "report", "junit", "sarif")
    helps = {
        "json": ("json_file", FILE, "Write everything that was found to this JSON file."),
        "report": ("report_folder", FOLDER, report),
        "junit": ("junit_file", FILE, "Write a JUnit file."),
        "sarif": (
            "sarif_file",
            FILE,
            "Write violations that have a source line to this SARIF 2.1.0 file.",
        ),
    }
    options = [
        click.option(f"--{name}", parameter, type=kind, help=text)
        for name, (parameter, kind, text) in helps.items()
        if name in wanted
    ]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def packed(
            *,
            json_file: Path | None = None,
            report_folder: Path | None = None,
            junit_file: Path | None = None,
            sarif_file: Path | None = None,
            **others: Any,
        ) -> Any:
            files = MachineFiles(json_file, junit_file, sarif_file, report_folder)
            return command(files=files, **others)

        return with_options(packed, options)

    return decorate


def with_options(command: Callable[..., Any], options: Sequence[Decorator]) -> Callable[..., Any]:
    """The command with these options, in their order in its help."""
    for option in reversed(options):
        command = option(command)
    return command
