"""The pages in a real browser: what only shows once a page is laid out, coloured and driven."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import (
    A4,
    SCREENS,
    Check,
    Problems,
    Visitor,
    accessible,
    contrast_of_drawings,
    contrast_of_text,
    cut_on_paper,
    launched,
    look,
    mark_seen,
    marks_begin,
    overflow,
    reached_by_keyboard,
    readable,
    texts_of_drawings,
    words,
)
from tests.support.browser_pages import NAMES_OF_PAGES, Written, written_pages

Failed, Skipped = pytest.fail.Exception, pytest.skip.Exception


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    made = written_pages(tmp_path_factory.mktemp("pages"))
    assert set(made) == set(NAMES_OF_PAGES)
    return made


@pytest.fixture(scope="module", params=NAMES_OF_PAGES)
def written(request: pytest.FixtureRequest, pages: dict[str, Written]) -> Written:
    name: str = request.param
    return pages[name]


@pytest.fixture(scope="module")
def visitor(browser: Browser) -> Visitor:
    return Visitor(browser)


@pytest.fixture(scope="module")
def without_scripts(browser: Browser) -> Visitor:
    return Visitor(browser, scripts=False)


def test_a_page_needs_no_network_and_no_scripts(
    visitor: Visitor, without_scripts: Visitor, written: Written
) -> None:
    """A report is read from an attachment, where neither may be at hand."""
    page, other = visitor.open(written.path), without_scripts.open(written.path)
    assert visitor.trouble == without_scripts.trouble == []
    assert readable(page) == readable(other) == []
    assert words(page) == words(other)


@pytest.fixture(scope="module")
def page(visitor: Visitor, written: Written) -> Page:
    """One page for all that follows."""
    return visitor.open(written.path)


@pytest.mark.parametrize("size", SCREENS, ids=str)
def test_a_page_fits_its_screen(written: Written, page: Page, size: tuple[int, int]) -> None:
    """Whoever has to scroll sideways loses the line, and may never see the contradiction."""
    look(page, size)
    assert overflow(page) == []
    assert texts_of_drawings(page) == []
    assert mark_seen(page, written.mark, first_screen=written.on_first_screen) == []
    if written.picture:
        assert marks_begin(page, written.picture) == []


def test_a_page_is_accessible_and_keeps_its_contrast(page: Page) -> None:
    """Who sees little, or reads at night, would not get the verdict."""
    look(page, SCREENS[1])
    assert accessible(page) == []
    assert contrast_of_drawings(page) == []
    look(page, SCREENS[0], "dark")
    assert contrast_of_text(page) == []
    assert contrast_of_drawings(page) == []


def test_a_page_is_whole_on_paper(page: Page) -> None:
    """Paper can neither be scrolled nor opened, and is white where the screen is dark."""
    look(page, A4)
    seen = words(page)
    look(page, A4, "dark", media="print")
    assert readable(page) == []
    assert cut_on_paper(page) == []
    assert set(seen) <= set(words(page))
    assert contrast_of_text(page) == []
    assert contrast_of_drawings(page) == []


def test_a_page_is_driven_by_keyboard(page: Page) -> None:
    """Without a mouse the right half of a wide run would be out of reach."""
    look(page, SCREENS[0])
    assert reached_by_keyboard(page) == []


# Each check sees what it is there for.


def page_with(body: str, style: str = "") -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title>'
        '<link rel="icon" href="data:,"><style>body{margin:0;background:#fff;color:#111}'
        f"{style}</style><body>{body}</body></html>"
    )


SKIP = (
    '<a href="#content" style="display:block;color:inherit">Skip</a><main id="content"><h1>It</h1>'
)
WIDE_ROW = '<div style="width:3000px;height:9px">wide</div>'


def svg(inner: str, style: str = "") -> str:
    return f'<svg role="img" aria-label="It" width="200" height="60" style="{style}">{inner}</svg>'


def scroller(attributes: str) -> str:
    return f'<div style="overflow-x:auto" {attributes}>{WIDE_ROW}</div>'


FOCUS = 'tabindex="0" role="region" aria-label="It"'
DARK = "@media(prefers-color-scheme:dark){body{background:#111;color:#eee}}"
GOOD = page_with(
    SKIP
    + svg('<rect width="90" height="60" fill="#222"/><text y="40" fill="#fff">white</text>')
    + '<b class="mark">here</b>'
    + scroller(FOCUS)
    + "</main>",
    DARK + "@media print{div{display:none}}",
)


def paper(page: Page) -> Problems:
    look(page, A4, media="print")
    return cut_on_paper(page)


def in_the_dark(check: Check) -> Check:
    def checked(page: Page) -> Problems:
        look(page, SCREENS[1], "dark")
        return check(page)

    return checked


CHECKS: dict[str, Check] = {
    "readable": readable,
    "overflow": overflow,
    "texts": texts_of_drawings,
    "contrast": contrast_of_drawings,
    "contrast in the dark": in_the_dark(contrast_of_drawings),
    "accessible": accessible,
    "text in the dark": in_the_dark(contrast_of_text),
    "seen": lambda page: mark_seen(page, ".mark", first_screen=True),
    "begins": lambda page: marks_begin(page, ".mark"),
    "keyboard": reached_by_keyboard,
    "paper": paper,
}

FAR = "position:absolute;left:700px;width:90px"
BROKEN = (
    ("readable", "<main><h1 hidden>It</h1></main>", "", "the verdict is not seen"),
    ("readable", svg("", "display:none"), "", "a drawing is not seen"),
    ("overflow", f'<div style="position:fixed;top:0">{WIDE_ROW}</div>', "", "lies from 0 to 3000"),
    ("overflow", WIDE_ROW, "", "the page is 3000 of 390 px wide"),
    ("overflow", scroller(""), "div{tab-size:1}", "has no focus"),
    ("overflow", f'<div style="overflow:hidden">{WIDE_ROW}</div>', "", "cuts what it holds"),
    ("overflow", '<div style="position:relative;left:-9px">left</div>', "", "lies from -9"),
    ("texts", svg('<text x="190" y="20">runs out</text>'), "", "leaves its picture"),
    ("texts", svg('<text y="20">one</text><text x="5" y="22">two</text>'), "", "lies over it"),
    ("contrast", svg('<text y="20" fill="#999">pale</text>'), "", "has contrast 2.8"),
    (
        "contrast",
        svg('<rect width="90" height="60" fill="#333"/><text y="40" fill="#111">dark</text>'),
        "",
        "has contrast 1.4",
    ),
    (
        "contrast",
        svg(
            '<pattern id="p" width="6" height="6"/><rect width="90" height="60" fill="url(#p)"/>'
            '<text y="40">hatched</text>'
        ),
        "",
        "lies on a pattern",
    ),
    ("contrast in the dark", svg('<text y="20" fill="#111">it</text>'), DARK, "has contrast 1.0"),
    ("accessible", '<p style="color:#bbb">pale</p>', "", "color-contrast"),
    ("accessible", '<main><h1>It</h1><img src="data:,"></main>', "", "image-alt"),
    ("text in the dark", '<p style="color:#333">dark</p>', DARK, "color-contrast"),
    ("seen", "<main><h1>It</h1></main>", "", "there is no .mark"),
    ("seen", f'<b class="mark" style="{FAR}">far</b>', "", "lies from 700 to 790 of 390 px"),
    ("seen", '<b class="mark" style="position:absolute;top:900px">low</b>', "", "of 844 px"),
    ("begins", f'<b class="mark" style="{FAR}">far</b>', "", "lies from 700 to 790 of 390 px"),
    ("begins", "nothing", "", "there is no .mark"),
    ("keyboard", "<main><h1>It</h1></main>", "", "Tab does not come first"),
    ("keyboard", SKIP + scroller('tabindex="-1"'), "", "Tab comes to 0 of 1 parts"),
    ("paper", scroller(FOCUS), "", "cuts what it holds"),
    ("paper", '<div style="width:800px">wide</div>', "", "lies from 0 to 800 of 718 px"),
)


def test_every_check_sees_what_it_is_there_for(visitor: Visitor, tmp_path: Path) -> None:
    """A check that never fails lets everything pass."""
    path = tmp_path / "page.html"
    path.write_text(GOOD, encoding="utf-8")
    page = visitor.open(path)
    for name, check in CHECKS.items():
        look(page, SCREENS[0])
        assert check(page) == [], name
    for name, body, style, told in BROKEN:
        path.write_text(page_with(body, style), encoding="utf-8")
        problems = CHECKS[name](visitor.open(path))
        assert any(told in problem for problem in problems), (name, body, problems)
        assert visitor.trouble == []
    assert {name for name, *_ in BROKEN} == set(CHECKS)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('<script>console.error("no")</script>', "console: error: no"),
        ('<script>throw new Error("no")</script>', "error: no"),
        ('<script>alert("no")</script>', "dialog: no"),
        ('<img src="https://example.invalid/it.png">', "asked for: https://example.invalid/it.png"),
        ('<link rel="stylesheet" href="other.css">', "other.css"),
    ],
)
def test_trouble_of_a_page_is_kept(visitor: Visitor, tmp_path: Path, body: str, told: str) -> None:
    """A page that asks for what is not there would look the same here."""
    path = tmp_path / "page.html"
    path.write_text(page_with(body), encoding="utf-8")
    visitor.open(path)
    assert any(told in trouble for trouble in visitor.trouble), visitor.trouble


def test_what_only_scripts_show_is_missed(
    visitor: Visitor, without_scripts: Visitor, tmp_path: Path
) -> None:
    """Without this the visit without scripts might run them."""
    path = tmp_path / "page.html"
    script = '<script>document.querySelector("h1").hidden = false</script>'
    path.write_text(page_with(f"<main><h1 hidden>It</h1></main>{script}"), encoding="utf-8")
    assert readable(visitor.open(path)) == []
    assert readable(without_scripts.open(path)) == ["the verdict is not seen"]


@pytest.mark.parametrize(
    ("rule", "instead", "check"),
    [
        (".scroll{overflow-x:auto;", ".scroll{", overflow),
        ("--mut:#5a5f67;", "--mut:#9a9fa7;", contrast_of_drawings),
        (".strip svg{max-width:100%;", ".strip svg{width:700px;", overflow),
    ],
)
def test_a_style_that_breaks_a_real_page_is_seen(
    visitor: Visitor,
    pages: dict[str, Written],
    tmp_path: Path,
    rule: str,
    instead: str,
    check: Check,
) -> None:
    """The checks might look past what our own pages are made of."""
    text = pages["miss"].path.read_text(encoding="utf-8")
    assert rule in text
    path = tmp_path / "page.html"
    path.write_text(text.replace(rule, instead), encoding="utf-8")
    assert check(visitor.open(path))


@pytest.mark.parametrize(("under_ci", "outcome"), [("true", Failed), ("", Skipped)])
def test_a_missing_browser_is_told(
    monkeypatch: pytest.MonkeyPatch, under_ci: str, outcome: type[BaseException]
) -> None:
    """The pages would go out unseen, and the job would be green."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CI", under_ci)
    with pytest.raises(outcome, match="NOT OPENED"), launched():
        pass
