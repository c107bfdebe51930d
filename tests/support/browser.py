"""Look at a page in a real browser: each check is a function that tells what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    Dialog,
    Page,
    Route,
    sync_playwright,
)

from tests.support.browser_scripts import COMMON, CONTRAST, OVERFLOW, TEXTS
from tests.support.chromium import NO_BROWSER, chromium

SCREENS = ((390, 844), (1024, 768), (1920, 1080))
"""A telephone, a small and a wide screen: width and height (px)."""

A4 = (718, 1047)
"""What of a sheet lies within the usual margins (px)."""

LEAST_CONTRAST = 4.5
"""Of text that is not large, after the Web Content Accessibility Guidelines 2.2, 1.4.3."""

Problems: TypeAlias = list[str]
Check: TypeAlias = Callable[[Page], Problems]

_ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser without a window. Without Chromium the test is skipped, and fails under CI."""
    found = chromium()
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(NO_BROWSER)
        pytest.skip(NO_BROWSER)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_ARGUMENTS)
        yield browser
        browser.close()


class Visitor:
    """A page of the browser: nothing but the opened file is let in, and all trouble is kept.

    One serves for many files, because a new one starts a process.

    Args:
        browser: where to open it.
        scripts: whether scripts may run.
    """

    def __init__(self, browser: Browser, *, scripts: bool = True) -> None:
        self.trouble: Problems = []
        self._own = ""
        context = browser.new_context(java_script_enabled=scripts, reduced_motion="reduce")
        context.route("**/*", self._let_in)
        self.page: Page = context.new_page()
        self.page.on(
            "console", lambda message: self._note(f"console: {message.type}: {message.text}")
        )
        self.page.on("pageerror", lambda error: self._note(f"error: {error}"))
        self.page.on("dialog", self._refuse)

    def open(self, path: Path) -> Page:
        """Open a file on a telephone with light colours, and forget the trouble before it."""
        self.trouble.clear()
        self._own = path.as_uri()
        look(self.page, SCREENS[0])
        self.page.goto(self._own)
        return self.page

    def _note(self, trouble: str) -> None:
        self.trouble.append(trouble)

    def _refuse(self, dialog: Dialog) -> None:
        self._note(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _let_in(self, route: Route) -> None:
        if route.request.url == self._own:
            route.continue_()
        else:
            self._note(f"asked for: {route.request.url}")
            route.abort()


def look(
    page: Page,
    size: tuple[int, int],
    scheme: Literal["light", "dark"] = "light",
    media: Literal["screen", "print"] = "screen",
) -> None:
    """Set the size (px) of the window, the colours and the medium."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(color_scheme=scheme, media=media)
    page.evaluate("scrollTo(0, 0)")


def _asked(page: Page, script: str, argument: object = None) -> Any:
    return page.evaluate(f"(given) => {{ {COMMON} return ({script})(given); }}", argument)


def overflow(page: Page) -> Problems:
    """What lies beside the screen, but for what a reader without a mouse can scroll to."""
    problems: Problems = _asked(page, OVERFLOW, False)
    return problems


def cut_on_paper(page: Page) -> Problems:
    """What lies beside the sheet or is cut off: paper does not scroll."""
    problems: Problems = _asked(page, OVERFLOW, True)
    return problems


def texts_of_drawings(page: Page) -> Problems:
    """Texts of a drawing that leave it or lie over each other with the fonts that are here."""
    problems: Problems = _asked(page, TEXTS)
    return problems


def contrast_of_drawings(page: Page) -> Problems:
    """Texts of a drawing that hardly differ from what lies under them.

    Axe leaves texts of drawings out, because it does not know what lies under them.
    """
    problems: Problems = _asked(page, CONTRAST, LEAST_CONTRAST)
    return problems


def accessible(page: Page) -> Problems:
    """What axe finds, the contrast of text included."""
    return _axe(page, {"resultTypes": ["violations"]})


def contrast_of_text(page: Page) -> Problems:
    """What axe finds of the contrast alone."""
    only = {"type": "rule", "values": ["color-contrast"]}
    return _axe(page, {"resultTypes": ["violations"], "runOnly": only})


def _axe(page: Page, options: dict[str, object]) -> Problems:
    # It does not judge what lies in a drawing, and takes long to find that out.
    page.evaluate(
        """() => {
            window.drawn = [...document.querySelectorAll("svg")].map((svg) => [svg,
                [...svg.children].filter((one) => !["title", "desc"].includes(one.tagName))]);
            window.drawn.forEach(([, parts]) => parts.forEach((part) => part.remove()));
        }"""
    )
    found = Axe().run(page, options=options).response["violations"]
    page.evaluate("window.drawn.forEach(([svg, parts]) => svg.append(...parts))")
    return [
        f"{each['id']} ({each['impact']}): {node['target']} {node.get('failureSummary', '')}"
        for each in found
        for node in each["nodes"]
    ]


def mark_seen(page: Page, mark: str, *, first_screen: bool = False) -> Problems:
    """Whether the first element of a selector is seen whole without scrolling sideways.

    Args:
        mark: the selector.
        first_screen: whether it has to be seen without scrolling down, too.
    """
    found, size = page.query_selector(mark), page.viewport_size
    box = found and found.bounding_box()
    if not box or size is None:
        return [f"there is no {mark}"]
    problems = []
    right, bottom = box["x"] + box["width"], box["y"] + box["height"]
    if box["x"] < 0 or right > size["width"]:
        problems.append(f"{mark} lies from {box['x']} to {right} of {size['width']} px")
    if first_screen and (box["y"] < 0 or bottom > size["height"]):
        problems.append(f"{mark} lies from {box['y']} to {bottom} of {size['height']} px")
    return problems


def marks_begin(page: Page, mark: str, least: int = 120) -> Problems:
    """Whether each element of a selector begins where no scrolling sideways is needed.

    Args:
        mark: the selector.
        least: so much (px) of each has to be seen.
    """
    boxes = page.eval_on_selector_all(
        mark,
        "all => all.map(e => e.getBoundingClientRect()).map(b => [b.left, b.right, innerWidth])",
    )
    problems = [
        f"{mark} lies from {left} to {right} of {width} px"
        for left, right, width in boxes
        if left < 0 or min(right, left + least) > width
    ]
    return problems if boxes else [f"there is no {mark}"]


def reached_by_keyboard(page: Page) -> Problems:
    """Whether Tab comes first to the link that skips to the content, and to all that scrolls."""
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    skip = page.evaluate(
        "(() => { const a = document.activeElement, b = a.getBoundingClientRect();"
        " return a.matches('a[href^=\"#\"]') && b.left >= 0 && b.top >= 0 && b.width > 0"
        " && document.querySelector(a.getAttribute('href')) !== null; })()"
    )
    problems = [] if skip else ["Tab does not come first to a link to the content"]
    wanted: int = _asked(
        page,
        """() => {
            const all = [...document.querySelectorAll("*")].filter(drawn).filter((el) =>
                ["auto", "scroll"].includes(getComputedStyle(el).overflowX)
                && el.scrollWidth > el.clientWidth + 1);
            all.forEach((el) => el.setAttribute("data-wanted", ""));
            return all.length;
        }""",
    )
    reached = 0
    for _ in range(200):
        if reached == wanted:
            break
        page.keyboard.press("Tab")
        at = page.evaluate(
            "(() => { const a = document.activeElement; if (a === document.body) return null;"
            " const w = a.hasAttribute('data-wanted'); a.removeAttribute('data-wanted');"
            " return w; })()"
        )
        if at is None:
            break
        reached += at
        if at and not _scrolls(page):
            problems.append("an arrow does not scroll what has the focus")
    if reached < wanted:
        problems.append(f"Tab comes to {reached} of {wanted} parts that scroll")
    return problems


_HAS_SCROLLED = """() => new Promise(done => {
    let left = 120;
    const look = () => {
        if (document.activeElement.scrollLeft > 0) done(true);
        else if (left-- > 0) requestAnimationFrame(look);
        else done(false);
    };
    look();
})"""
"""Whether what has the focus moves within so many frames: a busy machine draws them late."""


def _scrolls(page: Page) -> bool:
    page.keyboard.press("ArrowRight")
    return bool(page.evaluate(_HAS_SCROLLED))


def words(page: Page) -> list[str]:
    """All that is read in the main part, line by line."""
    return [line.strip() for line in page.inner_text("main").splitlines() if line.strip()]


def readable(page: Page) -> Problems:
    """Whether the verdict and each drawing are there to be seen."""
    problems = []
    if not page.is_visible("main h1"):
        problems.append("the verdict is not seen")
    hidden = page.eval_on_selector_all(
        "svg[role=img]", "all => all.filter(e => !e.checkVisibility()).length"
    )
    return [*problems, *(["a drawing is not seen"] if hidden else [])]
