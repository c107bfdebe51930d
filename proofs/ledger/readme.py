"""Write the generated parts of the README; ``python -m proofs.ledger.readme`` rewrites them.

Each part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``. A test holds the file
equal to what this module makes of the code and of the recorded results.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from proofs import recorded
from proofs.ablate.present import LEGEND
from proofs.describe.words import describe_part
from proofs.ledger.build import build_ledger
from proofs.ledger.outside import rows as outside_rows
from proofs.ledger.present import breaking_faults, checked_on, proved_by
from proofs.ledger.readme_picture import PICTURE, drawing, story
from proofs.ledger.records import ROOMS, Ledger, Room
from proofs.source.ask.piece import RULE
from proofs.theorems.answers import QUESTIONS
from spec.functions.case_files import write_atomically

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
RELEASES = recorded.FOLDER / "releases.json"
ABLATION = recorded.FOLDER / "ablation.json"
FOUND = recorded.FOUND / "index.json"
MUTANTS = recorded.FOLDER / "source_mutants.json"

_ROOMS: dict[Room, str] = {
    "rules": "the rules",
    "relation": "the transitions",
    "progress": "progress",
}
"""What the proofs of each room are about."""

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


@cache
def _ledger() -> Ledger:
    """The ledger, made once: it runs every witness."""
    return build_ledger()


def _claims() -> str:
    """Every claim, and how it is shown."""
    ledger = _ledger()
    rows = [
        [
            f"`{record.id}`",
            record.sentence,
            proved_by(record, ledger),
            checked_on(record),
            ", ".join(f"`{fault}`" for fault in breaking_faults(record)),
        ]
        for record in ledger.claims
    ]
    return _table(["claim", "says", "proved by", "checked on", "faults that break it"], rows)


def _unproved() -> str:
    """The claims that have no unbounded proof, and why; what the proofs of others leave out."""
    records = _ledger().claims
    unproved = [f"- `{r.id}`: {r.why_no_proof}" for r in records if not r.proofs]
    partly = [f"- `{r.id}`: {r.left_to_search}" for r in records if r.left_to_search]
    between = ["", "What the proofs of others leave to search:", ""]
    return "\n".join([*unproved, *(between if partly else []), *partly])


def _assumptions() -> str:
    """Every assumption, and what breaks without it."""
    rows = [[f"`{a.id}`", a.sentence, a.without] for a in _ledger().assumptions]
    return _table(["assumption", "says", "without it"], rows)


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
    obligations = _ledger().obligations
    ablations = sum(len(obligation.ablations) for obligation in obligations)
    about = Counter(obligation.room for obligation in obligations)
    rooms = ", ".join(f"{about[room]} about {_ROOMS[room]}" for room in ROOMS if about[room])
    return (
        f"{len(obligations)} obligations, {rooms}; and {ablations} ablations of them that must "
        "each be refuted."
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


def _mutants() -> str:
    """How many mutants of a release's scheduling code turn a proof of it red."""
    data: dict[str, Any] = json.loads(MUTANTS.read_text(encoding="utf-8"))
    mutants = data["mutants"]
    by_claim = sum(one["claim"] is not None for one in mutants)
    red = sum(one["claim"] is not None or one["rule"] is not None for one in mutants)
    return (
        f"Of {len(mutants)} mutants of that code in {data['release']}, {red} turn it red, or a "
        f"claim ({by_claim}); the other {len(mutants) - red} are proved equal."
    )


def _outside() -> str:
    """In which conjuncts the recorded runs of each release leave the relation."""
    return _table(
        ["conjunct that differs", "what it means", "releases that show it"], outside_rows()
    )


def _ablation() -> str:
    """The ablation matrix, as it is recorded."""
    data: dict[str, Any] = json.loads(ABLATION.read_text(encoding="utf-8"))
    return "\n".join(["```text", *data["table"], "", LEGEND, "```"])


PARTS: dict[str, Callable[[], str]] = {
    "claims": _claims,
    "unproved": _unproved,
    "assumptions": _assumptions,
    "answers": _answers,
    "counts": _counts,
    "releases": _releases,
    "mutants": _mutants,
    "found": _found,
    "picture": story,
    "ablation": _ablation,
    "outside": _outside,
}


def main() -> int:
    """Rewrite the README and its picture; 0."""
    write_atomically(PICTURE, drawing())
    write_atomically(README, render(README.read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
