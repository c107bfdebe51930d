"""A step of the model as a step of a run, as far as the relation of the proofs looks at it.

What the model has no state for is as its rules say: raw data comes with each start and stays, all
that the worker holds was encoded since the cache was last reset, and nothing is gathered.
"""

from __future__ import annotations

from typing import get_args

from spec.model.layout import Layout
from spec.model.run import ModelPass, ModelStep, ModelUpdate
from spec.model.state import STATUS_NAMES, State
from spec.model.state import RequestState as Numbers
from spec.record.quick import quick
from spec.record.steps import (
    Encoding,
    EngineState,
    ErrorSeen,
    EventSeen,
    LoopBookState,
    PassSeen,
    Read,
    RequestOutcome,
    RequestState,
    ScheduledRequest,
    Status,
    Step,
    UpdateSeen,
    WorkerSeen,
)

_request_state, _book_state = quick(RequestState), quick(LoopBookState)
_engine_state, _worker_seen = quick(EngineState), quick(WorkerSeen)
_pass_seen, _update_seen, _event_seen = quick(PassSeen), quick(UpdateSeen), quick(EventSeen)
_scheduled, _outcome, _encoding = quick(ScheduledRequest), quick(RequestOutcome), quick(Encoding)
_NOTHING_READ = Read()
_STATUSES: dict[str, Status] = {status: status for status in get_args(Status)}


class SeenSteps:
    """Tells steps of the model as steps of a run.

    Args:
        layout: of the scenario.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._statuses = [_STATUSES.get(name) for name in STATUS_NAMES]
        self._inputs = [
            tuple((request, feature) for feature in range(len(features)))
            for request, features in enumerate(layout.features)
        ]
        self._places = [place for own in self._inputs for place in own]
        self._contents: dict[int, tuple[tuple[str, int], ...]] = {}
        self._requests: list[dict[Numbers, RequestState | None]] = [{} for _ in layout.features]
        self._books: dict[tuple[int, int, tuple[int, ...], int, int], LoopBookState] = {}

    def step(self, step: ModelStep) -> Step:
        """The step as a run shows it, with the calls that were kept of it."""
        state = self._state(step.state)
        error = None if step.error is None else ErrorSeen("Error", step.error)
        if isinstance(step, ModelPass):
            return self._pass(step, state, error)
        if isinstance(step, ModelUpdate):
            outcomes = tuple(
                [
                    _outcome(request, accepted, emitted, dropped, None if left < 0 else left)
                    for request, accepted, emitted, dropped, left in step.record.outcomes
                ]
            )
            return _update_seen(step.index, outcomes, step.calls, (), state, error)
        return _event_seen(step.index, step.event, step.request, step.calls, (), state, error)

    def _pass(self, step: ModelPass, state: EngineState, error: ErrorSeen | None) -> PassSeen:
        record = step.record
        names = self._layout.names
        inputs = tuple([self._places[occurrence] for occurrence in record.inputs])
        worker = None if error is not None else self._worker(step, inputs)
        return _pass_seen(
            step.index,
            step.calls,
            tuple([_scheduled(*entry) for entry in record.scheduled]),
            inputs,
            tuple([names[name] for name in record.notices]),
            record.preempted,
            (),
            state,
            worker,
            error,
        )

    def _worker(self, step: ModelPass, inputs: tuple[tuple[int, int], ...]) -> WorkerSeen:
        """The worker; an encoding goes by the number of its hash."""
        layout = self._layout
        received: list[tuple[int, int]] = []
        for request, *_, started in step.record.scheduled:
            if started and (layout.rules.resends_payload or step.state.payload >> request & 1):
                received += self._inputs[request]
        held = step.state.worker
        contents = self._contents.get(held)
        if contents is None:
            contents = self._contents[held] = tuple(
                (name, number) for number, name in enumerate(layout.names) if held >> number & 1
            )
        encoded = tuple(
            [
                _encoding(layout.hash_of[o], request, feature, layout.rows[o])
                for (request, feature), o in zip(inputs, step.record.inputs, strict=True)
            ]
        )
        return _worker_seen(tuple(received), (), encoded, contents, _NOTHING_READ, _NOTHING_READ)

    def _state(self, state: State) -> EngineState:
        requests = []
        for request, numbers in enumerate(state.requests):
            made = self._requests[request]
            if numbers not in made:
                made[numbers] = self._request(request, numbers)
            seen = made[numbers]
            if seen is not None:
                requests.append(seen)
        book = state.held, state.entries, state.freeable, state.free, state.freeable_slots
        if book not in self._books:
            self._books[book] = self._book(state)
        return _engine_state(tuple(requests), state.waiting, state.running, self._books[book])

    def _request(self, request: int, numbers: Numbers) -> RequestState | None:
        standing, computed, placeholders, drafts, known_tokens, blocks, _, _ = numbers
        status = self._statuses[standing]
        if status is None:
            return None
        return _request_state(request, status, computed, placeholders, drafts, known_tokens, blocks)

    def _book(self, state: State) -> LoopBookState:
        layout = self._layout
        names, held = layout.names, state.held
        references = tuple(
            (name, layout.holders(held & layout.sharing[number]))
            for number, name in enumerate(names)
            if state.entries >> number & 1
        )
        freeable = tuple([names[name] for name in state.freeable])
        return _book_state(references, freeable, state.free, state.freeable_slots)
