"""Write what belongs to findings on single functions: a folder for each, and a page over all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proofs.drive.origin import Origin
from proofs.report.pages.function_page import function_page, function_row
from proofs.report.pages.index import Written, write_index
from proofs.report.pages.page import page
from proofs.report.ready.function import ready_test
from proofs.report.ready.target_info import TargetInfo, digest_of, is_vllm, part_of
from spec.functions.case_files import dumps, write_atomically
from spec.functions.findings import Finding

_PAGE, _MARKDOWN, _CASE, _TEST = "report.html", "report.md", "case.json", "test_repro.py"


@dataclass(frozen=True)
class Dossier:
    """The files about one finding.

    Attributes:
        page: the page.
        markdown: the same for a pull request.
        case: the case, for ``residency``.
        test: the ready test; ``None`` where there is none.
    """

    page: Path
    markdown: Path
    case: Path
    test: Path | None

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them."""
        test = () if self.test is None else (self.test,)
        return (self.page, self.markdown, *test, self.case)

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of the files beside the page."""
        return tuple(path.name for path in self.paths[1:])


def write_dossiers(
    findings: Sequence[Finding], directory: Path, target_info: TargetInfo
) -> list[Path]:
    """Write a folder for each finding, and a page over all of them.

    Args:
        findings: what was found.
        directory: where to write; made when it is not there.
        target_info: the target they were found on.

    Returns:
        The files written, the page over all of them last.

    Raises:
        InputError: a file cannot be written.
    """
    written = write_function_reports(findings, directory, target_info)
    origin = Origin(target_info["name"], digest=digest_of(target_info))
    index = write_index(directory, written, origin)
    return [*(path for one in written for path in one.paths), index]


def write_function_reports(
    findings: Sequence[Finding], directory: Path, target_info: TargetInfo
) -> list[Written]:
    """Write a folder for each finding, without a page over all of them.

    Args:
        findings: what was found.
        directory: where to write; made when it is not there.
        target_info: the target they were found on.

    Raises:
        InputError: a file cannot be written.
    """
    written = []
    for finding in findings:
        dossier = write_dossier(finding, directory, target_info)
        row = function_row(finding, dossier.page.parent.name, dossier.beside)
        written.append(Written(row, dossier.paths))
    return written


def write_dossier(finding: Finding, directory: Path, target_info: TargetInfo) -> Dossier:
    """Write the files of one finding into a folder of their own, each in one step.

    The folder's name holds the claim, the part and the fingerprint, so that two faults that break
    one claim do not overwrite each other. For the reference there is no ready test: it is not
    upstream's.

    Args:
        finding: what was found.
        directory: where the folder goes; made when it is not there.
        target_info: the target it was found on.

    Raises:
        InputError: a file cannot be written.
    """
    part = part_of(finding, target_info)
    folder = directory / f"{finding.claim}-{_plain_name(part)}-{finding.fingerprint}"
    test = None
    if is_vllm(target_info):
        test = folder / _TEST
        name = _plain_name(f"{finding.claim}-{part}").replace("-", "_")
        write_atomically(test, ready_test(finding, part, name))
    made = Dossier(folder / _PAGE, folder / _MARKDOWN, folder / _CASE, test)
    test_name = None if test is None else test.name
    write_atomically(made.page, function_page(finding, target_info, made.beside, test_name))
    write_atomically(made.markdown, page(finding, target_info, _CASE, test_name))
    write_atomically(made.case, dumps(finding.function_case, (finding,)))
    return made


def _plain_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
