"""The one verdict type, and the exit code of each verdict."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

USAGE_EXIT_CODE = 2
"""Exit code of bad arguments and bad input; never that of a verdict."""

INTERRUPTED_EXIT_CODE = 130
"""Exit code of a command that Ctrl-C ended."""


class Verdict(Enum):
    """What became of a claim.

    ``PROVED``: valid for all integers, both solvers agree. ``HELD``: no counterexample among the
    cases drawn, which is no proof. ``REFUTED``: a counterexample that was replayed. ``UNKNOWN``: a
    solver gave up or the two disagree. ``VACUOUS``: the premise never happened. ``ERROR``: the
    check itself failed, or did no work.
    """

    PROVED = "PROVED"
    HELD = "HELD"
    REFUTED = "REFUTED"
    UNKNOWN = "UNKNOWN"
    VACUOUS = "VACUOUS"
    ERROR = "ERROR"

    @property
    def passes(self) -> bool:
        """Whether a run with this verdict may succeed."""
        return self in (Verdict.PROVED, Verdict.HELD)


_EXIT_CODES = {
    Verdict.PROVED: 0,
    Verdict.HELD: 0,
    Verdict.REFUTED: 1,
    Verdict.UNKNOWN: 3,
    Verdict.VACUOUS: 4,
    Verdict.ERROR: 5,
}

_WORST_FIRST = (Verdict.ERROR, Verdict.REFUTED, Verdict.UNKNOWN, Verdict.VACUOUS)


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """The exit code of a run: that of its worst verdict; no verdict at all is an error."""
    seen = set(verdicts)
    if not seen:
        return _EXIT_CODES[Verdict.ERROR]
    for verdict in _WORST_FIRST:
        if verdict in seen:
            return _EXIT_CODES[verdict]
    return 0
