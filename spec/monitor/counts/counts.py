"""The counts of each request after each step: what passes, updates and events say, and no more.

The claim ``counts-agree``: progress, tokens, placeholders, drafts and statuses here; the rest in
the modules beside this one: ``outcomes``, ``queues``, ``order``, ``batch``, ``calls``,
``answers``, ``events`` and ``worker``.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec.history.history import History
from spec.history.log import FindingLog
from spec.monitor.counts.batch import BatchMonitor
from spec.monitor.counts.calls import CallsMonitor
from spec.monitor.counts.events import EventsMonitor
from spec.monitor.counts.order import OrderMonitor
from spec.monitor.counts.outcomes import COUNTS, ENDED, Counts, OutcomesMonitor, counts_of
from spec.monitor.counts.queues import QueuesMonitor
from spec.monitor.counts.worker import WorkerMonitor
from spec.record.scenario import Scenario
from spec.record.steps import EventSeen, PassSeen, RequestState, Step

CLAIM = "counts-agree"


class CountsMonitor:
    """Judge the state after each step of a run.

    Not judged is what an engine may choose: where requests that were skipped or go on with their
    next turn stand in the waiting queue, when the KV blocks of a request that does not run are
    reclaimed (its progress is then 0), whether what a preempted request has in flight is still
    delivered, the progress of requests that ended, and whether a request that is refused for good
    ends in the pass that refuses it or in an update that follows, of that pass at the latest.

    Args:
        scenario: what was chosen from outside.
        history: the run so far, the step included.
        log: where findings go.
    """

    def __init__(self, scenario: Scenario, history: History, log: FindingLog) -> None:
        self._scenario = scenario
        self._config = scenario.config
        self._history = history
        self._log = log
        self._batch = BatchMonitor(scenario, log)
        self._calls = CallsMonitor(history, log)
        self._queues = QueuesMonitor(scenario.config, log)
        self._worker = WorkerMonitor(history, log)
        self._states: dict[int, RequestState] = {}
        self._events = EventsMonitor(scenario, log)
        self._order = OrderMonitor(scenario, log)
        self._outcomes = OutcomesMonitor(scenario, log)
        self._refused: dict[int, int] = {}
        """Requests refused for good that have not ended, and the pass that refused each first."""

    def observe(self, step: Step) -> None:
        """Judge a step; one that raised stopped in its middle, and ends the run."""
        if step.error is not None:
            return
        self._log.premises[CLAIM] += 1
        granted: dict[int, int] = {}
        states = self._states
        self._calls.observe(step)
        self._worker.observe(step, states)
        self._order.observe(step, states)
        match step.kind:
            case "pass":
                self._events.check_pass(step)
                if self._refused:
                    self._check_refused(step.index - 1 - self._config.async_depth)
                granted = self._batch.observe(step, states)
                self._outcomes.observe_pass(step, states)
                expected = self._after_pass(step)
            case "update":
                expected = self._outcomes.after_update(step, states)
            case "event":
                self._events.check_event(step)
                expected = self._after_event(step)
        after = {state.request: state for state in step.state.requests}
        if self._refused:
            self._end_refused(step, after, expected)
        self._compare(step, after, expected, granted)
        if step.kind == "update" and self._refused:
            self._check_refused(step.index)
        self._queues.check(step.state, statuses_stay=self._history.statuses_stay)
        self._states = after

    def _note(self, mechanism: str, observed: str, expected: str, request: int | None) -> None:
        self._log.add(CLAIM, mechanism, observed=observed, expected=expected, request=request)

    def _after_pass(self, step: PassSeen) -> dict[int, Counts]:
        expected: dict[int, Counts] = {}
        states, is_async = self._states, self._config.async_depth > 0
        for scheduled in step.scheduled:
            request = scheduled.request
            before = states.get(request)
            if before is None:
                continue
            end = scheduled.num_computed_tokens + scheduled.num_scheduled_tokens
            tokens, placeholders, drafts = before.num_tokens, before.num_output_placeholders, 0
            if is_async and end >= tokens + placeholders:
                placeholders = 1 + end - tokens
                drafts = self._config.num_speculative_tokens
            expected[request] = ("running", end, placeholders, drafts, tokens)
        for request in step.preempted:
            if request in self._states:
                tokens = self._states[request].num_tokens
                expected.setdefault(request, ("preempted", 0, 0, 0, tokens))
        for request in step.rejected:
            if request in self._states:
                self._refused.setdefault(request, step.index)
        return expected

    def _end_refused(
        self, step: Step, after: Mapping[int, RequestState], expected: dict[int, Counts]
    ) -> None:
        """Expect the end of each refused request that ended in the step."""
        for request in list(self._refused):
            state = after.get(request)
            if state is None or state.status not in ENDED:
                continue
            # One that is aborted before it was told may count as either.
            is_aborted = step.kind == "event" and step.event == "abort"
            ended = state.status if is_aborted else "rejected"
            counts = expected.get(request) or counts_of(self._states[request])
            expected[request] = (ended, *counts[1:])
            del self._refused[request]

    def _check_refused(self, last: int) -> None:
        """Judge that requests refused by a pass up to ``last`` have ended: its update is over."""
        for request, index in list(self._refused.items()):
            if index <= last:
                self._note(
                    "request refused for good goes on",
                    f"request {request} has not ended after the update of pass {index}",
                    f"pass {index} refused it for good: it ends there or in the update",
                    request,
                )
                del self._refused[request]

    def _after_event(self, step: EventSeen) -> dict[int, Counts]:
        expected: dict[int, Counts] = {}
        before = self._states.get(step.request)
        if step.event == "arrival":
            tokens = self._scenario.requests[step.request].num_prompt_tokens
            expected[step.request] = ("waiting", 0, 0, 0, tokens)
        elif step.event == "abort" and before is not None and before.status not in ENDED:
            expected[step.request] = counts_of(before, "finished")
        elif step.event == "close":
            self._outcomes.close(step.request, self._states, expected)
        self._outcomes.continue_turns(step.continued, self._states, expected)
        return expected

    def _compare(
        self,
        step: Step,
        after: dict[int, RequestState],
        expected: dict[int, Counts],
        granted: dict[int, int],
    ) -> None:
        states_before, limits = self._states, self._outcomes.limits
        size, is_pass = self._config.block_size, step.kind == "pass"
        if not states_before.keys() <= after.keys():
            for request in states_before.keys() - after.keys():
                self._note("request lost", f"no state of {request}", "each that arrived", request)
        for request, state in after.items():
            before, wanted = states_before.get(request), expected.get(request)
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
                if seen != wanted:
                    self._check_counts(seen, wanted, request, is_pass)
            blocks = state.num_blocks
            if before is not None and blocks == before.num_blocks:
                if not is_pass:
                    continue
                room = granted.get(request)
                # Most passes take no block: what is held is enough.
                if state.status == "running" and (
                    room is None or min(room, limits[request]) <= blocks * size
                ):
                    continue
            self._queues.check_blocks(step, before, state, granted.get(request), limits[request])

    def _check_counts(self, seen: Counts, wanted: Counts, request: int, is_pass: bool) -> None:
        """Judge counts that are not what was expected of them."""
        status, computed, placeholders, _, tokens = wanted
        seen_status, _, _, drafts, seen_tokens = seen
        if self._config.num_speculative_tokens == drafts > 0 and (
            status != "running" or self._may_keep_drafts(seen, self._states[request], is_pass)
        ):
            wanted = (status, computed, placeholders, drafts, tokens)
        if seen == wanted or (status in ENDED and (seen_status, seen_tokens) == (status, tokens)):
            return
        unlike = [
            (name, count, wanted_count)
            for name, count, wanted_count in zip(COUNTS, seen, wanted, strict=True)
            if count != wanted_count
        ]
        first, *_ = (name for name, _, _ in unlike)
        self._note(
            f"{first} differs",
            ", ".join(f"{name} {count}" for name, count, _ in unlike),
            ", ".join(f"{name} {count}" for name, _, count in unlike),
            request,
        )

    def _may_keep_drafts(self, seen: Counts, before: RequestState, is_pass: bool) -> bool:
        """Whether a running request may hold drafts that follow no token of its own any more.

        Those of a turn that ended may stay until the next turn runs on, and those proposed with a
        token that a failed load took back: the target verifies them like all others.
        """
        _, computed, _, drafts, _ = seen
        if is_pass:
            return before.status != "running" and before.num_draft_tokens == drafts
        return before.num_draft_tokens == drafts or computed < before.num_computed_tokens

    def _may_move(self, step: Step, before: RequestState | None, state: RequestState) -> bool:
        """Whether a request that nothing happened to only lost its KV blocks, while it waits."""
        if before is not None:
            seen, (status, computed, *others) = counts_of(state), counts_of(before)
            waits = status in ("waiting", "paused") and before.num_blocks > 0
            if step.kind == "pass" and waits and not state.num_blocks:
                computed = 0
            if seen == (status, computed, *others):
                return True
        self._note(
            "request changes without a cause",
            f"{state}",
            "as before: " + ("not arrived" if before is None else f"{before}"),
            state.request,
        )
        return False
