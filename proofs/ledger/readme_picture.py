"""The README's picture of a real report: the boundary miss of 0.23.0, from its recorded run."""

from __future__ import annotations

from functools import cache

from proofs.recorded import PICTURES
from proofs.report.picture.image import svg_image
from proofs.report.story.conditions import conditions_of
from proofs.report.story.headline import headline
from proofs.report.story.telling import story_of
from proofs.report.story.timeline_build import timeline
from spec.record.document import TraceDocument, load

FOLDER = PICTURES
RECORD = FOLDER / "boundary-miss-0.23.0.json"
PICTURE = FOLDER / "boundary-miss-0.23.0.svg"


@cache
def _document() -> TraceDocument:
    document = load(RECORD)
    assert isinstance(document, TraceDocument), f"{RECORD} holds no trace"
    return document


def drawing() -> str:
    """The picture as a file of its own, with the page's colours for light and dark."""
    document = _document()
    return svg_image(timeline(document.trace, document.findings[0]))


def story() -> str:
    """The same in numbered sentences, and the picture above them."""
    document = _document()
    trace, finding = document.trace, document.findings[0]
    told = timeline(trace, finding)
    sentences = story_of(finding, trace.scenario, told, conditions_of(finding, told))
    lines = [
        f"![{headline(finding, told)}]({PICTURE.relative_to(FOLDER.parents[2]).as_posix()})",
        "",
    ]
    for number, sentence in enumerate(sentences, 1):
        because = f", *because {sentence.because}*" if sentence.because else ""
        lines.append(f"{number}. {sentence.text}{because}.")
    return "\n".join(lines)
