"""The drawing: what the SVG must be, whatever it draws, told by its elements."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from xml.etree import ElementTree as Xml

import pytest

from proofs.report.picture.drawing import swatch_svg, timeline_svg
from proofs.report.picture.drawing_strip import STRIP_WIDTH, strip_svg
from proofs.report.picture.scale import Scale
from proofs.report.story.timeline import StepRow, Timeline
from proofs.report.story.timeline_build import timeline
from proofs.report.text.html import stylesheet
from proofs.search.runs.results import LoopCounterexample
from tests.report.test_report_timeline import long_example
from tests.support.report_runs import SWITCHES, drawn, of_switch
from tests.support.run_image import svg_image

_SVG = "{http://www.w3.org/2000/svg}"


@cache
def drawings() -> tuple[tuple[LoopCounterexample, Timeline, Xml.Element], ...]:
    examples = [*(example for name in SWITCHES for example in of_switch(name)), *drawn(120)]
    pictures = [(example, timeline(example.trace, example.finding)) for example in examples]
    return tuple(
        (example, picture, Xml.fromstring(timeline_svg(picture))) for example, picture in pictures
    )


def of_class(root: Xml.Element, name: str, tag: str = "rect") -> list[Xml.Element]:
    return [
        element for element in root.iter(_SVG + tag) if name in element.get("class", "").split()
    ]


def box(element: Xml.Element) -> tuple[float, float, float, float]:
    """Left, top, right, bottom."""
    x, y, width, height = (float(element.get(n, "0")) for n in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def test_a_drawing_says_what_it_is() -> None:
    """Who does not see it has to be told, and ids that clash would tell another picture."""
    for _, picture, root in drawings():
        assert root.get("role") == "img"
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(set(ids)) == len(ids)
        named = (root.get("aria-labelledby") or "").split()
        assert [root[0].get("id"), root[1].get("id")] == named
        row = picture.rows[picture.contradiction]
        assert isinstance(row, StepRow)
        assert row.title in (root[1].text or "")
        # Two pictures on one page must not share a pattern's id.
        other = Xml.fromstring(timeline_svg(picture, "u"))
        assert not {element.get("id") for element in other.iter() if element.get("id")} & set(ids)


def test_every_pattern_that_is_used_is_there() -> None:
    """A fill that names nothing leaves an item told by its colour alone."""
    for _, picture, root in drawings():
        ids = {element.get("id") for element in root.iter() if element.get("id")}
        for element in root.iter():
            for name in ("fill", "marker-end"):
                value = element.get(name, "")
                if value.startswith("url(#"):
                    assert value[5:-1] in ids
        for entry in picture.entries:
            Xml.fromstring(swatch_svg(entry))


def test_every_item_and_every_row_of_it_is_drawn() -> None:
    """An item that is left out is the one that the reader looks for."""
    for _, picture, root in drawings():
        bars = [bar for track in picture.tracks for bar in track.bars]
        spans = of_class(root, "span")
        assert len(spans) == len(bars)
        filled = of_class(root, "rows")
        for bar, span in zip(bars, spans, strict=True):
            left, top, right, bottom = box(span)
            inside = [
                shape
                for shape in filled
                if top == box(shape)[1] and left - 1 <= box(shape)[0] and box(shape)[2] <= right + 1
            ]
            assert len(inside) == len(bar.rows)
            assert bottom - top > 10


def test_items_of_one_prompt_do_not_overlap() -> None:
    """What lies over another item hides it."""
    for _, _, root in drawings():
        by_top: dict[float, list[tuple[float, float, float, float]]] = {}
        for span in of_class(root, "span"):
            by_top.setdefault(box(span)[1], []).append(box(span))
        for spans in by_top.values():
            for left, right in pairwise(sorted(spans)):
                assert left[2] <= right[0] + 0.2


def test_rows_of_the_drawing_do_not_overlap() -> None:
    """Two brackets over each other belong to no step."""
    for _, picture, root in drawings():
        rules = sorted(
            {float(element.get("y1", "0")) for element in of_class(root, "rule", "line")}
        )
        assert len(rules) == len(picture.rows) + 1
        brackets = [*of_class(root, "target"), *of_class(root, "draft"), *of_class(root, "want")]
        for bracket in brackets:
            _, top, _, bottom = box(bracket)
            assert any(low <= top and bottom <= high for low, high in pairwise(rules))
        runs = [box(element) for element in of_class(root, "target")]
        assert len({(top, bottom) for _, top, _, bottom in runs}) == len(runs)


def test_the_contradiction_is_marked_once_in_its_row() -> None:
    """The mark is what the reader looks for first."""
    for _, picture, root in drawings():
        rules = sorted(
            {float(element.get("y1", "0")) for element in of_class(root, "rule", "line")}
        )
        (marked,) = of_class(root, "marked")
        _, top, _, bottom = box(marked)
        index = picture.contradiction
        assert rules[index] <= top
        assert bottom <= rules[index + 1]
        rings = of_class(root, "ring")
        assert len(rings) <= 1
        for ring in rings:
            assert rules[index] <= box(ring)[1]
            assert box(ring)[3] <= rules[index + 1] + 1
        # It begins at the left, so that no scrolling sideways is needed to see it.
        assert box(marked)[0] < 40


def test_a_stuck_run_is_drawn_as_a_circle() -> None:
    """That it comes round again is the whole point of a stall."""
    circles = 0
    for _, picture, root in drawings():
        lassos = of_class(root, "lasso", "path")
        assert len(lassos) == (picture.lasso is not None)
        if picture.lasso is None:
            continue
        circles += 1
        rules = sorted(
            {float(element.get("y1", "0")) for element in of_class(root, "rule", "line")}
        )
        words = (lassos[0].get("d") or "").replace("C", " ").replace("M", "").split()
        start, end = float(words[1]), float(words[-1])
        assert rules[picture.lasso.last] <= start <= rules[picture.lasso.last + 1]
        assert rules[picture.lasso.first] <= end <= rules[picture.lasso.first + 1]
        assert start > end
        assert "marker-end" in lassos[0].attrib
    assert circles > 5


def test_nothing_is_drawn_outside() -> None:
    """What lies outside of the picture is cut off where the page scrolls."""
    for _, _, root in drawings():
        _, _, width, height = (float(n) for n in (root.get("viewBox") or "").split())
        for element in root.iter(_SVG + "rect"):
            left, top, right, bottom = box(element)
            assert left >= -0.1
            assert top >= -0.1
            assert right <= width + 0.1
            assert bottom <= height + 0.1


def test_the_small_picture_fits_a_telephone() -> None:
    """Whoever reads on a telephone must not scroll sideways to see what is wrong."""
    for example, picture, _ in drawings():
        root = Xml.fromstring(strip_svg(picture))
        assert float(root.get("width", "0")) == STRIP_WIDTH
        assert STRIP_WIDTH <= 340
        for element in root.iter(_SVG + "rect"):
            assert box(element)[2] <= STRIP_WIDTH + 0.1, example.finding
        text = " ".join(t for element in root.iter(_SVG + "text") for t in element.itertext())
        row = picture.rows[picture.contradiction]
        assert isinstance(row, StepRow)
        assert row.mark is not None
        assert row.mark.text.split()[0] in text
        assert row.title in text


def test_a_long_run_says_what_it_leaves_out() -> None:
    """Steps that are silently missing make a false story."""
    example = long_example()
    picture = timeline(example.trace, example.finding)
    text = "".join(Xml.fromstring(timeline_svg(picture)).itertext())
    for row in picture.rows:
        if not isinstance(row, StepRow):
            assert f"{row.num_steps:,} step" in text
    assert "left out here" in text
    assert f"and {picture.num_hidden_requests} requests that have nothing to do with it" in text


def test_positions_keep_their_order_and_their_edges() -> None:
    """A stretch that is shortened may not swallow the token that decides."""
    marks = [0, 3, 500, 501, 900, 999]
    scale = Scale(0, 1000, marks, 400)
    places = [scale.x(position) for position in range(1001)]
    assert all(left < right for left, right in pairwise(places))
    assert scale.x(501) - scale.x(500) >= 10
    assert scale.width < 420
    assert scale.shortened == [(3, 500), (501, 900), (900, 999)]
    plain = Scale(0, 12, [], 400)
    assert plain.x(7) - plain.x(6) == pytest.approx(plain.unit)
    assert [label for _, label in plain.ticks(5)] == [str(position) for position in range(12)]


def test_every_class_has_a_style() -> None:
    """What has no style is drawn in black, in the dark too."""
    styled = set(re.findall(r"\.([a-z][\w-]*)", stylesheet()))
    used: set[str] = set()
    for _, picture, root in drawings():
        for drawing in (root, Xml.fromstring(strip_svg(picture))):
            for element in drawing.iter():
                used |= set(element.get("class", "").split())
    assert len(used) > 30
    # A pattern brings its own fill, and the words of a reason look like all others.
    assert used - styled <= {"pattern", "by-target", "why"}


def test_a_picture_can_stand_alone() -> None:
    """A README shows a picture without the page around it."""
    for _, picture, _ in drawings()[:20]:
        root = Xml.fromstring(svg_image(picture))
        (style,) = root.iter(_SVG + "style")
        assert style.text is not None
        for needed in ("--bg", "prefers-color-scheme:dark", ".timeline .target", "svg.timeline"):
            assert needed in style.text
        assert "main{" not in style.text
