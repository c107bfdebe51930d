"""Wrong input, and work without a verdict: the errors of our own. And what other errors say."""

from __future__ import annotations


class InputError(ValueError):
    """Something a person supplied cannot be used.

    The message is complete by itself: what was wrong, where, and what to do about it. Command-line
    entry points print it without a traceback.
    """


class NoVerdictError(Exception):
    """Work that was begun leads to no verdict: it broke down, or two ways to it disagree.

    Command-line entry points print the message behind ``ERROR``, without a traceback.
    """


LONGEST_NAME = 200
"""Characters of the name of a class of code under test that are kept."""

LONGEST_MESSAGE = 2000
"""Characters of a message of code under test that are kept: it may repeat all that it was given."""


def message_of(error: BaseException) -> str:
    """What an exception of code under test says, cut where it is long and fit to be written.

    Saying so is code under test as well, and may fail.
    """
    try:
        return _cut(str(error), LONGEST_MESSAGE)
    except Exception:
        return "its message cannot be told"


def class_of(error: BaseException) -> str:
    """Name of an exception's class, which code under test may have chosen, as :func:`message_of`.

    Even that may be code under test.
    """
    try:
        return _cut(type(error).__name__, LONGEST_NAME)
    except Exception:
        return "an error without a name"


def _cut(text: str, longest: int) -> str:
    """The text, of plain characters and not too long; what was cut is said."""
    # Not a method of the text's own, which may be of a class of the code under test.
    plain = str.encode(text, "utf-8", "replace").decode()
    return plain[:longest] + (f"... ({len(plain)} characters)" if len(plain) > longest else "")


def described(error: BaseException) -> str:
    """The exception's class, and what it says."""
    return f"{class_of(error)}: {message_of(error)}".removesuffix(": ")
