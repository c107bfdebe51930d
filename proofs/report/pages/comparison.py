"""Two runs side by side: a page, Markdown for a pull request, and columns for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from markupsafe import Markup

from proofs.describe.scenarios import describe_scenario
from proofs.describe.visible import visible
from proofs.describe.words import counted
from proofs.report.near.comparison import Compared, Pair, Side, shown_pairs
from proofs.report.picture.drawing import timeline_svg
from proofs.report.story.step_words import moment, words_of
from proofs.report.story.timeline_build import timeline
from proofs.report.text.html import html_templates
from proofs.report.text.markup import COMMENT_LIMIT, code_span, fitted, prose, table
from proofs.report.text.plain import shortened
from spec.record.run_findings import LoopFinding
from spec.record.steps import Step

_LONGEST_IN_HEADING = 40
"""Characters of a target's name in the heading, which a telephone shows too."""


def comparison_page(compared: Compared) -> str:
    """The text of ``diff.html``."""
    before, rows, after = side_by_side(compared)
    head, *values = where_they_part(compared)
    sides = (compared.first, compared.second)
    given: dict[str, Any] = {
        "names": [side.name for side in sides],
        "sentence": compared.sentence_within(_LONGEST_IN_HEADING),
        "run": describe_scenario(compared.second.trace.scenario),
        "head": head,
        "values": values,
        "claims": [(name, finding) for name, found in relations(compared) for finding in found],
        "before": before,
        "rows": rows,
        "after": after,
        "pictures": [_picture(side, prefix) for side, prefix in zip(sides, "ab", strict=True)],
    }
    return html_templates().get_template("comparison.html.jinja").render(given)


def _picture(side: Side, prefix: str) -> Markup:
    """The run up to its contradiction, or all of it; nothing of a run without a step."""
    if not side.trace.steps:
        return Markup()
    finding = side.findings[0] if side.findings else None
    drawn = timeline_svg(timeline(side.trace, finding), prefix)
    return Markup(drawn)  # noqa: S704 -- the drawing escapes


_LONGEST_VALUE = 300
_LONGEST_NAME = 120
_STEP = 14
_HALF = 52
_MARK = "<<<"


@dataclass(frozen=True)
class SideBySide:
    """A step of each run in words, and whether they part here."""

    step: str
    first: str
    second: str
    pair: Pair

    @property
    def parts(self) -> bool:
        """Whether the runs part here."""
        return self.pair.relation == "first difference"


def side_by_side(compared: Compared) -> tuple[str, list[SideBySide], str]:
    """What is left out before, the steps around the first difference, and what is left out after.

    The two texts are empty where nothing is left out.
    """
    before, pairs, after = shown_pairs(compared)
    words = words_of(compared.first.trace), words_of(compared.second.trace)
    steps = compared.first.trace.steps, compared.second.trace.steps
    rows = []
    for pair in pairs:
        index = pair.first if pair.first is not None else pair.second
        assert index is not None
        step = steps[0][index] if pair.first is not None else steps[1][index]
        first = "" if pair.first is None else words[0][pair.first]
        second = "" if pair.second is None else words[1][pair.second]
        rows.append(SideBySide(moment(step), first, second, pair))
    return _left_out(before, "before"), rows, _left_out(after, "after these")


def _left_out(number: int, where: str) -> str:
    if not number:
        return ""
    return f"{counted(number, 'step')} {where} {'is' if number == 1 else 'are'} left out"


def where_they_part(compared: Compared) -> list[str]:
    """The first difference in words: the step, the field, and what each run has there."""
    found = compared.difference
    if found is None:
        return ["the two runs are the same, step by step"]
    first, second = compared.first, compared.second
    if not found.place:
        return [f"they differ in length: {first.name} {found.first}, {second.name} {found.second}"]
    step = second.trace.steps[found.step]
    return [
        f"they part in step {found.step} ({moment(step)}), in {_place(step, found.place)}",
        f"{shortened(first.name, _LONGEST_NAME)}: {visible(found.first, _LONGEST_VALUE)}",
        f"{shortened(second.name, _LONGEST_NAME)}: {visible(found.second, _LONGEST_VALUE)}",
    ]


