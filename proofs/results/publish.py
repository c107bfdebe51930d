"""What every command does at its end for machines: JUnit, SARIF, annotations, a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proofs.describe.visible import print_lines
from proofs.describe.words import counted
from proofs.results.document import Results, dumps
from proofs.results.github import announce
from proofs.results.junit import to_junit
from proofs.results.sarif import to_sarif
from spec.functions.case_files import require_writable, write_atomically


@dataclass(frozen=True)
class MachineFiles:
    """Files for other tools; ``None`` where none is asked for.

    Attributes:
        json: everything that was found, with a published schema.
        junit: a JUnit file.
        sarif: a SARIF file.
        folder: the folder of the reports, which gets JUnit and SARIF under fixed names.
    """

    json: Path | None = None
    junit: Path | None = None
    sarif: Path | None = None
    folder: Path | None = None

    def require_writable(self, *others: Path | None) -> None:
        """Check, before any work is done, that they can be written.

        Args:
            others: further files and folders of the same command.

        Raises:
            InputError: one of them cannot.
        """
        for path in (self.json, self.junit, self.sarif, self.folder, *others):
            if path is not None:
                require_writable(path)


NO_FILES = MachineFiles()
"""Nothing is written."""


def publish(title: str, results: Results, files: MachineFiles, sections: Sequence[str] = ()) -> int:
    """Write the files asked for, and tell GitHub where the environment asks for it.

    Args:
        title: what was done, on one line.
        results: what was found.
        files: where to write.
        sections: what else the summary tells, as Markdown.

    Returns:
        The exit code of the command.

    Raises:
        InputError: a file cannot be written.
    """
    violations = [v for checked in results.targets for v in checked.violations]
    junit = to_junit(results.targets)
    sarif = to_sarif(results.targets)
    in_folder: list[tuple[Path, str]] = []
    if files.folder is not None:
        in_folder.append((files.folder / "junit.xml", junit))
        if any(violation.place is not None for violation in violations):
            in_folder.append((files.folder / "results.sarif", sarif))
    for path, text in ((files.junit, junit), (files.sarif, sarif), *in_folder):
        if path is not None:
            write_atomically(path, text)
    if files.json is not None:
        write_atomically(files.json, dumps(results))
    announce(title, violations, sections)
    return results.exit_code


def tell_pages(refuted: int, pages: int) -> None:
    """Say where several refuted questions have one page between them, under another id.

    Args:
        refuted: how many questions of a source proof are refuted.
        pages: how many pages were written about them.
    """
    if refuted > pages:
        print_lines(
            f"{refuted} refuted questions on {counted(pages, 'page')}: what the engine shows in "
            "one and the same way has one page, which bears the id of that run's fault"
        )
