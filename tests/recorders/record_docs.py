"""Write the generated parts of the README and of ``docs/``, and the README's picture.

    python -m tests.recorders.record_docs [--check]

Each part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``; the words around it are
written by hand. ``tests/ledger/test_docs.py`` holds every page equal to what this module makes of
the code and of the records. ``--check`` names the pages that differ instead of writing them, and
exits with 1 where there are any.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from proofs import recorded
from proofs.ablate.matrix_text import LEGEND
from proofs.describe.words import describe_part
from proofs.ledger.build import build_ledger
from proofs.ledger.claim_text import breaking_faults, checked_on, proved_by
from proofs.ledger.outside import rows as outside_rows
from proofs.ledger.records import ROOMS, Ledger, Room
from proofs.report.story.conditions import conditions_of
from proofs.report.story.headline import headline
from proofs.report.story.telling import story_of
from proofs.report.story.timeline_build import timeline
from proofs.source.ask.piece import RULE
from proofs.theorems.answers import QUESTIONS
from spec.functions.case_files import write_atomically
from spec.record.document import TraceDocument, load
from tests.recorders.record_picture import RECORD
from tests.support.run_image import svg_image

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PICTURE = DOCS / "boundary-miss-0.23.0.svg"
RELEASES = recorded.FOLDER / "releases.json"
ABLATION = recorded.FOLDER / "ablation.json"
FOUND = recorded.FOUND / "index.json"
MUTANTS = recorded.FOLDER / "source_mutants.json"
PROTOCOL_FAULTS = recorded.FOLDER / "protocol_faults.json"

_ROOMS: dict[Room, str] = {
    "rules": "the rules",
    "relation": "the transitions",
    "progress": "progress",
}
"""What the proofs of each room are about."""

_PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def render(text: str) -> str:
    """A page's text with every generated part made anew.

    Raises:
        KeyError: a part that this module does not know.
    """

    def replace(match: re.Match[str]) -> str:
        start, name, end = match.groups()
        return f"{start}{_part(name)}\n{end}"

    return _PART.sub(replace, text)


def pages() -> list[Path]:
    """The pages that may hold generated parts."""
    return [README, *sorted(DOCS.glob("*.md"))]


@cache
def _part(name: str) -> str:
    return PARTS[name]()


@cache
def _document() -> TraceDocument:
    """The recorded run that the README tells."""
    document = load(RECORD)
    assert isinstance(document, TraceDocument), f"{RECORD} holds no trace"
    return document


def drawing() -> str:
    """The picture as a file of its own, with the page's colours for light and dark."""
    document = _document()
    return svg_image(timeline(document.trace, document.findings[0]))


def _story() -> str:
    """The picture, and below it the same in numbered sentences."""
    document = _document()
    trace, finding = document.trace, document.findings[0]
    rows = timeline(trace, finding)
    sentences = story_of(finding, trace.scenario, rows, conditions_of(finding, rows))
    lines = [f"![{headline(finding, rows)}]({PICTURE.relative_to(ROOT).as_posix()})", ""]
    for number, sentence in enumerate(sentences, 1):
        because = f", *because {sentence.because}*" if sentence.because else ""
        lines.append(f"{number}. {sentence.text}{because}.")
    return "\n".join(lines)


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
    """The review questions of 46315, with the theorems that answer them."""
    lines: list[str] = []
    for number, question in enumerate(QUESTIONS, start=1):
        lines.append(f"{number}. **{question.question}**")
        for statement in question.statements:
            theorems = ", ".join(f"`{theorem}`" for theorem in statement.theorems)
            lines.append(f"   - {statement.sentence} ({theorems})")
    return "\n".join(lines)


