"""What is written of a finding on a scheduling pass that no run of an engine shows.

Such a finding holds a case and not a run: there is no timeline to draw. The page shows the case,
what the source's own code did with it, and why there is no run.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proofs.describe.cases import describe_case
from proofs.describe.words import describe_part, describe_target
from proofs.drive.origin import Origin
from proofs.report.pages.index import IndexRow, Written
from proofs.report.picture.case_text import picture_of_pass
from proofs.report.text.html import html_templates
from proofs.report.text.markup import code_span, fenced, prose, table
from spec.claims.assumptions import ASSUMPTIONS
from spec.claims.texts import any_claim
from spec.functions.case_files import finding_to_json, write_atomically
from spec.functions.findings import Finding
from spec.functions.scheduling_cases import SchedulingCase

_PAGE, _MARKDOWN, _FINDING = "report.html", "report.md", "finding.json"


def write_pass_report(
    finding: Finding,
    part: str,
    assumptions: Sequence[str],
    why_no_run: str,
    origin: Origin,
    root: Path,
) -> Written:
    """Write the folder of one finding.

    Args:
        finding: what a proof of a source refuted, by a case about scheduling.
        part: the part of the source, such as ``scheduling alone``.
        assumptions: ids of what the proof takes for granted.
        why_no_run: why no run of an engine is shown, as a sentence without a full stop.
        origin: the vLLM.
        root: where the folder goes.

    Raises:
        InputError: a file cannot be written.
    """
    case = finding.case
    assert isinstance(case, SchedulingCase), "findings on single functions have pages of their own"
    name = f"{finding.claim}-{part.replace(' ', '-')}-{finding.fingerprint}"
    folder = root / name
    values: dict[str, Any] = {
        "claim": any_claim(finding.claim),
        "finding": finding,
        "target": describe_target(finding.target),
        "picture": picture_of_pass(case),
        "case": describe_case(case),
        "why_no_run": why_no_run,
        "assumptions": [ASSUMPTIONS[name].sentence for name in assumptions],
        "reproduce": reproduce_proof(finding.claim, origin),
        "files": (_MARKDOWN, _FINDING),
        "digest": origin.digest,
    }
    page = html_templates().get_template("proved.html.jinja").render(values)
    texts = {
        _PAGE: page,
        _MARKDOWN: _markdown(values),
        _FINDING: json.dumps(finding_to_json(finding), indent=2) + "\n",
    }
    for file, text in texts.items():
        write_atomically(folder / file, text)
    row = IndexRow(
        finding.claim,
        name,
        f"{finding.mechanism}; no run of the engine shows it",
        f"{origin.target}, its source: {describe_part(part)}",
        describe_case(case),
        (_MARKDOWN, _FINDING),
    )
    return Written(row, tuple(folder / file for file in texts))


def reproduce_proof(claim: str, origin: Origin) -> str:
    """The line of shell that refutes a claim on the source again."""
    where = origin.release or shlex.quote(str(origin.source))
    return f"residency prove --source-of {where} --claim {claim}"


def _markdown(values: dict[str, Any]) -> str:
    finding, claim = values["finding"], values["claim"]
    facts = [
        ("claim", prose(claim.sentence, in_table=True)),
        ("case", code_span(values["case"], 400, in_table=True)),
        ("observed", prose(finding.observed, in_table=True)),
        ("asked for", prose(finding.expected, in_table=True)),
        ("fault", f"{prose(finding.mechanism, 300, in_table=True)}, `{finding.fingerprint}`"),
    ]
    sections = [
        f"### {code_span(claim.id)}: refuted on the source of {prose(values['target'], 200)}",
        f"**{prose(finding.mechanism)}.**",
        table(("", ""), facts),
        fenced(values["picture"].splitlines()),
        f"No run of the engine is shown: {prose(values['why_no_run'])}.",
        "Reproduce:\n\n" + fenced([values["reproduce"]], "shell"),
    ]
    return "\n\n".join(sections) + "\n"
