"""HTML templates: everything is escaped, and text from outside is made harmless before."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment
from markupsafe import Markup, escape

from proofs.report.text.plain import ISOLATES, harmless, name, shortened
from proofs.report.text.public import linked_html
from proofs.report.text.templates import TEMPLATES, templates

_LONGEST_TEXT = 600

CONTENT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""What a page may load: its own style and its empty icon. No script runs, and nothing is fetched,
even where a text from outside were to slip through the escaping."""


@cache
def html_templates() -> Environment:
    """Templates with autoescape.

    Filters: ``text`` for sentences that may hold names from outside, ``named`` for one such name,
    ``sentence`` for a sentence with its capital letter, ``linked`` for one with public numbers.
    """
    made = templates(are_html=True)
    made.filters["text"] = page_text
    made.filters["named"] = name
    made.filters["sentence"] = sentence
    made.filters["linked"] = linked
    made.globals["policy"] = Markup(CONTENT_POLICY)  # noqa: S704 -- our own text
    made.globals["style"] = Markup(stylesheet())  # noqa: S704 -- our own file
    return made


def stylesheet() -> str:
    """The style of all pages and pictures."""
    return (TEMPLATES / "report.css").read_text(encoding="utf-8")


def page_text(text: str, longest: int = _LONGEST_TEXT) -> str:
    """A sentence for a page: harmless, and not longer than a reader bears."""
    return shortened(harmless(text, ISOLATES), longest)


def linked(text: str) -> Markup:
    """A sentence of ours with each number of a public pull request or issue as a link."""
    return Markup(linked_html(str(escape(page_text(text)))))  # noqa: S704 -- escaped


def sentence(text: str) -> str:
    """The same with a capital letter at its start."""
    text = page_text(text)
    return text[:1].upper() + text[1:]
