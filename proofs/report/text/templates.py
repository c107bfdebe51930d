"""Where the templates of reports are, and how they are read: a name that is missing is an error."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from proofs.report.text.literals import assignment

TEMPLATES = Path(__file__).parents[1] / "templates"


def templates(*, are_html: bool) -> Environment:
    """Templates that escape what is put in where they are HTML, and nothing where they are not."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=are_html,  # noqa: S701 -- literals.py escapes for Python and for prose
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )


@cache
def text_templates() -> Environment:
    """Templates for Python and Markdown; values are escaped by the filters that put them in."""
    made = templates(are_html=False)
    made.globals["assignment"] = assignment
    return made
