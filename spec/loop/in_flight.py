"""Passes that are not yet updated, and what their outputs still count for."""

from __future__ import annotations

from typing import Literal, TypeAlias

from spec.loop.steps import PassSeen, ScheduledRequest

Standing: TypeAlias = Literal["live", "preempted", "dead"]
"""``preempted``: no progress comes of it, but its tokens may still be delivered. ``dead``: its
request ended, was rewound or is in its next turn."""


class InFlight:
    """The batches in flight, each request with the standing of its output."""

    def __init__(self) -> None:
        self._batches: dict[int, dict[int, tuple[ScheduledRequest, Standing]]] = {}

    def add(self, step: PassSeen) -> None:
        """Take a pass; what it preempted loses its progress in all earlier ones."""
        for request in step.preempted:
            self._set(request, "preempted")
        if step.scheduled:
            self._batches[step.index] = {
                scheduled.request: (scheduled, "live") for scheduled in step.scheduled
            }

    def pop(self, index: int) -> dict[int, tuple[ScheduledRequest, Standing]]:
        """The batch of a pass that is updated now; empty if nothing ran."""
        return self._batches.pop(index, {})

    def end(self, request: int) -> None:
        """Let nothing of the request in flight count any more."""
        self._set(request, "dead")

    def _set(self, request: int, standing: Standing) -> None:
        for batch in self._batches.values():
            entry = batch.get(request)
            if entry is not None and entry[1] != "dead":
                batch[request] = (entry[0], standing)
