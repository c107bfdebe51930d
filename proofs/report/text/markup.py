"""Text from outside, made harmless for Markdown as GitHub renders it.

Identifiers, paths and error messages come from users. In Markdown they stand in code spans, in
which nothing is markup, no name is a mention and no number a link; whatever could not be seen, or
would turn the direction of the text, is written as an escape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from proofs.describe.visible import visible

COMMENT_LIMIT = 65_536
"""Characters that a comment may have. Bytes are counted here, of which there are never fewer."""


NO_TEXT = "(empty)"
"""What stands for a name without a character."""

_HARMLESS = re.compile(r"[A-Za-z0-9.(\[\"'][A-Za-z0-9,.;:()\[\]+=\"'%?-]*")
_OPERATOR = re.compile(r"(?:[+=-]|==|[<>]=?)[,.;:]?")
_LINKED = re.compile(r"www\.|gh-\d|\]\(|:[^ ]*:|[0-9a-f]{7,}$|\[[ x]?\]", re.IGNORECASE)


def code_span(text: str, longest: int | None = None, *, in_table: bool = False) -> str:
    """The text as a code span that nothing in it can end.

    Args:
        text: any text.
        longest: characters to keep, as of :func:`visible`.
        in_table: whether it stands in a table's cell, where a pipe must be escaped even in code.
    """
    shown = visible(text, longest) or NO_TEXT
    fence = "`" * (_longest_run(shown) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    if in_table:
        shown = shown.replace("|", "\\|")
    return f"{fence}{space}{shown}{space}{fence}"


def prose(text: str, longest: int = 1000, *, in_table: bool = False) -> str:
    """A sentence in which each word that could be more than a word stands in a code span."""
    words = visible(text, longest).split(" ")
    return " ".join(
        _word(word, is_first=index == 0, in_table=in_table) for index, word in enumerate(words)
    )


def _word(word: str, *, is_first: bool, in_table: bool) -> str:
    if not word:
        return ""
    if not is_first and _OPERATOR.fullmatch(word):
        return word
    starts_a_list = is_first and re.fullmatch(r"\d+[.)].*", word)
    if _HARMLESS.fullmatch(word) and not _LINKED.search(word) and not starts_a_list:
        return word
    # The text is visible already, so that nothing is left to escape but what ends a code span.
    core = word.rstrip(",.;:") or word
    fence = "`" * (_longest_run(core) + 1)
    space = " " if core.startswith("`") or core.endswith("`") else ""
    shown = core.replace("|", "\\|") if in_table else core
    return f"{fence}{space}{shown}{space}{fence}{word[len(core) :]}"


def fenced(lines: Iterable[str], language: str = "text") -> str:
    """Lines as a block of code whose fence no line can be."""
    body = "\n".join(lines)
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already, each on one line."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def fitted(sections: Sequence[str], limit: int, note: str) -> str:
    """As many of the sections, from the first, as fit the limit; and a note where not all do.

    A section is kept or left out as a whole, so that no fence and no table stays open.

    Args:
        sections: Markdown, the most important first.
        limit: bytes in UTF-8.
        note: what to say of the rest.
    """
    whole = "\n\n".join(sections) + "\n"
    if _size(whole) <= limit:
        return whole
    text = f"{note}\n"
    kept: list[str] = []
    for section in sections:
        kept.append(section)
        longer = "\n\n".join([*kept, note]) + "\n"
        if _size(longer) > limit:
            break
        text = longer
    return text


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
