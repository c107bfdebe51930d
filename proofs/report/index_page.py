"""The page over all violations of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofs.report.account import Account
from proofs.report.html import html_environment
from proofs.report.origin import Origin
from proofs.search.describe import counted


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


def index_page(
    accounts: Sequence[Account],
    folder_names: Sequence[str],
    origin: Origin,
    files: Sequence[Sequence[str]] = (),
) -> str:
    """The text of ``index.html``.

    Args:
        accounts: the violations.
        folder_names: the folder of each, beside the page.
        origin: what was run.
        files: of each, the names of the files in its folder beside its page.
    """
    rows = [
        IndexRow(
            account.claim.id,
            folder,
            account.headline,
            account.example.trace.target,
            account.run,
            tuple(files[index]) if index < len(files) else (),
        )
        for index, (account, folder) in enumerate(zip(accounts, folder_names, strict=True))
    ]
    number = counted(len(rows), "violation")
    return index_html(rows, origin.target, number, origin.digest, origin.seed, origin.versions)


def index_html(
    rows: Sequence[IndexRow],
    target: str,
    number: str,
    digest: str | None,
    seed: int | None = None,
    versions: Sequence[tuple[str, str]] = (),
) -> str:
    """The page over some violations.

    Args:
        rows: the violations.
        target: on what they were found.
        number: how many, in words.
        digest: of the source that was checked.
        seed: of the search.
        versions: of what took part.
    """
    return (
        html_environment()
        .get_template("index.html.jinja")
        .render(
            target=target,
            counted=number,
            rows=rows,
            digest=digest,
            seed=seed,
            versions=versions,
        )
    )
