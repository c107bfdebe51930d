"""Read pages as a browser would, without one."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

import html5lib

_SVG = re.compile(r"<svg .*?</svg>", re.DOTALL)
_BLOCKS = frozenset(
    {
        *("h1", "h2", "h3", "p", "li", "tr", "caption", "summary", "figcaption", "pre", "dt"),
        *("title", "header", "footer", "section"),
    }
)
_UNREAD = frozenset({"style", "svg", "{http://www.w3.org/2000/svg}svg"})


def parsed(page: str) -> Xml.Element:
    """The page's elements.

    Raises:
        html5lib.html5parser.ParseError: the page is not what HTML asks for.
    """
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    root: Xml.Element = parser.parse(page)
    return root


def drawings(page: str) -> list[Xml.Element]:
    """The page's drawings, read as XML.

    Raises:
        xml.etree.ElementTree.ParseError: one is not well-formed.
    """
    return [Xml.fromstring(svg) for svg in _SVG.findall(page)]


def skeleton(element: Xml.Element) -> list[tuple[str, tuple[str, ...]]]:
    """All elements in order, with the names of their attributes, and no text."""
    return [
        (child.tag, tuple(sorted(child.keys())))
        for child in element.iter()
        if isinstance(child.tag, str)
    ]


def text_of(page: str) -> str:
    """What is read on the page, a line for each block, drawings and style left out."""
    lines: list[str] = []
    _collect(parsed(page), lines)
    texts = (re.sub(r"\s+", " ", line).strip() for line in "".join(lines).split("\n"))
    return "\n".join(line for line in texts if line) + "\n"


def _collect(element: Xml.Element, lines: list[str]) -> None:
    if not isinstance(element.tag, str) or element.tag in _UNREAD:
        lines.append(element.tail or "")
        return
    is_block = element.tag in _BLOCKS
    if is_block:
        lines.append("\n")
    elif element.tag in ("td", "th"):
        lines.append(" | ")
    lines.append(element.text or "")
    for child in element:
        _collect(child, lines)
    if is_block:
        lines.append("\n")
    lines.append(element.tail or "")
