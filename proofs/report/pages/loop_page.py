"""The page about one violation in the loop: one file, readable without a network or scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from impl.target import RUNNERS
from proofs.report.pages.account import Account
from proofs.report.pages.reproduce import Links, environment_of, reproduce
from proofs.report.picture.drawing import swatch_svg, timeline_svg
from proofs.report.picture.drawing_cache import cache_lines
from proofs.report.picture.drawing_strip import strip_svg
from proofs.report.story.timeline import Gap, Timeline
from proofs.report.text.html import html_environment
from proofs.report.text.plain import harmless, name

_MOST_ENTRIES = 60
_LONGEST_TITLE = 2000


def loop_page(account: Account, links: Links) -> str:
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
        "rows": _rows(timeline),
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
    return html_environment().get_template("report.html.jinja").render(values)


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


def _rows(timeline: Timeline) -> list[dict[str, Any]]:
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
