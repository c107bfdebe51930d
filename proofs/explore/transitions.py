"""Passes, updates and aborts of the model, each made once and kept with its calls.

A state is come to on many ways, and each round is looked at several times: when the graph is found,
beside the reference, and in the relation of the proofs.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeAlias, TypeVar

from spec.model.calls import CallLog
from spec.model.layout import Layout
from spec.model.schedule import schedule
from spec.model.state import PassRecord, State, UpdateRecord
from spec.model.update import abort, update
from spec.record.steps import Call

Load: TypeAlias = tuple[int, int]
"""The request of which a failed load is reported, and the tokens left."""

Record = TypeVar("Record")


class Made(NamedTuple, Generic[Record]):
    """A transition: the state that it leads to, what it did, and its calls."""

    after: State
    record: Record
    calls: tuple[Call, ...]


class Transitions:
    """What can follow in one layout.

    Args:
        layout: what never changes.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._log = CallLog(layout)
        self._passes: dict[State, Made[PassRecord]] = {}
        self._updates: dict[tuple[State, tuple[int, ...], Load | None], Made[UpdateRecord]] = {}
        self._aborts: dict[tuple[State, int], Made[str | None]] = {}

    def schedule(self, state: State) -> Made[PassRecord]:
        """A pass."""
        made = self._passes.get(state)
        if made is None:
            after, record = schedule(self.layout, state, self._log.begin)
            made = self._passes[state] = Made(after, record, self._log.take())
        return made

    def update(
        self, state: State, accepted: tuple[int, ...], load: Load | None = None
    ) -> Made[UpdateRecord]:
        """The update of the oldest pass in flight, with the drafts accepted of each request."""
        key = state, accepted, load
        made = self._updates.get(key)
        if made is None:
            loads = {} if load is None else {load[0]: (load[1],)}
            after, record = update(self.layout, state, accepted, loads, self._log.begin)
            made = self._updates[key] = Made(after, record, self._log.take())
        return made

    def abort(self, state: State, request: int) -> Made[str | None]:
        """An abort, with what it raised."""
        made = self._aborts.get((state, request))
        if made is None:
            after, error = abort(self.layout, state, request, self._log.begin)
            made = self._aborts[state, request] = Made(after, error, self._log.take())
        return made
