"""One scenario on the model, step by step: the world's answers are the scenario's."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from spec.model.calls import CallLog, taken
from spec.model.layout import Layout
from spec.model.rules import REFERENCE, ModelRules
from spec.model.schedule import schedule
from spec.model.state import DROPPED, LIVE, PassRecord, State, UpdateRecord
from spec.model.update import abort, arrive, initial_state, is_due, reset, update
from spec.model.working import Working
from spec.record.events import events_by_pass
from spec.record.scenario import Scenario
from spec.record.steps import Call, Event


@dataclass(frozen=True, slots=True)
class ModelEvent:
    """Something from outside before pass ``index``, and the state after it.

    ``calls`` are there where they were kept, as in all steps.
    """

    index: int
    event: Event
    request: int
    state: State
    error: str | None = None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelPass:
    """Pass ``index`` and the state after it."""

    index: int
    record: PassRecord
    state: State
    calls: tuple[Call, ...] = ()

    @property
    def error(self) -> str | None:
        """What it raised."""
        return self.record.error


@dataclass(frozen=True, slots=True)
class ModelUpdate:
    """The update of pass ``index`` and the state after it."""

    index: int
    record: UpdateRecord
    state: State
    calls: tuple[Call, ...] = ()

    @property
    def error(self) -> str | None:
        """What it raised."""
        return self.record.error


ModelStep = ModelEvent | ModelPass | ModelUpdate


def run_model(scenario: Scenario, rules: ModelRules = REFERENCE) -> Iterator[ModelStep]:
    """Run a scenario, without end where it never comes to rest.

    Raises:
        InputError: the scenario is not valid, or the model does not cover it.
    """
    scenario.validate()
    return run_layout(scenario, Layout(scenario.config, scenario.requests, rules))


def run_layout(
    scenario: Scenario, layout: Layout, log: CallLog | None = None
) -> Iterator[ModelStep]:
    """Run a scenario whose layout is known; ``log`` keeps the calls of each step."""
    begin = Working if log is None else log.begin
    events = events_by_pass(scenario)
    last_event = max(events, default=-1)
    state = initial_state(layout)
    numbers: deque[int] = deque()
    verified = [0] * layout.num_requests
    index = 0
    while index <= last_event or state.in_flight or state.waiting or state.running:
        for event, request in events.get(index, ()):
            error: str | None = None
            calls: tuple[Call, ...] = ()
            match event:
                case "arrival":
                    state = arrive(layout, state, request)
                case "abort":
                    state, error = abort(layout, state, request, begin)
                case "reset":
                    state = reset(layout, state)
                    calls = () if log is None else (Call("reset"),)
                case "continuation" | "close":
                    raise AssertionError(event)
            yield ModelEvent(index, event, request, state, error, calls or taken(log))
            if error is not None:
                return
        state, record = schedule(layout, state, begin)
        yield ModelPass(index, record, state, taken(log))
        if record.error is not None:
            return
        if record.scheduled:
            numbers.append(index)
        if is_due(layout, state, bool(record.scheduled)):
            number = numbers.popleft()
            loads = _loads(scenario, number)
            accepted = [
                _accepted(scenario, state, entry, verified, loads) for entry in state.in_flight[0]
            ]
            state, update_record = update(layout, state, accepted, loads, begin)
            yield ModelUpdate(number, update_record, state, taken(log))
            if update_record.error is not None:
                return
        index += 1


def _loads(scenario: Scenario, number: int) -> dict[int, tuple[int, ...]]:
    """Falls of progress that the update of a pass reports."""
    loads = {}
    for request, source in enumerate(scenario.requests):
        if source.failed_loads:
            due = tuple(
                load.num_computed_tokens for load in source.failed_loads if load.at == number
            )
            if due:
                loads[request] = due
    return loads


def _accepted(
    scenario: Scenario,
    state: State,
    entry: tuple[int, int, int, bool, int],
    verified: list[int],
    loads: dict[int, tuple[int, ...]],
) -> int:
    """How many drafts the target accepts; what is thrown away uses no answer up."""
    request, _, num_drafts, _, standing = entry
    if not num_drafts or standing == DROPPED:
        return 0
    if standing == LIVE and request in loads:
        _, computed, placeholders, _, known_tokens, _, _, _ = state.requests[request]
        if any(min(load, known_tokens - 1) < computed - placeholders for load in loads[request]):
            return 0
    answers = scenario.requests[request].accepted_drafts
    number = verified[request]
    verified[request] += 1
    return min(answers[number], num_drafts) if number < len(answers) else 0