def _found() -> str:
    """What was found in the newest release."""
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
    lines: list[str] = []
    for release, found in data.items():
        goes = found["free_rule"].partition("; ")[0]
        tolerated = found["tolerated"]
        skipped = (
            f"`{tolerated['V1']}`"
            if tolerated["V1"] == tolerated["V2"]
            else ", ".join(f"`{text}` ({runner})" for runner, text in tolerated.items())
        )
        refuted = [pair for pair in found["source_refuted"] if not pair[0].startswith(RULE)]
        lines += [
            f"## {release}",
            "",
            f"- A reference goes when, and only when: `{goes}`.",
            f"- A missing feature that is read is skipped when, and only when: {skipped}.",
            "",
            _table(
                ["refuted on", "claim", "parts"],
                [
                    *(["the source", *pair] for pair in _parts_by_claim(refuted)),
                    *(["the functions", *p] for p in _parts_by_claim(found["function_violated"])),
                ],
            ),
            "",
        ]
    return "\n".join(lines[:-1])


def _parts_by_claim(pairs: list[list[str]]) -> list[list[str]]:
    """Each claim with all of its parts, from pairs of a claim and a part."""
    by_claim: dict[str, list[str]] = {}
    for claim, part in pairs:
        by_claim.setdefault(claim, []).append(describe_part(part))
    return [[f"`{claim}`", ", ".join(parts)] for claim, parts in by_claim.items()]


def _mutants() -> str:
    """How many mutants of a release's scheduling code turn a proof of it red."""
    data: dict[str, Any] = json.loads(MUTANTS.read_text(encoding="utf-8"))
    mutants = data["mutants"]
    by_claim = sum(mutant["claim"] is not None for mutant in mutants)
    red = sum(mutant["claim"] is not None or mutant["rule"] is not None for mutant in mutants)
    return (
        f"Of {len(mutants)} mutants of that code in {data['release']}, {red} turn it red, or a "
        f"claim ({by_claim}); the other {len(mutants) - red} are proved equal."
    )


def _protocol_faults() -> str:
    """What became of realistic faults in a release's protocol code, by kind."""
    data: dict[str, Any] = json.loads(PROTOCOL_FAULTS.read_text(encoding="utf-8"))
    faults: list[dict[str, Any]] = data["faults"]
    outcomes = ("found", "error", "hangs", "hidden", "differs", "same", "not reached")
    rows = []
    for kind in [*dict.fromkeys(fault["kind"] for fault in faults), "all"]:
        of_kind = [fault for fault in faults if kind in (fault["kind"], "all")]
        counts = Counter(fault["loop"]["outcome"] for fault in of_kind)
        draws = [f["loop"]["draw"] + 1 for f in of_kind if f["loop"]["outcome"] == "found"]
        numbers = [len(of_kind), *(counts[outcome] for outcome in outcomes)]
        by_functions = [f for f in of_kind if f["functions"] and f["functions"]["claim"]]
        numbers.append(len(by_functions))
        middle = f"{median(draws):g}" if draws else ""
        rows.append([kind, *map(str, numbers), middle])
    head = ["kind", "made", *outcomes, "found at function level", "median first draw"]
    about = (
        f"vLLM {data['release']}, seed {data['seed']}: at most {data['draws_run_at_most']} of the "
        f"first {data['draws']} draws a fault, and {data['cases']} cases a part of the functions; "
        f"{sum(data['possible'].values())} such faults can be made of it."
    )
    return f"{about}\n\n{_table(head, rows)}"


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
    "protocol-faults": _protocol_faults,
    "found": _found,
    "picture": _story,
    "ablation": _ablation,
    "outside": _outside,
}


def main() -> int:
    """Write every page and the picture, or name those that differ; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    texts = {page: render(page.read_text(encoding="utf-8")) for page in pages()}
    texts[PICTURE] = drawing()
    differing = [page for page, text in texts.items() if page.read_text(encoding="utf-8") != text]
    for page in differing:
        if check:
            print(f"{page}: out of date; run python -m tests.recorders.record_docs")
        else:
            write_atomically(page, texts[page])
    return int(check and bool(differing))


if __name__ == "__main__":
    sys.exit(main())
