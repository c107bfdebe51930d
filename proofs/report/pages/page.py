"""A Markdown page about one finding, for a reviewer who has never heard of this project."""

from __future__ import annotations

from impl.vllm.launch.load import patches_for
from proofs.describe.words import describe_target
from proofs.report.picture.case_text import picture
from proofs.report.ready.function import environment
from proofs.report.ready.reach import reach_of
from proofs.report.ready.target_info import (
    TargetInfo,
    broken_assumption,
    code_of,
    digest_of,
    import_path,
    is_vllm,
    part_of,
)
from proofs.report.text.literals import printable
from proofs.report.text.public import linked_markdown
from spec.claims.assumptions import Assumption, assumption
from spec.claims.texts import function_claim
from spec.functions.cases import BookCase
from spec.functions.findings import Finding


def page(finding: Finding, info: TargetInfo, json_name: str, test_name: str | None) -> str:
    """The text of the Markdown page.

    Args:
        finding: what was found.
        info: the target it was found on.
        json_name: file that holds the case.
        test_name: file of the ready test, or ``None`` where there is none.
    """
    claim = function_claim(finding.claim)
    part = part_of(finding, info)
    broken = broken_assumption(part)
    return (
        environment()
        .get_template("page.md.jinja")
        .render(
            claim=claim,
            verdict=_marked_up_verdict(finding, broken),
            target=printable(describe_target(finding.target)),
            code=code_of(part) if is_vllm(info) else None,
            mechanism=printable(finding.mechanism),
            fingerprint=finding.fingerprint,
            digest=digest_of(info),
            picture=picture(finding.function_case),
            has_positions=not isinstance(finding.case, BookCase),
            observed=printable(finding.observed),
            expected=printable(finding.expected),
            why=linked_markdown(claim.why[0].upper() + claim.why[1:]),
            reach=reach_of(finding),
            reproduce=reproduce_function(info, test_name, finding.claim),
            has_test=test_name is not None,
            json_name=json_name,
            broken=broken,
            assumptions=[a for a in map(assumption, claim.assumptions) if a != broken],
            not_expected=claim.not_expected,
            patches=patches_for(part) if is_vllm(info) else (),
        )
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


def reproduce_function(info: TargetInfo, test_name: str | None, claim_id: str) -> str:
    """The line of shell that shows the violation again, run in the report's folder."""
    if test_name is None:
        return f"residency check --target reference --claims {claim_id}"
    return f"PYTHONPATH={import_path(info)} python -m pytest {test_name}"
