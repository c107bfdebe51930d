"""What a run has left behind that its next pass depends on, besides the state it reports."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from spec.history.in_flight import InFlight
from spec.record.prompts import Prompts
from spec.record.scenario import Scenario
from spec.record.steps import (
    EngineState,
    EventSeen,
    PassSeen,
    RequestState,
    Status,
    UpdateSeen,
)

ACTIVE: frozenset[Status] = frozenset({"waiting", "running", "preempted"})
"""Statuses of a request that wants to run: neither ended nor paused for input."""


class HiddenState:
    """Passes in flight, answers of the world that are used up, and where each turn ends.

    Attributes:
        in_flight: passes that are not yet updated.
        prompts: where features lie.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.prompts = Prompts(scenario)
        self.in_flight = InFlight()
        self._hits_used = [0] * len(scenario.requests)
        self._drafts_used = [0] * len(scenario.requests)
        self._num_draft_answers = [len(request.accepted_drafts) for request in scenario.requests]

    def observe_pass(self, step: PassSeen, before: EngineState) -> None:
        """Take note of a pass, given the state in which it began."""
        self.in_flight.add(step)
        for entry in step.scheduled:
            if entry.started and self._hit(entry.request) is not None:
                # Only a request that starts from nothing looks for a prefix.
                states = {state.request: state for state in before.requests}
                if states[entry.request].num_computed_tokens == 0:
                    self._hits_used[entry.request] += 1

    def observe_update(self, step: UpdateSeen) -> None:
        """Take note of an update: its pass is no longer in flight."""
        batch, _ = self.in_flight.pop(step.index)
        verified = {request for request, entry in batch.items() if entry.num_draft_tokens}
        if verified:
            used, num_answers = self._drafts_used, self._num_draft_answers
            for outcome in step.outcomes:
                request = outcome.request
                is_used = request in verified and not outcome.dropped
                if is_used and used[request] < num_answers[request]:
                    used[request] += 1
        self.prompts.observe(step)

    def observe_event(self, step: EventSeen) -> None:
        """Take note of an event."""
        self.prompts.observe(step)

    def only_in_flight(self, index: int) -> bool:
        """Whether no other pass than this one is in flight."""
        batches = self.in_flight.batches
        return len(batches) == (index in batches)

    def rest(self) -> Hashable:
        """All of it that the next pass and its update depend on; equal where they cannot differ.

        Numbers of passes are left out: they differ between equal moments.
        """
        return tuple(self._hits_used), tuple(self._drafts_used), self.in_flight.in_order()

    def start(self, state: RequestState) -> int:
        """Progress from which the next pass would run the request (tokens).

        A request that waits with nothing computed finds the prefix that the world answers.
        """
        if state.status == "running" or state.num_computed_tokens:
            return state.num_computed_tokens
        return min(self._hit(state.request) or 0, state.num_tokens - 1)

    def _hit(self, request: int) -> int | None:
        hits = self._scenario.requests[request].prefix_hits
        used = self._hits_used[request]
        return hits[used] if used < len(hits) else None

    def surely_ends(self, state: RequestState) -> bool:
        """Whether what is in flight brings the request to its ``max_tokens``.

        Each step in flight that samples yields at least one token, whatever drafts are rejected.
        """
        if not state.num_output_placeholders:
            return False
        sampling = sum(entry.samples for entry in self.in_flight.of(state.request))
        return state.num_tokens + max(1, sampling) >= self.prompts.turn_ends[state.request]


def state_key(state: EngineState, rest: Hashable) -> Hashable:
    """All that ``schedule()`` reads; ``rest`` is of ``HiddenState.rest``, references are sets."""
    book = state.book
    return (
        state.requests,
        state.waiting,
        state.running,
        frozenset((identifier, frozenset(holders)) for identifier, holders in book.references),
        book.freeable,
        book.num_free_slots,
        book.num_freeable_slots,
        rest,
    )


def has_active(requests: Iterable[RequestState]) -> bool:
    """Whether any request wants to run."""
    return any(state.status in ACTIVE for state in requests)
