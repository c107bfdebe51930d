"""Write SVG: elements with escaped text, one string at the end."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from proofs.report.text.plain import ISOLATES, harmless

_CHARACTER_WIDTH = 6.7
"""Width of a character of the pictures' usual size (px), a little more than most fonts have."""

_PAGE_WIDTH = 1180.0
"""A picture of at most this width (px) may be scaled down a little; a wider one is scrolled."""


def text_width(text: str, scale: float = 1.0) -> float:
    """About how wide a text is (px)."""
    return len(text) * _CHARACTER_WIDTH * scale


def fitted(text: str, width: float, scale: float = 1.0) -> str:
    """The text, cut to a width; empty where not even two characters fit."""
    most = int(width / (_CHARACTER_WIDTH * scale))
    if len(text) <= most:
        return text
    return text[: most - 1] + "…" if most > 2 else ""


def wrapped_lines(text: str, width: float, scale: float = 1.0) -> list[str]:
    """The text in lines of at most a width (px); longer words are cut."""
    most = max(int(width / (_CHARACTER_WIDTH * scale)), 4)
    lines: list[str] = []
    line = ""
    for word in text.split():
        if len(word) > most:
            word = word[: most - 1] + "…"
        if line and len(line) + 1 + len(word) > most:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line] if line else lines


class Canvas:
    """Collects elements.

    Args:
        prefix: begins every id, so that several pictures can share a page.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._parts: list[str] = []

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        kind: str,
        *,
        title: str = "",
        fill: str = "",
        radius: float = 3,
    ) -> None:
        """A rectangle of a class; the fill names a pattern of this picture."""
        look = f' fill="url(#{self.prefix}-{fill})"' if fill else ""
        self._element(
            f'<rect class="{kind}" x="{_px(x)}" y="{_px(y)}" width="{_px(max(width, 0))}" '
            f'height="{_px(height)}" rx="{_px(radius)}"{look}',
            title,
            "rect",
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, kind: str) -> None:
        """A straight line of a class."""
        self._parts.append(
            f'<line class="{kind}" x1="{_px(x)}" y1="{_px(y)}" x2="{_px(to_x)}" y2="{_px(to_y)}"/>'
        )

    def path(self, path: str, kind: str, marker: str = "") -> None:
        """A path of a class; the marker at its end is named."""
        end = f' marker-end="url(#{self.prefix}-{marker})"' if marker else ""
        self._parts.append(f'<path class="{kind}" d="{path}"{end}/>')

    def text(
        self, x: float, y: float, text: str, kind: str = "", *, anchor: str = "", title: str = ""
    ) -> None:
        """A line of text; whatever it holds."""
        look = f' class="{kind}"' if kind else ""
        place = f' text-anchor="{anchor}"' if anchor else ""
        full = f"<title>{escaped(title)}</title>" if title else ""
        self._parts.append(
            f'<text{look} x="{_px(x)}" y="{_px(y)}"{place}>{full}{escaped(text)}</text>'
        )

    def raw(self, markup: str) -> None:
        """Markup of our own, without any text from outside."""
        self._parts.append(markup)

    def _element(self, start: str, title: str, name: str) -> None:
        if title:
            self._parts.append(f"{start}><title>{escaped(title)}</title></{name}>")
        else:
            self._parts.append(f"{start}/>")

    def document(self, width: float, height: float, title: str, description: str) -> str:
        """The picture.

        Args:
            width: in px.
            height: in px.
            title: what it is.
            description: what it shows, for whoever does not see it.
        """
        ids = f"{self.prefix}-title {self.prefix}-desc"
        kind = "timeline fits" if width <= _PAGE_WIDTH else "timeline"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" role="img" '
            f'viewBox="0 0 {_px(width)} {_px(height)}" width="{_px(width)}" '
            f'height="{_px(height)}" aria-labelledby={quoteattr(ids)}>'
            f'<title id="{self.prefix}-title">{escaped(title)}</title>'
            f'<desc id="{self.prefix}-desc">{escaped(description)}</desc>'
            + "\n".join(self._parts)
            + "</svg>"
        )

    def ornament(self, width: float, height: float) -> str:
        """The picture as something that text beside it already says."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="timeline" aria-hidden="true" '
            f'viewBox="0 0 {_px(width)} {_px(height)}" width="{_px(width)}" '
            f'height="{_px(height)}">' + "".join(self._parts) + "</svg>"
        )


def escaped(text: str) -> str:
    """Text for an element, with markup escaped and without what XML cannot hold."""
    return escape(harmless(text, ISOLATES))


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
