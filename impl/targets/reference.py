"""The reference implementation with the faults that were asked for, and its name."""

from __future__ import annotations

from collections.abc import Iterable

from impl.faults.switches import faulty_parts


class Reference:
    """What both targets share.

    Args:
        faults: names of switches of :mod:`impl.faults.switches`, all active together.

    Raises:
        InputError: an unknown fault; the message lists those that exist.
    """

    def __init__(self, faults: Iterable[str] = ()) -> None:
        self.faults = frozenset(faults)
        self.parts = faulty_parts(self.faults)

    @property
    def name(self) -> str:
        """``reference``, with the faults that are switched on."""
        return " ".join(["reference", *(f"+{name}" for name in sorted(self.faults))])
