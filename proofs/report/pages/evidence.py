"""What is known of a violation beside the run that shows it: how it was found, and what is not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """Sentences without a full stop.

    Attributes:
        shown: what else was shown.
        not_shown: what else was not.
    """

    shown: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()


NO_EVIDENCE = Evidence()
"""Nothing but the run."""
