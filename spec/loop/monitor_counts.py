"""The counts of each request after each step: what passes, updates and events say, and no more.

The claim ``counts-agree``: progress, tokens, placeholders, drafts and statuses here; the rest in
:mod:`spec.loop.monitor_queues`, ``monitor_order``, ``monitor_batch``, ``monitor_calls``,
``monitor_answers`` and ``monitor_worker``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from spec.loop.history import History
from spec.loop.in_flight import InFlight, Standing
from spec.loop.log import FindingLog
from spec.loop.monitor_answers import AnswersMonitor
from spec.loop.monitor_batch import BatchMonitor
from spec.loop.monitor_calls import CallsMonitor
from spec.loop.monitor_events import EventsMonitor
from spec.loop.monitor_order import OrderMonitor
from spec.loop.monitor_queues import QueuesMonitor
from spec.loop.monitor_worker import WorkerMonitor
from spec.loop.scenario import Scenario
from spec.loop.steps import (
    EventSeen,
    Outcome,
    PassSeen,
    RequestState,
    ScheduledRequest,
    Status,
    Step,
    UpdateSeen,
)

CLAIM = "counts-agree"

_ENDED = ("finished", "rejected")


class Counts(NamedTuple):
    """A request's state without its KV blocks."""

    status: Status
    num_computed_tokens: int
    num_output_placeholders: int
    num_draft_tokens: int
    num_tokens: int


def _counts(state: RequestState) -> Counts:
    return Counts(
        state.status,
        state.num_computed_tokens,
        state.num_output_placeholders,
        state.num_draft_tokens,
        state.num_tokens,
    )


