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


LONGEST_MESSAGE = 2000
"""Characters of a message of code under test that are kept: it may repeat all that it was given."""


def message_of(error: BaseException) -> str:
    """What an exception of code under test says, cut where it is long and fit to be written.

    Saying so is code under test as well, and may fail.
    """
    try:
        message = str(error).encode("utf-8", "replace").decode()
    except Exception:
        return "its message cannot be told"
    cut = f"... ({len(message)} characters)" if len(message) > LONGEST_MESSAGE else ""
    return message[:LONGEST_MESSAGE] + cut


def described(error: BaseException) -> str:
    """The exception's class, and what it says."""
    return f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
