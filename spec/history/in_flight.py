"""Passes that are not yet updated, and what their outputs still count for."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, TypeAlias

from spec.record.steps import PassSeen, ScheduledRequest

Standing: TypeAlias = Literal["live", "preempted", "dead"]
"""``preempted``: no progress comes of it, but its tokens may still be delivered. ``dead``: its
request ended, was rewound or is in its next turn."""


class InFlight:
    """The batches in flight, and the standings of outputs that are no longer live.

    Attributes:
        batches: what each pass runs that is not yet updated, by its number; passes without tokens
            are left out.
    """

    def __init__(self) -> None:
        self.batches: dict[int, dict[int, ScheduledRequest]] = {}
        self._standings: dict[int, dict[int, Standing]] = {}

    def add(self, step: PassSeen) -> None:
        """Take a pass; what it preempted loses its progress in all earlier ones."""
        for request in step.preempted:
            self._set(request, "preempted")
        if step.scheduled:
            self.batches[step.index] = {
                scheduled.request: scheduled for scheduled in step.scheduled
            }
            self._standings[step.index] = {}

    def pop(self, index: int) -> tuple[dict[int, ScheduledRequest], dict[int, Standing]]:
        """The batch of a pass that is updated now, and the standings of those not live.

        Both are empty if nothing ran.
        """
        return self.batches.pop(index, {}), self._standings.pop(index, {})

    def of(self, request: int) -> list[ScheduledRequest]:
        """What runs of the request in the passes in flight."""
        return [batch[request] for batch in self.batches.values() if request in batch]

    def in_order(self) -> Hashable:
        """The batches and standings in order, without numbers of passes: they never repeat."""
        return tuple(
            (tuple(batch.values()), frozenset(self._standings[index].items()))
            for index, batch in self.batches.items()
        )

    def end(self, request: int) -> None:
        """Let nothing of the request in flight count any more."""
        self._set(request, "dead")

    def _set(self, request: int, standing: Standing) -> None:
        for index, batch in self.batches.items():
            if request in batch:
                standings = self._standings[index]
                if standings.get(request) != "dead":
                    standings[request] = standing
