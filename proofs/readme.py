"""Write the generated parts of the README; ``python -m proofs.readme`` rewrites them in place.

Each part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``. A test holds the file
equal to what this module makes of the code and of the recorded results.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from impl.faults import FAULTS
from proofs.groups import all_obligations
from proofs.report.picture import picture
from proofs.search.describe import describe_part
from proofs.search.parts import CLAIMS_OF_PART
from proofs.source.piece import RULE
from proofs.summary import QUESTIONS
from spec.assumptions import ASSUMPTIONS, BY_ID
from spec.cases import EncoderOutput, GatherCase, GatherRequest
from spec.claims import CLAIMS, ClaimText
from spec.feature import Feature
from spec.loop.assumptions import LOOP_ASSUMPTIONS
from spec.loop.claims import LOOP_CLAIMS
from spec.trace import write_atomically

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RELEASES = ROOT / "tests" / "recorded" / "releases.json"
FOUND = ROOT / "tests" / "recorded" / "found" / "index.json"

_PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def render(text: str) -> str:
    """The README's text with every generated part made anew.

    Raises:
        KeyError: a part that this module does not know.
    """

    def replace(match: re.Match[str]) -> str:
        start, name, end = match.groups()
        return f"{start}{PARTS[name]()}\n{end}"

    return _PART.sub(replace, text)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _claims() -> str:
    """Every claim, and how it is shown."""
    in_loop = {claim.id: claim for claim in LOOP_CLAIMS}
    on_functions = {claim.id: claim for claim in CLAIMS}
    rows = []
    for claim_id in dict.fromkeys((*on_functions, *in_loop)):
        claim: ClaimText = in_loop[claim_id] if claim_id in in_loop else on_functions[claim_id]
        proofs = sum(obligation.claim == claim_id for obligation in all_obligations())
        checked = [describe_part(p) for p, claims in CLAIMS_OF_PART.items() if claim_id in claims]
        faults = [f.name for f in FAULTS if claim_id in (*f.breaks, *f.breaks_in_loop)]
        rows.append(
            [
                f"`{claim_id}`",
                claim.sentence,
                str(proofs) if proofs else "",
                "; ".join([*checked, *(["the loop"] if claim_id in in_loop else [])]),
                ", ".join(f"`{fault}`" for fault in faults),
            ]
        )
    head = ["claim", "says", "proofs of the rules", "checked on", "faults that break it"]
    return _table(head, rows)


def _assumptions() -> str:
    """Every assumption, and what breaks without it."""
    rows = [(a.id, a.sentence, a.without) for a in ASSUMPTIONS]
    rows += [(a.id, a.sentence, a.without) for a in LOOP_ASSUMPTIONS if a.id not in BY_ID]
    return _table(
        ["assumption", "says", "without it"],
        [[f"`{name}`", sentence, without] for name, sentence, without in rows],
    )


def _answers() -> str:
    """Both review questions of 46315, with the theorems that answer them."""
    lines: list[str] = []
    for number, question in enumerate(QUESTIONS, start=1):
        lines.append(f"{number}. **{question.question}**")
        for statement in question.statements:
            theorems = ", ".join(f"`{theorem}`" for theorem in statement.theorems)
            lines.append(f"   - {statement.sentence} ({theorems})")
    return "\n".join(lines)


def _found() -> str:
    """What was found in the newest release beyond the public list."""
    data: dict[str, Any] = json.loads(FOUND.read_text(encoding="utf-8"))
    rows = [
        [
            f"`{fault['name']}`",
            fault["sentence"],
            f"`{fault['claim']}` ({', '.join(fault['runners'])})",
            fault["reached"],
            fault["scenario"],
        ]
        for fault in data["faults"]
    ]
    return _table(["fault", "what goes wrong", "claim", "reached by", "smallest known"], rows)


def _counts() -> str:
    """How many obligations and ablations there are."""
    obligations = all_obligations()
    ablations = sum(len(obligation.ablations) for obligation in obligations)
    return (
        f"{len(obligations)} obligations about the rules, and {ablations} ablations of them that "
        "must each be refuted."
    )


def _releases() -> str:
    """What each recorded release does, and which claims fail on it."""
    data: dict[str, Any] = json.loads(RELEASES.read_text(encoding="utf-8"))
    rows = []
    for release, found in data.items():
        formula = found["free_rule"].partition("; ")[0]
        rows.append(
            [
                release,
                f"`{formula}`",
                f"`{found['tolerated']['V1']}`"
                if found["tolerated"]["V1"] == found["tolerated"]["V2"]
                else ", ".join(f"{r}: `{text}`" for r, text in found["tolerated"].items()),
                _pairs(p for p in found["source_refuted"] if not p[0].startswith(RULE)),
                _pairs(found["function_violated"]),
            ]
        )
    head = [
        "release",
        "a reference goes iff",
        "a missing feature that is read is skipped iff",
        "refuted on the source",
        "violated by the functions",
    ]
    return _table(head, rows)


def _pairs(pairs: Any) -> str:
    by_claim: dict[str, list[str]] = {}
    for claim, part in pairs:
        by_claim.setdefault(claim, []).append(describe_part(part))
    return "; ".join(f"`{claim}` ({', '.join(parts)})" for claim, parts in by_claim.items())


def _picture() -> str:
    """The boundary miss of 0.23.0, as its page draws it; two features, for the reader's sake."""
    features = (Feature(0, 3, "A"), Feature(3, 3, "B"))
    request = GatherRequest(0, 3, 7, features)
    case = GatherCase((request,), (EncoderOutput("A", 3),), 1)
    return f"```text\n{picture(case)}\n```"


PARTS: dict[str, Callable[[], str]] = {
    "claims": _claims,
    "assumptions": _assumptions,
    "answers": _answers,
    "counts": _counts,
    "releases": _releases,
    "found": _found,
    "picture": _picture,
}


def main() -> int:
    """Rewrite the README; 0."""
    write_atomically(README, render(README.read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
