"""Updates: what became of each request of a pass, and what its counts must be then.

Part of the claim ``counts-agree``, with :mod:`spec.monitor.counts.counts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from spec.history.in_flight import InFlight, Standing
from spec.history.log import FindingLog
from spec.monitor.counts.answers import AnswersMonitor
from spec.record.prompts import Prompts
from spec.record.scenario import Scenario
from spec.record.steps import (
    PassSeen,
    RequestOutcome,
    RequestState,
    ScheduledRequest,
    Status,
    UpdateSeen,
)

CLAIM = "counts-agree"

ENDED = ("finished", "rejected")
"""Statuses of requests that ended."""

Counts: TypeAlias = tuple[Status, int, int, int, int]
"""A request's state without its KV blocks. One is made for each request in each step: a plain tuple
costs a fifth of a named one."""

COUNTS = (
    "status",
    "num_computed_tokens",
    "num_output_placeholders",
    "num_draft_tokens",
    "num_tokens",
)
"""What the places of :data:`Counts` stand for."""


def counts_of(state: RequestState, status: Status | None = None) -> Counts:
    """The counts of a state, with another status if one is given."""
    return (
        status or state.status,
        state.num_computed_tokens,
        state.num_output_placeholders,
        state.num_draft_tokens,
        state.num_tokens,
    )


class OutcomesMonitor:
    """Judge outcomes, and say what they make of each request.

    Args:
        scenario: what was chosen from outside.
        log: where findings go.

    Attributes:
        limits: for each request, the tokens at which its turn ends at the latest.
    """

    def __init__(self, scenario: Scenario, log: FindingLog) -> None:
        self._config = scenario.config
        self._requests = scenario.requests
        self._may_fail = [bool(request.failed_loads) for request in scenario.requests]
        self._log = log
        self._answers = AnswersMonitor(scenario, log)
        self._in_flight = InFlight()
        self._prompts = Prompts(scenario)
        self._open = {i for i, request in enumerate(scenario.requests) if request.close is not None}
        self.limits = self._prompts.turn_ends

    def observe_pass(self, step: PassSeen, states: Mapping[int, RequestState]) -> None:
        """Take a pass that is in flight from now on, given the states before it."""
        self._answers.observe_pass(step, states)
        self._in_flight.add(step)

    def after_update(
        self, step: UpdateSeen, states: Mapping[int, RequestState]
    ) -> dict[int, Counts]:
        """What the counts of each request must be after an update, given the states before it."""
        batch, standings = self._in_flight.pop(step.index)
        expected: dict[int, Counts] = {}
        for outcome in step.outcomes:
            request = outcome.request
            entry, before = batch.pop(request, None), states.get(request)
            if entry is None or before is None:
                continue
            standing = standings.get(request, "live") if standings else "live"
            expected[request] = self._after_outcome(step.index, outcome, entry, standing, before)
        for request in batch:
            self._note(
                "request of the pass without an outcome",
                f"the update of pass {step.index} has no outcome of request {request}",
                "one for each request that ran",
                request,
            )
        if step.continued:
            self.continue_turns(step.continued, states, expected)
        return expected

    def _after_outcome(
        self,
        index: int,
        outcome: RequestOutcome,
        entry: ScheduledRequest,
        standing: Standing,
        before: RequestState,
    ) -> Counts:
        request = outcome.request
        if before.status in ENDED:
            standing = "dead"
        if self._may_fail[request]:
            self._answers.check_load(index, outcome, standing, before)
        if not outcome.dropped:
            self._answers.check_accepted(outcome, entry)
        if outcome.dropped or standing == "dead":
            self._check_dropped(index, outcome, standing, before)
            if outcome.rewound is None:
                return counts_of(before)
            self._in_flight.end(request)
            return (before.status, outcome.rewound, 0, 0, before.num_tokens)
        samples = entry.samples
        sampled = 1 + outcome.num_accepted if samples else 0
        limit = self.limits[request]
        emitted = min(sampled, limit - before.num_tokens)
        if (
            outcome.rewound is not None
            or outcome.num_emitted != emitted
            or outcome.num_accepted > entry.num_draft_tokens
        ):
            self._note(
                "outcome that the step cannot have",
                f"{outcome.num_accepted} drafts accepted, {outcome.num_emitted} tokens emitted"
                + ("" if outcome.rewound is None else f", progress back at {outcome.rewound}"),
                f"{entry.num_draft_tokens} drafts in the step, of which {outcome.num_accepted} "
                f"were accepted: {emitted} tokens up to the turn's end, and no fall of progress",
                request,
            )
        tokens = before.num_tokens + outcome.num_emitted
        computed, placeholders = before.num_computed_tokens, before.num_output_placeholders
        drafts = before.num_draft_tokens
        if standing == "live":
            rejected = entry.num_draft_tokens - outcome.num_accepted
            computed -= rejected + sampled - outcome.num_emitted
            if placeholders:
                placeholders -= rejected + sampled
            if not self._config.async_depth:
                drafts = self._config.num_speculative_tokens if samples else 0
        if tokens < limit:
            return (before.status, computed, placeholders, drafts, tokens)
        self._in_flight.end(request)
        if self._expects_input(request):
            return ("paused", computed - placeholders, 0, 0, tokens)
        return ("finished", computed, placeholders, drafts, tokens)

    def _expects_input(self, request: int) -> bool:
        """Whether the client of a request has not yet said that its turn is the last one."""
        turns = len(self._requests[request].continuations)
        return request in self._open or self._prompts.turn(request) < turns

    def close(
        self, request: int, states: Mapping[int, RequestState], expected: dict[int, Counts]
    ) -> None:
        """Let no input follow: a request that pauses ends at once, any other with its turn."""
        self._open.discard(request)
        before = states.get(request)
        if before is not None and before.status == "paused":
            expected[request] = counts_of(before, "finished")

    def _check_dropped(
        self, index: int, outcome: RequestOutcome, standing: Standing, before: RequestState
    ) -> None:
        """A drop needs a reason: an end, a preemption, a fall of progress, or the next turn."""
        wrong = outcome.num_accepted or outcome.num_emitted or not outcome.dropped
        if outcome.rewound is None:
            wrong = wrong or standing == "live"
        else:
            loads = self._requests[outcome.request].failed_loads
            confirmed = before.num_computed_tokens - before.num_output_placeholders
            wrong = (
                wrong
                or standing != "live"
                or outcome.rewound >= confirmed
                or all(
                    load.at != index or outcome.rewound > load.num_computed_tokens for load in loads
                )
            )
        if wrong:
            self._note(
                "output dropped or used against its standing",
                f"{outcome}",
                "an output is dropped, and adds nothing, when its request ended, was preempted, "
                f"rewound or is in its next turn; this one is {standing}",
                outcome.request,
            )

    def continue_turns(
        self,
        continued: Iterable[tuple[int, int]],
        states: Mapping[int, RequestState],
        expected: dict[int, Counts],
    ) -> None:
        """Let next turns begin: their tokens take the place of the last one."""
        for request, base in continued:
            turn = self._prompts.begin_turn(request, base)
            before = states.get(request)
            if before is None:
                continue
            paused = expected.get(request) or counts_of(before)
            status, computed, placeholders, drafts, tokens = paused
            if status != "paused" or base != tokens - 1:
                self._note(
                    "turn that begins elsewhere",
                    f"the next turn of request {request} begins at {base}",
                    "it begins when the turn before has ended, in the place of its last token, "
                    f"{tokens - 1}",
                    request,
                )
            tokens = base + turn.num_prompt_tokens
            expected[request] = ("waiting", computed, placeholders, drafts, tokens)

    def _note(self, mechanism: str, observed: str, expected: str, request: int | None) -> None:
        self._log.add(CLAIM, mechanism, observed=observed, expected=expected, request=request)
