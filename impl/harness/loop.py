"""The loop around an engine: events, one pass at a time, the worker, and updates passes later.

Synchronously, a pass is scheduled, executed and updated before the next one. Asynchronously,
``async_depth`` further passes are scheduled before a pass is updated. The worker executes outputs
in order and learns of everything through them, so that running it at schedule time shows what it
would show later (assumption ``outputs-in-order``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from impl.harness.calls import CallLog
from impl.target import error_seen
from spec.functions.observations import request_name
from spec.record.events import events_by_pass
from spec.record.quick import quick
from spec.record.scenario import Scenario
from spec.record.steps import (
    EngineState,
    ErrorSeen,
    Event,
    EventSeen,
    PassSeen,
    RequestOutcome,
    ScheduledRequest,
    Step,
    UpdateSeen,
    WorkerSeen,
)

_event_seen, _pass_seen, _update_seen = quick(EventSeen), quick(PassSeen), quick(UpdateSeen)


class PassInFlight(Protocol):
    """A pass that was scheduled and is not yet updated."""

    @property
    def index(self) -> int:
        """Number of the pass."""

    @property
    def batch(self) -> Sequence[object]:
        """The requests that run in it."""


PassT = TypeVar("PassT", bound=PassInFlight)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a pass is recorded with, as in :class:`spec.record.steps.PassSeen`."""

    scheduled: tuple[ScheduledRequest, ...]
    encoder_inputs: tuple[tuple[int, int], ...]
    freed: tuple[str, ...]
    preempted: tuple[int, ...]
    rejected: tuple[int, ...]


contents_of = quick(Contents)


class Loop(ABC, Generic[PassT]):
    """Drives an engine through a scenario, recording each step or not.

    The subclass is the engine: it takes events, and schedules, executes and updates passes. This
    class holds the order of all that, and what is kept of it.

    Attributes:
        log: calls that the engine records, if it does, and turns that began.
    """

    updates_empty_passes = False
    """Whether a pass in which nothing runs is updated, too, as vLLM's engine core does."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.log = CallLog({request_name(i): i for i in range(len(scenario.requests))})
        self._async_depth = scenario.config.async_depth
        self._in_flight: deque[PassT] = deque()
        self._events = events_by_pass(scenario)
        self._last_event = max(self._events, default=-1)
        self._next_pass = 0

    @abstractmethod
    def all_ended(self) -> bool:
        """Whether every request that has arrived has ended."""

    @abstractmethod
    def arrive(self, request: int) -> None:
        """Take a request in."""

    @abstractmethod
    def go_on(self, request: int) -> None:
        """Take in the next input of a streaming request."""

    @abstractmethod
    def close(self, request: int) -> None:
        """End the input of a streaming request; nothing where it has ended."""

    @abstractmethod
    def abort(self, request: int) -> None:
        """End a request that its client gave up; nothing where it has ended."""

    @abstractmethod
    def reset(self) -> None:
        """Empty the encoder cache, in the book and on the worker."""

    @abstractmethod
    def schedule(self, index: int) -> PassT:
        """Schedule the pass with this number."""

    @abstractmethod
    def contents(self, scheduled: PassT) -> Contents:
        """What is recorded of the pass that was just scheduled."""

    @abstractmethod
    def execute(self, scheduled: PassT) -> WorkerSeen:
        """Let the worker run a pass, and say what it did."""

    @abstractmethod
    def run(self, scheduled: PassT) -> None:
        """Let the worker run a pass; what it reads is lost."""

    @abstractmethod
    def update(self, scheduled: PassT) -> Iterable[RequestOutcome]:
        """Give the scheduler the results of a pass; what became of each request of its batch."""

    @abstractmethod
    def state(self) -> EngineState:
        """What the scheduler holds, for the requests that have arrived."""

    def error(self, raised: Exception) -> ErrorSeen:
        """What was raised, as it is recorded.

        Raises:
            AdapterError: it is nothing that the engine did.
        """
        return error_seen(raised)

    def at_rest(self) -> bool:
        """Whether every request has ended and nothing is in flight or expected."""
        return (
            self._next_pass > self._last_event
            and not any(scheduled.batch for scheduled in self._in_flight)
            and self.all_ended()
        )

    def advance(self) -> bool:
        """Run one pass with its events and update, without recording; whether more can follow."""
        if self.at_rest():
            return False
        for event, request in self._events.get(self._next_pass, ()):
            self._apply(event, request)
        scheduled = self._schedule()
        self.run(scheduled)
        due = self._due(scheduled)
        if due is not None:
            for _ in self.update(due):
                pass
            self.log.continued.clear()
        return True

    def steps(self) -> Iterator[Step]:
        """Run and record until the engine is at rest, or the scheduler raised."""
        while not self.at_rest():
            index = self._next_pass
            for event, request in self._events.get(index, ()):
                happened = self._record_event(index, event, request)
                yield happened
                if happened.error is not None:
                    return
            seen, due = self._record_pass(index)
            yield seen
            if seen.error is not None:
                return
            if due is not None:
                update = self._record_update(due)
                if due.batch or update.calls or update.error is not None:
                    yield update
                if update.error is not None:
                    return

    def _record_event(self, index: int, event: Event, request: int) -> EventSeen:
        error = None
        try:
            self._apply(event, request)
        except Exception as raised:
            error = self.error(raised)
        calls, continued = self.log.take(), self.log.take_continued()
        return _event_seen(index, event, request, calls, continued, self.state(), error)

    def _record_pass(self, index: int) -> tuple[PassSeen, PassT | None]:
        try:
            scheduled = self._schedule()
        except Exception as raised:
            calls, error = self.log.take(), self.error(raised)
            return PassSeen(index, calls, (), (), (), (), (), self.state(), None, error), None
        calls, state, contents = self.log.take(), self.state(), self.contents(scheduled)
        seen = _pass_seen(
            index,
            calls,
            contents.scheduled,
            contents.encoder_inputs,
            contents.freed,
            contents.preempted,
            contents.rejected,
            state,
            self.execute(scheduled),
        )
        return seen, self._due(scheduled)

    def _record_update(self, due: PassT) -> UpdateSeen:
        outcomes: list[RequestOutcome] = []
        error = None
        try:
            for outcome in self.update(due):
                outcomes.append(outcome)
        except Exception as raised:
            error = self.error(raised)
        calls, continued = self.log.take(), self.log.take_continued()
        return _update_seen(due.index, tuple(outcomes), calls, continued, self.state(), error)

    def _schedule(self) -> PassT:
        index = self._next_pass
        scheduled = self.schedule(index)
        self._next_pass += 1
        if scheduled.batch or self.updates_empty_passes:
            self._in_flight.append(scheduled)
        return scheduled

    def _due(self, scheduled: PassT) -> PassT | None:
        """The pass to update now: the oldest when enough follow it, or when nothing else runs."""
        in_flight = self._in_flight
        if len(in_flight) > self._async_depth or (in_flight and not scheduled.batch):
            return in_flight.popleft()
        return None

    def _apply(self, event: Event, request: int) -> None:
        match event:
            case "arrival":
                self.arrive(request)
            case "continuation":
                self.go_on(request)
            case "close":
                self.close(request)
            case "abort":
                self.abort(request)
            case "reset":
                self.reset()
