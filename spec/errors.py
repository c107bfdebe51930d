"""The two errors of our own: input that is wrong, and work that leads to no verdict."""

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
