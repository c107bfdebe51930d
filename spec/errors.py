"""The error for input that is wrong: it says what, where, and what to do."""

from __future__ import annotations


class InputError(ValueError):
    """Something a person supplied cannot be used.

    The message is complete by itself: what was wrong, where, and what to do about it. Command-line
    entry points print it without a traceback.
    """