def _place(step: Step, path: str) -> str:
    """The field in which they part; of a call also which one it is."""
    head, _, rest = path.partition(".")
    number, _, field = rest.partition(".")
    if head != "calls" or not number.isdecimal():
        return f"the field {path}"
    call = step.calls[int(number)]
    about = f" of request {call.request}" if call.request >= 0 else ""
    return f"the field {field} of call {number}, {call.method}{about}"


def comparison_markdown(compared: Compared) -> str:
    """The comparison for a pull request."""
    first, second = compared.first, compared.second
    before, rows, after = side_by_side(compared)
    head, *values = where_they_part(compared)
    sections = [
        f"### {prose(first.name, 200)} and {prose(second.name, 200)}, one scenario",
        f"**{prose(compared.sentence)}.**",
        f"The run: {code_span(describe_scenario(second.trace.scenario), 400)}",
        "\n".join([f"{prose(head)}.", *(f"- {prose(value)}" for value in values)]).replace(
            ".\n-", ".\n\n-", 1
        ),
        _claims_table(compared),
        *([f"({before}.)"] if before else []),
        _steps_table(compared, rows),
        *([f"({after}.)"] if after else []),
    ]
    note = "This was cut to the size of a comment; the page beside it holds more."
    return fitted([section for section in sections if section], COMMENT_LIMIT, note)


def _claims_table(compared: Compared) -> str:
    rows = [
        (
            code_span(finding.claim, in_table=True),
            prose(finding.mechanism, 300, in_table=True),
            relation,
            prose(finding.observed, 300, in_table=True),
        )
        for relation, findings in relations(compared)
        for finding in findings
    ]
    return table(("claim", "fault", "", "observed"), rows) if rows else ""


def relations(compared: Compared) -> tuple[tuple[str, tuple[LoopFinding, ...]], ...]:
    """What became of the claims that either run breaks."""
    return ("fixed", compared.fixed), ("new", compared.new), ("in both", compared.still)


def _steps_table(compared: Compared, rows: Sequence[SideBySide]) -> str:
    names = (compared.first.name, compared.second.name)
    return table(
        ("step", *(prose(name, 120, in_table=True) for name in names)),
        (
            (
                f"**{row.step}: here they part**" if row.parts else row.step,
                prose(row.first, 400, in_table=True),
                prose(row.second, 400, in_table=True),
            )
            for row in rows
        ),
    )


def comparison_lines(compared: Compared) -> Iterator[str]:
    """The comparison in fixed columns, for a terminal."""
    yield f"{visible(describe_scenario(compared.second.trace.scenario), 400)}"
    yield f"{compared.sentence}"
    for relation, findings in relations(compared):
        for finding in findings:
            line = f"{finding.mechanism}; observed: {finding.observed}"
            yield f"  {relation}: {finding.claim} [{finding.fingerprint}] {visible(line, 400)}"
    before, rows, after = side_by_side(compared)
    names = (visible(side.name, _HALF) for side in (compared.first, compared.second))
    yield ""
    yield _columns("step", *names)
    if before:
        yield f"... {before}"
    for row in rows:
        mark = f" {_MARK}" if row.parts else ""
        cells = [wrap(visible(text, None), _HALF) or [""] for text in (row.first, row.second)]
        for number, (left, right) in enumerate(zip_longest(*cells, fillvalue="")):
            step = row.step if number == 0 else ""
            yield _columns(step, left, right) + (mark if number == 0 else "")
    if after:
        yield f"... {after}"
    yield ""
    yield from where_they_part(compared)


def _columns(step: str, first: str, second: str) -> str:
    return f"{step:{_STEP}}  {first:{_HALF}}  {second:{_HALF}}".rstrip()
