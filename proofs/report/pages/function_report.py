"""The report on a violation that a function shows: page, Markdown, case and ready test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from impl.vllm.launch.load import patches_for
from proofs.describe.cases import describe_case
from proofs.describe.words import describe_target
from proofs.drive.origin import Origin
from proofs.report.pages.index import IndexRow, Written
from proofs.report.pages.reproduce import import_path
from proofs.report.picture.case_text import picture
from proofs.report.ready.function import ready_test
from proofs.report.ready.part_names import (
    broken_assumption,
    code_of,
    part_of,
)
from proofs.report.ready.reach import reach_of
from proofs.report.text.html import html_templates
from proofs.report.text.literals import printable
from proofs.report.text.public import linked_markdown
from proofs.report.text.templates import text_templates
from spec.claims.assumptions import Assumption, assumption
from spec.claims.texts import function_claim
from spec.functions.case_files import dumps, write_atomically
from spec.functions.cases import BookCase
from spec.functions.findings import Finding

_PAGE, _MARKDOWN, _CASE, _TEST = "report.html", "report.md", "case.json", "test_repro.py"


def function_page(
    finding: Finding, origin: Origin, files: Sequence[str], test_name: str | None
) -> str:
    """The text of ``report.html``.

    Args:
        finding: what was found.
        origin: what it was found on.
        files: names of the files beside the page.
        test_name: the ready test among them; ``None`` where there is none.
    """
    values = _values(finding, origin, test_name)
    values |= {
        "verdict": verdict(finding),
        "target": describe_target(finding.target),
        "code": None if values["code"] is None else values["code"].replace("`", ""),
        "mechanism": finding.mechanism,
        "observed": finding.observed,
        "expected": finding.expected,
        "files": files,
    }
    return html_templates().get_template("function.html.jinja").render(values)


def function_markdown(finding: Finding, origin: Origin, test_name: str | None) -> str:
    """The text of ``report.md``, for a reviewer who has never heard of this project.

    Args:
        finding: what was found.
        origin: what it was found on.
        test_name: file of the ready test; ``None`` where there is none.
    """
    values = _values(finding, origin, test_name)
    why = values["claim"].why
    values |= {
        "verdict": _marked_up_verdict(finding, values["broken"]),
        "target": printable(describe_target(finding.target)),
        "mechanism": printable(finding.mechanism),
        "observed": printable(finding.observed),
        "expected": printable(finding.expected),
        "why": linked_markdown(why[0].upper() + why[1:]),
        "json_name": _CASE,
        "not_expected": values["claim"].not_expected,
    }
    return text_templates().get_template("page.md.jinja").render(values)


def _values(finding: Finding, origin: Origin, test_name: str | None) -> dict[str, Any]:
    """What the page and the Markdown say alike."""
    claim = function_claim(finding.claim)
    part = part_of(finding, origin.target)
    broken = broken_assumption(part)
    return {
        "claim": claim,
        "code": code_of(part) if origin.is_vllm else None,
        "fingerprint": finding.fingerprint,
        "digest": origin.digest,
        "picture": picture(finding.function_case),
        "has_positions": not isinstance(finding.case, BookCase),
        "reach": reach_of(finding),
        "reproduce": reproduce_function(origin, test_name, finding.claim),
        "has_test": test_name is not None,
        "broken": broken,
        "assumptions": [a for a in map(assumption, claim.assumptions) if a != broken],
        "patches": patches_for(part) if origin.is_vllm else (),
    }


def function_row(finding: Finding, folder: str, files: Sequence[str]) -> IndexRow:
    """The line of a violation on the page over all.

    Args:
        finding: the violation.
        folder: its folder, beside that page.
        files: names of the files in its folder, beside its own page.
    """
    return IndexRow(
        finding.claim,
        folder,
        finding.mechanism,
        describe_target(finding.target),
        describe_case(finding.case),
        tuple(files),
    )


def _marked_up_verdict(finding: Finding, broken: Assumption | None) -> str:
    only = (
        "" if broken is None else f"Only without the assumption `{broken.id}` ({broken.sentence}): "
    )
    return f"{only}**{verdict(finding)}.**"


def verdict(finding: Finding) -> str:
    """What is violated and how, as a sentence without a full stop."""
    return (
        f"{printable(describe_target(finding.target))} breaks the claim that "
        f"{function_claim(finding.claim).sentence}: {printable(finding.mechanism)}"
    )


def reproduce_function(origin: Origin, test_name: str | None, claim_id: str) -> str:
    """The line of shell that shows the violation again, run in the report's folder."""
    if test_name is None:
        return f"residency check --target reference --claims {claim_id}"
    return f"PYTHONPATH={import_path(origin)} python -m pytest {test_name}"


@dataclass(frozen=True)
class FunctionReport:
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


def write_function_reports(
    findings: Sequence[Finding], directory: Path, origin: Origin
) -> list[Written]:
    """Write a folder for each finding, without a page over all of them.

    Args:
        findings: what was found.
        directory: where to write; made when it is not there.
        origin: what they were found on.

    Raises:
        InputError: a file cannot be written.
    """
    written = []
    for finding in findings:
        report = write_function_report(finding, directory, origin)
        row = function_row(finding, report.page.parent.name, report.beside)
        written.append(Written(row, report.paths))
    return written


def write_function_report(finding: Finding, directory: Path, origin: Origin) -> FunctionReport:
    """Write the files of one finding into a folder of their own, each in one step.

    The folder's name holds the claim, the part and the fingerprint, so that two faults that break
    one claim do not overwrite each other. For the reference there is no ready test: it is not
    upstream's.

    Args:
        finding: what was found.
        directory: where the folder goes; made when it is not there.
        origin: what it was found on.

    Raises:
        InputError: a file cannot be written.
    """
    part = part_of(finding, origin.target)
    folder = directory / f"{finding.claim}-{_plain_name(part)}-{finding.fingerprint}"
    test = None
    if origin.is_vllm:
        test = folder / _TEST
        name = _plain_name(f"{finding.claim}-{part}").replace("-", "_")
        write_atomically(test, ready_test(finding, part, name))
    made = FunctionReport(folder / _PAGE, folder / _MARKDOWN, folder / _CASE, test)
    test_name = None if test is None else test.name
    write_atomically(made.page, function_page(finding, origin, made.beside, test_name))
    write_atomically(made.markdown, function_markdown(finding, origin, test_name))
    write_atomically(made.case, dumps(finding.function_case, (finding,)))
    return made


def _plain_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
