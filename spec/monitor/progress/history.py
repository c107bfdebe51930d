"""What a run has left behind that its next pass depends on, besides the state it reports."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from spec.record.prompts import Prompts
from spec.record.scenario import Scenario
from spec.record.steps import (
    EngineState,
    EventSeen,
    PassSeen,
    RequestState,
    ScheduledRequest,
    Status,
    UpdateSeen,
)

ACTIVE: frozenset[Status] = frozenset({"waiting", "running", "preempted"})
"""Statuses of a request that wants to run: neither ended nor paused for input."""


class History:
    """Passes in flight, answers of the world that are used up, and where each turn ends.

    Attributes:
        in_flight: batches that are not yet updated, by the number of their pass; passes without
            tokens are left out.
        prompts: where features lie.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.prompts = Prompts(scenario)
        self.in_flight: dict[int, tuple[ScheduledRequest, ...]] = {}
        # Outputs in flight that will be thrown away: their request was preempted since.
        self._stale: frozenset[tuple[int, int]] = frozenset()
        self._hits_used = [0] * len(scenario.requests)
        self._drafts_used = [0] * len(scenario.requests)
        self._num_draft_answers = [len(request.accepted_drafts) for request in scenario.requests]
        self._turn_ends = [
            request.num_prompt_tokens + request.max_tokens for request in scenario.requests
        ]

    def observe_pass(self, step: PassSeen, before: EngineState) -> None:
        """Take note of a pass, given the state in which it began."""
        if step.preempted and self.in_flight:
            preempted = set(step.preempted)
            self._stale |= {
                (index, entry.request)
                for index, batch in self.in_flight.items()
                for entry in batch
                if entry.request in preempted
            }
        if not step.scheduled:
            return
        self.in_flight[step.index] = step.scheduled
        for entry in step.scheduled:
            if entry.started and self._hit(entry.request) is not None:
                # Only a request that starts from nothing looks for a prefix.
                states = {state.request: state for state in before.requests}
                if states[entry.request].num_computed_tokens == 0:
                    self._hits_used[entry.request] += 1

    def observe_update(self, step: UpdateSeen) -> None:
        """Take note of an update: its pass is no longer in flight."""
        batch = self.in_flight.pop(step.index, ())
        if self._stale:
            self._stale = frozenset(item for item in self._stale if item[0] != step.index)
        verified = {entry.request for entry in batch if entry.num_draft_tokens}
        if verified:
            used, known = self._drafts_used, self._num_draft_answers
            for outcome in step.outcomes:
                request = outcome.request
                if request in verified and not outcome.dropped and used[request] < known[request]:
                    used[request] += 1
        self._observe_turns(step)

    def observe_event(self, step: EventSeen) -> None:
        """Take note of an event."""
        self._observe_turns(step)

    def _observe_turns(self, step: EventSeen | UpdateSeen) -> None:
        if not step.continued:
            return
        self.prompts.observe(step)
        for request, base in step.continued:
            continuations = self._scenario.requests[request].continuations
            turn = continuations[self.prompts.turn(request) - 1]
            self._turn_ends[request] = base + turn.num_prompt_tokens + turn.max_tokens

    def only_in_flight(self, index: int) -> bool:
        """Whether no other pass than this one is in flight."""
        num_others = len(self.in_flight) - (index in self.in_flight)
        return num_others == 0

    def rest(self) -> Hashable:
        """All of it that the next pass and its update depend on; equal where they cannot differ.

        Numbers of passes are left out: they differ between equal moments.
        """
        hits_used, drafts_used = tuple(self._hits_used), tuple(self._drafts_used)
        if not self.in_flight:
            return (hits_used, drafts_used)
        positions = {index: position for position, index in enumerate(self.in_flight)}
        stale = frozenset((positions[index], request) for index, request in self._stale)
        batches = tuple(self.in_flight.values())
        return (hits_used, drafts_used, batches, stale)

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

    def outputs_in_flight(self, request: int) -> int:
        """Passes in flight that run the request."""
        return sum(
            any(entry.request == request for entry in batch) for batch in self.in_flight.values()
        )

    def surely_ends(self, state: RequestState) -> bool:
        """Whether what is in flight brings the request to its ``max_tokens``.

        Each step in flight that samples yields at least one token, whatever drafts are rejected.
        """
        if not state.num_output_placeholders:
            return False
        sampling = sum(
            entry.request == state.request
            and entry.num_computed_tokens + entry.num_scheduled_tokens
            >= entry.prefill_len + entry.num_output_placeholders
            for batch in self.in_flight.values()
            for entry in batch
        )
        return state.num_tokens + max(1, sampling) >= self._turn_ends[state.request]


def state_key(state: EngineState, rest: Hashable) -> Hashable:
    """All that ``schedule()`` reads, with references as sets; ``rest`` is :meth:`History.rest`."""
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
