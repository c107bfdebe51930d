"""Text from outside, made harmless for a terminal and for whatever reads its lines.

Identifiers, paths and error messages come from users, from a checkout and from a release. A
terminal acts on control characters, and GitHub Actions on lines that look like its commands. No
such text may reach either as it is.
"""

from __future__ import annotations

import re
import unicodedata

import click
from rich.markup import escape

LONGEST_NAME = 60
"""Characters of a name that are shown; files hold it whole."""

LONGEST_ERROR = 2000
"""Characters of an error message that are shown: it may repeat what a file held."""

_RIGHT_TO_LEFT = ("R", "AL", "AN")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNSEEN_SPACE = re.compile(r"^ | $|(?<= ) ")
_ACTED_ON = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that a terminal obeys or that turn the direction of a line."""

_COMMAND = re.compile(r"^(\s*):(?=:)")
_OLD_COMMAND = re.compile(r"##(?=\[)")


def visible(text: str, longest: int | None = LONGEST_NAME) -> str:
    """The text on one line, each character that is not plain to see as an escape.

    Args:
        longest: characters to keep; ``None`` for all. What was cut is said.
    """
    shown = text if longest is None else text[:longest]
    escaped = _UNSEEN_SPACE.sub(r"\\x20", "".join(map(_visible, shown)))
    return escaped if len(shown) == len(text) else f"{escaped}... ({len(text)} characters)"


def _visible(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    is_plain = (
        character.isprintable()
        and not unicodedata.category(character).startswith("M")
        and unicodedata.bidirectional(character) not in _RIGHT_TO_LEFT
    )
    return character if is_plain else _code(character)


def _code(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def harmless_lines(text: str) -> str:
    r"""The text with its line ends, and with nothing that a terminal or GitHub would act on.

    Control characters become escapes. A line that GitHub Actions would take for a command
    (``::error``, ``##[group]``) loses its sign: the first colon becomes ``\x3a``, the second hash
    ``\x23``.
    """
    return "\n".join(map(_harmless_line, text.split("\n")))


def _harmless_line(line: str) -> str:
    line = "".join(
        _code(character) if unicodedata.category(character) in _ACTED_ON else character
        for character in line
    )
    return _OLD_COMMAND.sub(r"#\\x23", _COMMAND.sub(r"\1\\x3a", line))


def table_text(text: str) -> str:
    """Text for a cell or the title of a rich table: no markup, and nothing that anybody obeys.

    A cell may be folded, so that any of its words may come to stand at the start of a line.
    """
    return escape(harmless_lines(text).replace("::", r"\x3a:"))


def print_lines(text: str, *, err: bool = False) -> None:
    """Print lines for people: the only way in which a command does.

    Args:
        text: one line or more, without the last line end.
        err: whether it goes to standard error.
    """
    click.echo(harmless_lines(text), err=err)


def error_line(message: str) -> str:
    """An error message on one line, cut where it is long."""
    shown = message if len(message) <= LONGEST_ERROR else message[:LONGEST_ERROR]
    line = harmless_lines(" ".join(shown.split("\n")))
    cut = "" if shown is message else f"... ({len(message)} characters)"
    return line + cut
