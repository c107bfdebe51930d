"""The report on a violation that a run shows: a page, Markdown, the run's files and a ready test.

The page is one file, readable without a network or scripts. The Markdown is a comment on a pull
request: short, and safe to paste.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from impl.target import RUNNERS
from impl.vllm.launch.source import PACKAGE
from proofs.describe.visible import visible
from proofs.describe.words import counted
from proofs.drive.origin import Origin
from proofs.report.near.deciders import Tried
from proofs.report.near.rerun import Rerun
from proofs.report.pages.account import NO_EVIDENCE, Account, Evidence, account_of
from proofs.report.pages.index import Written, row_of
from proofs.report.pages.reproduce import Links, environment_of, reproduce
from proofs.report.picture.drawing import swatch_svg, timeline_svg
from proofs.report.picture.drawing_cache import cache_lines
from proofs.report.picture.drawing_strip import strip_svg
from proofs.report.picture.text_timeline import text_timeline
from proofs.report.ready.reference import reference_test
from proofs.report.ready.run import has_loop_ready_test, loop_ready_test
from proofs.report.story.timeline import Gap, StepRow, Timeline
from proofs.report.text.html import html_templates
from proofs.report.text.markup import COMMENT_LIMIT, code_span, fenced, fitted, prose, table
from proofs.report.text.plain import harmless, name
from proofs.report.text.public import linked_markdown
from proofs.run.targets import faults_of
from proofs.search.runs.results import LoopCounterexample
from spec.errors import InputError
from spec.functions.case_files import write_atomically
from spec.record.document import dumps_scenario, dumps_trace
from spec.record.itf import to_itf

_MOST_ENTRIES = 60
_LONGEST_TITLE = 2000
_MOST_SENTENCES = 12
_MOST_TRIED = 6
_ITEMS = "items at their positions, of so many tokens"
_CUT = "This was cut to the size of a comment; the other files hold all of it."

RerunFor = Callable[[LoopCounterexample], Rerun | None]
"""How the scenario of a violation, and ones near it, are run again; ``None`` where they cannot."""


def run_page(account: Account, links: Links) -> str:
    """The text of ``report.html``.

    Args:
        account: what there is to tell.
        links: names of the files beside it.
    """
    finding, trace, timeline = account.example.finding, account.example.trace, account.timeline
    origin = account.origin
    files = [links.markdown, links.trace, links.itf, links.scenario, links.test]
    values: dict[str, Any] = {
        "claim": account.claim,
        "headline": account.headline,
        "target": trace.target,
        "runners": _runners(account.example.runners, trace.runner),
        "mode": account.mode,
        "links": links,
        "strip": Markup(strip_svg(timeline)),  # noqa: S704 -- drawing escapes
        "svg": Markup(timeline_svg(timeline)),  # noqa: S704 -- drawing escapes
        "num_steps": timeline.num_steps,
        "num_left_out_before": sum(r.num_steps for r in timeline.rows if isinstance(r, Gap)),
        "entries": _entries(timeline),
        "num_hidden_entries": max(len(timeline.entries) - _MOST_ENTRIES, 0),
        "rows": _rows_of(timeline),
        "story": account.story,
        "conditions": account.conditions,
        "since": account.since,
        "deciders": account.deciders,
        "neighbours": account.neighbours,
        "reach": account.reach,
        "run": account.run,
        "run_legend": account.run_legend,
        "shape": finding.shape or "not shrunk",
        "environment": environment_of(origin, links),
        "reproduce": "\n".join(reproduce(origin, finding, trace.runner, links)),
        "files": [file for file in files if file is not None],
        "shown": account.shown,
        "not_shown": account.not_shown,
        "fingerprint": finding.fingerprint,
        "digest": origin.digest,
        "seed": origin.seed,
        "versions": origin.versions,
    }
    return html_templates().get_template("report.html.jinja").render(values)


def _runners(runners: Sequence[str], runner: str) -> str:
    if len(runners) == len(RUNNERS):
        return "model runners V1 and V2"
    return f"model runner {' and '.join(runners) or runner}"


def _entries(timeline: Timeline) -> list[dict[str, Any]]:
    return [
        {
            "swatch": Markup(swatch_svg(entry)),  # noqa: S704 -- drawing escapes
            "letter": entry.letter,
            "name": name(entry.identifier),
            "full": harmless(entry.identifier[:_LONGEST_TITLE]),
        }
        for entry in timeline.entries[:_MOST_ENTRIES]
    ]


def _rows_of(timeline: Timeline) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for row in timeline.rows:
        if isinstance(row, Gap):
            rows.append({"num_steps": row.num_steps})
            continue
        rows.append(
            {
                "num_steps": 0,
                "title": row.title[0].upper() + row.title[1:],
                "mark": "" if row.mark is None else row.mark.text,
                "reasons": row.reasons,
                "cache": "; ".join(line for line, _ in cache_lines(timeline, row.cache)),
            }
        )
    return rows


def run_markdown(account: Account, links: Links) -> str:
    """The text of the comment.

    Args:
        account: all that is told of the violation.
        links: names of the files beside it.
    """
    return fitted(markdown_sections(account, links), COMMENT_LIMIT, _CUT)


def markdown_sections(account: Account, links: Links) -> list[str]:
    """The parts of the comment, the most important first."""
    example = account.example
    sections = [
        f"### {code_span(account.claim.id)}: violated by {prose(example.trace.target, 200)}",
        f"**{prose(account.headline)}.**",
        _facts(account),
        fenced(text_timeline(account.timeline)),
        _contradiction(account),
        _reproduce(account, links),
    ]
    if account.story:
        sections.append(_story(account))
    if account.deciders or account.neighbours:
        sections.append(_tried((*account.deciders, *account.neighbours)))
    beside = [code_span(name) for name in links.all if name != links.markdown]
    sections.append(f"Beside this: {', '.join(beside)}.")
    if account.not_shown:
        reasons = [f"- {prose(reason.rstrip('.'))}." for reason in account.not_shown]
        sections.append("\n".join(("Not shown:", "", *reasons)))
    return sections


def _facts(account: Account) -> str:
    example, origin = account.example, account.origin
    finding = example.finding
    target = prose(example.trace.target, 200, in_table=True)
    found_on = [f"{target}, {' and '.join(example.runners)}"]
    found_on.append(prose(account.mode, in_table=True))
    if origin.digest is not None:
        found_on.append(code_span(origin.digest, 80, in_table=True))
    if origin.seed is not None:
        found_on.append(f"seed {origin.seed}")
    rows = [
        ("claim", prose(account.claim.sentence, in_table=True)),
        ("found on", ", ".join(found_on)),
        (
            "smallest run",
            f"{code_span(account.run, 400, in_table=True)}; {_ITEMS}; {account.run_legend}",
        ),
        (
            "settings",
            prose(
                f"reached by default settings: {account.reach.answer}; {account.reach.sentence}",
                in_table=True,
            ),
        ),
        (
            "fault",
            f"{prose(finding.mechanism, 300, in_table=True)}, {code_span(finding.fingerprint)}",
        ),
    ]
    return table(("", ""), rows)


def _contradiction(account: Account) -> str:
    finding = account.example.finding
    what = f"{prose(finding.observed)}. The claim asks for: {prose(finding.expected)}."
    if finding.loop is None:
        return f"**The contradiction**, {_moment(account)}: {what}"
    first, last = finding.loop
    again = f"Pass {first} comes" if first == last else f"Passes {first} to {last} come"
    return f"**The contradiction**, from pass {first} on: {what} {again} again for ever."


def _moment(account: Account) -> str:
    """When the contradiction shows, as the story says it."""
    row = account.timeline.rows[account.timeline.contradiction]
    assert isinstance(row, StepRow)
    return f"before pass {row.pass_index}" if row.kind == "event" else f"in {row.title}"


def _story(account: Account) -> str:
    """The sentences up to the contradiction; of a long story its end."""
    sentences = account.story
    left_out = max(0, len(sentences) - _MOST_SENTENCES)
    lines = ["**What happens**", ""]
    if left_out:
        lines += [f"({counted(left_out, 'sentence')} before left out.)", ""]
    for number, sentence in enumerate(sentences[left_out:], start=left_out + 1):
        because = f", because {prose(sentence.because)}" if sentence.because else ""
        lines.append(f"{number}. {prose(sentence.text.rstrip('.'))}{because}.")
    return "\n".join(lines)


def _tried(tried: Sequence[Tried]) -> str:
    rows = (
        (
            prose(neighbour.what, 300, in_table=True),
            neighbour.outcome,
            linked_markdown(prose(neighbour.note, 300, in_table=True)) if neighbour.note else "",
        )
        for neighbour in tried[:_MOST_TRIED]
    )
    return table(("what if", "then it", ""), rows)


def _reproduce(account: Account, links: Links) -> str:
    example = account.example
    lines = reproduce(account.origin, example.finding, example.trace.runner, links)
    # No shell takes what a path with a line end, or one that turns the text, would become here.
    where = environment_of(account.origin, links)
    where = where and f", {where}"
    return f"Reproduce{where}:\n\n" + fenced([visible(line, None) for line in lines], "shell")


def folder_name(example: LoopCounterexample) -> str:
    """Name of the folder of one violation: two faults that break one claim have two."""
    return f"{example.finding.claim}-{example.finding.fingerprint}"


def write_run_reports(
    examples: Sequence[LoopCounterexample],
    origin: Origin,
    root: Path,
    rerun_for: RerunFor,
    evidence: Mapping[str, Evidence] | None = None,
) -> list[Written]:
    """Write the report on each violation, without a page over all of them.

    Args:
        examples: the violations, each with its smallest run.
        origin: where the runs come from.
        root: where the folders go.
        rerun_for: how to run what lies near a violation.
        evidence: by fingerprint, what else is known of how a violation was found.

    Raises:
        InputError: a file cannot be written.
    """
    written = []
    for example in examples:
        found_before = (evidence or {}).get(example.finding.fingerprint, NO_EVIDENCE)
        account = account_of(example, origin, rerun_for(example), evidence=found_before)
        folder = folder_name(example)
        links = _write_report(account, root / folder)
        beside = tuple(file for file in links.all if file != links.page)
        paths = tuple(root / folder / file for file in links.all)
        written.append(Written(row_of(account, folder, beside), paths))
    return written


def _write_report(account: Account, folder: Path) -> Links:
    example = account.example
    test = _ready_test(example)
    links = Links() if test is not None else Links(test=None)
    texts = {
        links.page: run_page(account, links),
        links.markdown: run_markdown(account, links),
        links.scenario: dumps_scenario(example.trace.scenario, [example.finding]),
        links.trace: dumps_trace(example.trace, [example.finding]),
        links.itf: json.dumps(to_itf(example.trace)) + "\n",
    }
    if links.test is not None and test is not None:
        texts[links.test] = test
    for file, text in texts.items():
        write_atomically(folder / file, text)
    return links


def _ready_test(example: LoopCounterexample) -> str | None:
    """The text of the stand-alone test; ``None`` where there can be none."""
    finding, trace = example.finding, example.trace
    test_name = folder_name(example).replace("-", "_")
    if faults_of(trace.target) is not None:
        return reference_test(finding, trace, test_name, runners=example.runners)
    if not (trace.target.startswith(PACKAGE) and has_loop_ready_test(finding.claim)):
        return None
    try:
        return loop_ready_test(
            finding, trace.scenario, trace.target, trace.runner, test_name, runners=example.runners
        )
    except InputError:
        # The scenario breaks an assumption that the file cannot express.
        return None
