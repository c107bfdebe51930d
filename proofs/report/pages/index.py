"""The page over all violations of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proofs.describe.words import counted
from proofs.drive.origin import Origin
from proofs.report.pages.account import Account
from proofs.report.text.html import html_templates
from spec.functions.case_files import write_atomically

INDEX = "index.html"


@dataclass(frozen=True)
class IndexRow:
    """One violation.

    Attributes:
        claim: id of the claim.
        folder: the folder with its page, beside the index.
        sentence: what goes wrong, without a full stop.
        target: on what.
        case: the smallest scenario or case on one line.
        files: names of the files in the folder, beside the page.
    """

    claim: str
    folder: str
    sentence: str
    target: str
    case: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Written:
    """What was written about one violation.

    Attributes:
        row: its line on the page over all.
        paths: its files, the page first.
    """

    row: IndexRow
    paths: tuple[Path, ...]


def write_index(root: Path, written: Sequence[Written], origin: Origin) -> Path:
    """Write the page over violations of whatever kinds, and return its place.

    Args:
        root: the folder with their folders.
        written: what was written about each.
        origin: what they were found on.

    Raises:
        InputError: the file cannot be written.
    """
    write_atomically(root / INDEX, index_page([report.row for report in written], origin))
    return root / INDEX


def row_of(account: Account, folder: str, files: Sequence[str]) -> IndexRow:
    """The line of a violation by a run.

    Args:
        account: what is told of it.
        folder: the folder with its page, beside the index.
        files: names of the files in it, beside the page.
    """
    return IndexRow(
        account.claim.id,
        folder,
        account.headline,
        account.example.trace.target,
        account.run,
        tuple(files),
    )


def index_page(rows: Sequence[IndexRow], origin: Origin) -> str:
    """The text of ``index.html``.

    Args:
        rows: the violations.
        origin: what they were found on.
    """
    return (
        html_templates()
        .get_template("index.html.jinja")
        .render(
            target=origin.target,
            counted=counted(len(rows), "violation"),
            rows=rows,
            digest=origin.digest,
            seed=origin.seed,
            versions=origin.versions,
        )
    )
