"""Text from outside, made harmless for every page and picture: hashes, messages, names of targets.

Escaping is for whoever writes markup; this is about what no escaping can mend: characters that XML
forbids, controls that turn the direction of a line, and lengths that push everything else away.
"""

from __future__ import annotations

import re
import unicodedata

_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_SPACES = re.compile(r"[\t\r\n\u2028\u2029]+")
_REPLACEMENT = "\ufffd"
_ISOLATE, _END_OF_ISOLATE = "\u2068", "\u2069"
ISOLATES = _ISOLATE + _END_OF_ISOLATE
"""What :func:`isolated` puts around a text."""

_LONGEST = 40


def harmless(text: str, kept: str = "") -> str:
    """The text without what a page or a picture cannot hold.

    Line ends and all kinds of spaces become spaces. Characters that XML forbids, and invisible ones
    (controls of direction, zero-width marks), become U+FFFD, so that two names that look alike are
    seen to differ.

    Args:
        text: anything.
        kept: invisible characters that stay.
    """
    text = _FORBIDDEN.sub(_REPLACEMENT, _SPACES.sub(" ", text))
    if text.isascii():
        return text
    return "".join(character if character in kept else _seen(character) for character in text)


def _seen(character: str) -> str:
    """The character, or what stands for it where it would not be seen."""
    if ord(character) & 0xFFFE == 0xFFFE:  # Noncharacters at the end of each plane.
        return _REPLACEMENT
    category = unicodedata.category(character)
    if category == "Zs":
        return " "
    return _REPLACEMENT if category in ("Cc", "Cf", "Cn", "Co") else character


def shortened(text: str, longest: int = _LONGEST) -> str:
    """The text, with the middle left out where it is longer than so many characters."""
    if len(text) <= longest:
        return text
    kept = longest - 1
    return text[: kept - kept // 2] + "…" + text[-(kept // 2) :]


def isolated(text: str) -> str:
    """The text so that its letters, if they run from right to left, turn nothing around them."""
    return text if text.isascii() else f"{_ISOLATE}{text}{_END_OF_ISOLATE}"


def name(text: str, longest: int = _LONGEST) -> str:
    """A name from outside, ready to be escaped."""
    return isolated(shortened(harmless(text), longest))
