"""Values as Python text that upstream's formatter leaves alone, and text that no one can break.

Identifiers come from outside. In code they appear only as escaped literals; in prose every
character that could end a string, a line, a fence or a tag is replaced.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

LINE_LENGTH = 88
"""Upstream's line length."""

_INDENT = 4
_LONGEST_WORD = 40
_HARMLESS = re.compile(r"[^A-Za-z0-9 .,;:_()\[\]/+=#@%!?'-]")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Text for prose: whatever is not plain becomes ``?``, and long words are cut."""
    words = _HARMLESS.sub("?", text).split(" ")
    return " ".join(w if len(w) <= _LONGEST_WORD else w[: _LONGEST_WORD - 3] + "..." for w in words)


def wrapped(text: str, width: int = LINE_LENGTH) -> str:
    """A paragraph of harmless text, broken into lines."""
    return textwrap.fill(printable(text), width, break_on_hyphens=False)


def python_string(text: str) -> str:
    """A string literal in ASCII, with the quotes that the formatter prefers."""
    quote = '"' if text.count('"') <= text.count("'") else "'"
    return quote + "".join(_escaped(character, quote) for character in text) + quote


def _escaped(character: str, quote: str) -> str:
    if character == quote:
        return "\\" + character
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    if 32 <= code < 127:
        return character
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def python_literal(value: object, before: int = 0, indent: int = 0, after: int = 0) -> str:
    """A value as the formatter would write it: on one line where that fits, else one item a line.

    Args:
        value: ``None``, a Boolean, an integer, a string, a sequence or a mapping of these.
        before: characters on the first line in front of the value.
        indent: indentation of the line that the value starts on.
        after: characters that must still fit behind the value.
    """
    flat = _flat(value)
    is_whole = not isinstance(value, (Mapping, Sequence)) or isinstance(value, str) or not value
    if is_whole or before + len(flat) + after <= LINE_LENGTH:
        return flat
    inner = indent + _INDENT
    opening, closing = ("{", "}") if isinstance(value, Mapping) else _brackets(value)
    lines = [opening]
    if isinstance(value, Mapping):
        for key, item in value.items():
            start = " " * inner + f"{_flat(key)}: "
            lines.append(start + python_literal(item, len(start), inner, 1) + ",")
    else:
        assert isinstance(value, Sequence)
        for item in value:
            lines.append(" " * inner + python_literal(item, inner, inner, 1) + ",")
    return "\n".join([*lines, " " * indent + closing])


def assignment(name: str, value: object) -> str:
    """The line or lines ``NAME = value``."""
    return f"{name} = " + python_literal(value, len(name) + 3)


def _brackets(value: object) -> tuple[str, str]:
    return ("(", ")") if isinstance(value, tuple) else ("[", "]")


def _flat(value: object) -> str:
    if value is None or isinstance(value, (bool, int)):
        return repr(value)
    if isinstance(value, str):
        return python_string(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flat(k)}: {_flat(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence):
        opening, closing = _brackets(value)
        only = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return opening + ", ".join(_flat(item) for item in value) + only + closing
    raise TypeError(f"no literal for {type(value).__name__}")


def allow_long_strings(text: str) -> str:
    """Mark lines that hold a string too long to break, as upstream's linter asks."""
    return "\n".join(
        f"{line}  # noqa: E501" if len(line) > LINE_LENGTH else line for line in text.split("\n")
    )
