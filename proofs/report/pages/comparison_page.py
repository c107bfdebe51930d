"""Two runs side by side, as a page of one file."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from proofs.describe.scenarios import describe_scenario
from proofs.report.near.comparison import Compared, Side
from proofs.report.pages.comparison_text import relations, side_by_side, where_they_part
from proofs.report.picture.drawing import timeline_svg
from proofs.report.story.timeline_build import timeline
from proofs.report.text.html import html_environment

_LONGEST_NAME = 40
"""Characters of a target's name in the heading, which a telephone shows too."""


def comparison_page(compared: Compared) -> str:
    """The text of ``diff.html``."""
    before, rows, after = side_by_side(compared)
    head, *values = where_they_part(compared)
    sides = (compared.first, compared.second)
    given: dict[str, Any] = {
        "names": [side.name for side in sides],
        "sentence": compared.told(_LONGEST_NAME),
        "run": describe_scenario(compared.second.trace.scenario),
        "head": head,
        "values": values,
        "claims": [(name, finding) for name, found in relations(compared) for finding in found],
        "before": before,
        "rows": rows,
        "after": after,
        "pictures": [_picture(side, prefix) for side, prefix in zip(sides, "ab", strict=True)],
    }
    return html_environment().get_template("comparison.html.jinja").render(given)


def _picture(side: Side, prefix: str) -> Markup:
    """The run up to its contradiction, or all of it; nothing of a run without a step."""
    if not side.trace.steps:
        return Markup()
    finding = side.findings[0] if side.findings else None
    drawn = timeline_svg(timeline(side.trace, finding), prefix)
    return Markup(drawn)  # noqa: S704 -- the drawing escapes