class CountsMonitor:
    """Judge the state after each step of a run.

    Not judged is what an engine may choose: where requests that were skipped or go on with their
    next turn stand in the waiting queue, when the KV blocks of a request that does not run are
    reclaimed (its progress is then 0), whether what a preempted request has in flight is still
    delivered, and the progress of requests that ended.

    Args:
        scenario: what was chosen from outside.
        history: the run so far, the step included.
        log: where findings go.
    """

    def __init__(self, scenario: Scenario, history: History, log: FindingLog) -> None:
        self._scenario = scenario
        self._config = scenario.config
        self._log = log
        self._batch = BatchMonitor(scenario, log)
        self._calls = CallsMonitor(history, log)
        self._queues = QueuesMonitor(scenario.config, log)
        self._worker = WorkerMonitor(history, log)
        self._states: dict[int, RequestState] = {}
        self._in_flight = InFlight()
        self._turns = [0] * len(scenario.requests)
        self._limits = [r.num_prompt_tokens + r.max_tokens for r in scenario.requests]
        self._events = EventsMonitor(scenario, log)
        self._order = OrderMonitor(scenario, log)
        self._answers = AnswersMonitor(scenario, log)

    def observe(self, step: Step) -> None:
        """Judge a step; one that raised stopped in its middle, and ends the run."""
        if step.error is not None:
            return
        self._log.premises[CLAIM] += 1
        granted: dict[int, int] = {}
        self._calls.observe(step)
        self._worker.observe(step, self._states)
        self._order.observe(step, self._states)
        match step.kind:
            case "pass":
                self._events.check_pass(step)
                granted = self._batch.observe(step, self._states)
                self._answers.observe_pass(step, self._states)
                expected = self._after_pass(step)
            case "update":
                expected = self._after_update(step)
            case "event":
                self._events.check_event(step)
                expected = self._after_event(step)
        after = {state.request: state for state in step.state.requests}
        self._compare(step, after, expected, granted)
        self._queues.check(step.state)
        self._states = after
        if step.kind == "pass":
            self._in_flight.add(step)

    def _note(self, mechanism: str, observed: str, expected: str, request: int | None) -> None:
        self._log.add(CLAIM, mechanism, observed=observed, expected=expected, request=request)

    def _after_pass(self, step: PassSeen) -> dict[int, Counts]:
        expected = {}
        is_async = self._config.async_depth > 0
        for scheduled in step.scheduled:
            before = self._states.get(scheduled.request)
            if before is None:
                continue
            end = scheduled.num_computed_tokens + scheduled.num_scheduled_tokens
            past = end - before.num_tokens - before.num_output_placeholders
            placeholders, drafts = before.num_output_placeholders, 0
            if is_async and past >= 0:
                placeholders += 1 + past
                drafts = self._config.num_speculative_tokens
            expected[scheduled.request] = Counts(
                "running", end, placeholders, drafts, before.num_tokens
            )
        for request in step.preempted:
            if request in self._states:
                tokens = self._states[request].num_tokens
                expected.setdefault(request, Counts("preempted", 0, 0, 0, tokens))
        for request in step.rejected:
            if request in self._states:
                expected[request] = _counts(self._states[request])._replace(status="rejected")
        return expected

    def _after_event(self, step: EventSeen) -> dict[int, Counts]:
        expected: dict[int, Counts] = {}
        before = self._states.get(step.request)
        if step.event == "arrival":
            tokens = self._scenario.requests[step.request].num_prompt_tokens
            expected[step.request] = Counts("waiting", 0, 0, 0, tokens)
        elif step.event == "abort" and before is not None and before.status not in _ENDED:
            expected[step.request] = _counts(before)._replace(status="finished")
        self._continue(step.continued, expected)
        return expected

    def _after_update(self, step: UpdateSeen) -> dict[int, Counts]:
        batch = self._in_flight.pop(step.index)
        expected: dict[int, Counts] = {}
        for outcome in step.outcomes:
            entry, before = batch.pop(outcome.request, None), self._states.get(outcome.request)
            if entry is None or before is None:
                continue
            after = self._after_outcome(step.index, outcome, entry[0], entry[1], before)
            expected[outcome.request] = after
        for request in batch:
            self._note(
                "request of the pass without an outcome",
                f"the update of pass {step.index} has no outcome of request {request}",
                "one for each request that ran",
                request,
            )
        self._continue(step.continued, expected)
        return expected

    def _after_outcome(
        self,
        index: int,
        outcome: Outcome,
        entry: ScheduledRequest,
        standing: Standing,
        before: RequestState,
    ) -> Counts:
        request = outcome.request
        if before.status in _ENDED:
            standing = "dead"
        self._answers.check_load(index, outcome, standing, before)
        if not outcome.dropped:
            self._answers.check_accepted(outcome, entry)
        if outcome.dropped or standing == "dead":
            self._check_dropped(index, outcome, standing, before)
            if outcome.rewound is None:
                return _counts(before)
            self._in_flight.end(request)
            return _counts(before)._replace(
                num_computed_tokens=outcome.rewound, num_output_placeholders=0, num_draft_tokens=0
            )
        end = entry.num_computed_tokens + entry.num_scheduled_tokens
        samples = end >= entry.prefill_len + entry.num_output_placeholders
        sampled = 1 + outcome.num_accepted if samples else 0
        emitted = min(sampled, self._limits[request] - before.num_tokens)
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
            if samples and not self._config.async_depth:
                drafts = self._config.num_speculative_tokens
        if tokens < self._limits[request]:
            return Counts(before.status, computed, placeholders, drafts, tokens)
        self._in_flight.end(request)
        if self._turns[request] < len(self._scenario.requests[request].continuations):
            return Counts("paused", computed - placeholders, 0, 0, tokens)
        return Counts("finished", computed, placeholders, drafts, tokens)

    def _check_dropped(
        self, index: int, outcome: Outcome, standing: Standing, before: RequestState
    ) -> None:
        """A drop needs a reason: an end, a preemption, a fall of progress, or the next turn."""
        wrong = outcome.num_accepted or outcome.num_emitted or not outcome.dropped
        if outcome.rewound is None:
            wrong = wrong or standing == "live"
        else:
            loads = self._scenario.requests[outcome.request].failed_loads
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

    def _continue(self, continued: Iterable[tuple[int, int]], expected: dict[int, Counts]) -> None:
        """Let next turns begin: their tokens take the place of the last one."""
        for request, base in continued:
            turn = self._scenario.requests[request].continuations[self._turns[request]]
            self._turns[request] += 1
            self._limits[request] = base + turn.num_prompt_tokens + turn.max_tokens
            before = self._states.get(request)
            if before is None:
                continue
            paused = expected.get(request) or _counts(before)
            if paused.status != "paused" or base != paused.num_tokens - 1:
                self._note(
                    "turn that begins elsewhere",
                    f"the next turn of request {request} begins at {base}",
                    "it begins when the turn before has ended, in the place of its last token, "
                    f"{paused.num_tokens - 1}",
                    request,
                )
            expected[request] = paused._replace(
                status="waiting", num_tokens=base + turn.num_prompt_tokens
            )

    def _compare(
        self,
        step: Step,
        after: dict[int, RequestState],
        expected: dict[int, Counts],
        granted: dict[int, int],
    ) -> None:
        known = self._states
        for request in known.keys() - after.keys():
            self._note("request lost", f"no state of {request}", "each that arrived", request)
        for request, state in after.items():
            before, wanted = known.get(request), expected.get(request)
            if wanted is None:
                if before is not None and (state is before or state == before):
                    continue
                if not self._may_move(step, before, state):
                    continue
            else:
                seen = (
                    state.status,
                    state.num_computed_tokens,
                    state.num_output_placeholders,
                    state.num_draft_tokens,
                    state.num_tokens,
                )
                proposed = self._config.num_speculative_tokens
                if wanted.status != "running" and proposed == state.num_draft_tokens > 0:
                    # Drafts of a turn that ended may stay: nobody schedules them.
                    wanted = wanted._replace(num_draft_tokens=proposed)
                if seen != wanted and not (
                    wanted.status in _ENDED
                    and (state.status, state.num_tokens) == (wanted.status, wanted.num_tokens)
                ):
                    self._note_difference(Counts(*seen), wanted, request)
            if step.kind == "pass" or before is None or state.num_blocks != before.num_blocks:
                limit = self._limits[request]
                self._queues.check_blocks(step, before, state, granted.get(request), limit)

    def _note_difference(self, seen: Counts, wanted: Counts, request: int) -> None:
        names = [n for n, a, b in zip(Counts._fields, seen, wanted, strict=True) if a != b]
        self._note(
            f"{names[0]} differs",
            ", ".join(f"{name} {getattr(seen, name)}" for name in names),
            ", ".join(f"{name} {getattr(wanted, name)}" for name in names),
            request,
        )

    def _may_move(self, step: Step, before: RequestState | None, state: RequestState) -> bool:
        """Whether a request that nothing happened to only lost its KV blocks, while it waits."""
        if before is not None:
            seen, wanted = _counts(state), _counts(before)
            waits = before.status in ("waiting", "paused") and before.num_blocks > 0
            if step.kind == "pass" and waits and not state.num_blocks:
                wanted = wanted._replace(num_computed_tokens=0)
            if seen == wanted:
                return True
        self._note(
            "request changes without a cause",
            f"{state}",
            "as before: " + ("not arrived" if before is None else f"{before}"),
            state.request,
        )
        return False
