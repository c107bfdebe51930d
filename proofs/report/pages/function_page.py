"""The page about a violation that one function shows, with its case drawn in fixed columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from impl.vllm.launch.load import patches_for
from proofs.describe.cases import describe_case
from proofs.describe.words import describe_target
from proofs.report.pages.index import IndexRow
from proofs.report.pages.page import reproduce_function, verdict
from proofs.report.picture.case_text import picture
from proofs.report.ready.reach import reach_of
from proofs.report.ready.target_info import (
    TargetInfo,
    broken_assumption,
    code_of,
    digest_of,
    is_vllm,
    part_of,
)
from proofs.report.text.html import html_environment
from spec.claims.assumptions import assumption
from spec.claims.texts import function_claim
from spec.functions.cases import BookCase
from spec.functions.findings import Finding


def function_page(
    finding: Finding, info: TargetInfo, files: Sequence[str], test_name: str | None
) -> str:
    """The text of ``report.html``.

    Args:
        finding: what was found.
        info: the target it was found on.
        files: names of the files beside the page.
        test_name: the ready test among them; ``None`` where there is none.
    """
    claim = function_claim(finding.claim)
    part = part_of(finding, info)
    broken = broken_assumption(part)
    values: dict[str, Any] = {
        "claim": claim,
        "verdict": verdict(finding),
        "target": describe_target(finding.target),
        "code": code_of(part).replace("`", "") if is_vllm(info) else None,
        "mechanism": finding.mechanism,
        "fingerprint": finding.fingerprint,
        "digest": digest_of(info),
        "picture": picture(finding.function_case),
        "has_positions": not isinstance(finding.case, BookCase),
        "observed": finding.observed,
        "expected": finding.expected,
        "reach": reach_of(finding),
        "reproduce": reproduce_function(info, test_name, finding.claim),
        "files": files,
        "has_test": test_name is not None,
        "broken": broken,
        "assumptions": [a for a in map(assumption, claim.assumptions) if a != broken],
        "patches": patches_for(part) if is_vllm(info) else (),
    }
    return html_environment().get_template("function.html.jinja").render(values)


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
