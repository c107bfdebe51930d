"""The picture of a run as a file of its own, as a README shows it."""

from __future__ import annotations

import re

from proofs.report.picture.drawing import timeline_svg
from proofs.report.story.timeline import Timeline
from proofs.report.text.html import stylesheet

_SHARED = (":root{", "@media(prefers-color-scheme", ".timeline", "svg.timeline")
"""How the lines of the style sheet begin that a picture needs."""


def svg_image(timeline: Timeline) -> str:
    """The picture with its style inside, in light or dark as the reader's system is."""
    rules = [line for line in stylesheet().splitlines() if line.startswith(_SHARED)]
    style = "<style>" + "".join(rules) + "</style>"
    ground = '<rect width="100%" height="100%" fill="var(--card)" rx="8"/>'
    return re.sub(r"(</desc>)", rf"\1{style}{ground}", timeline_svg(timeline), count=1) + "\n"
