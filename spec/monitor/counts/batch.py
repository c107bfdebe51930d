"""Batches of passes: what runs fits the state before, the budgets, and the KV blocks granted.

Part of the claim ``counts-agree``, with :mod:`spec.monitor.counts.counts`.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec.history.log import FindingLog
from spec.record.scenario import Scenario
from spec.record.steps import PassSeen, RequestState, ScheduledRequest

CLAIM = "counts-agree"


class BatchMonitor:
    """Judge the batches of a run.

    Args:
        scenario: what was chosen from outside.
        log: where findings go.
    """

    def __init__(self, scenario: Scenario, log: FindingLog) -> None:
        self._scenario = scenario
        self._config = scenario.config
        self._log = log
        self._starts = [0] * len(scenario.requests)
        self._unsure: set[int] = set()

    def observe(self, step: PassSeen, states: Mapping[int, RequestState]) -> dict[int, int]:
        """Judge a pass, given the state of each request before it.

        Returns:
            For how many tokens each request was last granted room in KV blocks.
        """
        tokens = sum([scheduled.num_scheduled_tokens for scheduled in step.scheduled])
        if tokens > self._config.max_num_batched_tokens:
            self._note(
                "batch over the token budget",
                f"{tokens} tokens in the batch",
                f"at most {self._config.max_num_batched_tokens}",
            )
        granted: dict[int, int] = {}
        for call in step.calls:
            if call.method == "allocate_slots" and call.answer:
                granted[call.request] = call.budget
        ran = set()
        for scheduled in step.scheduled:
            request = scheduled.request
            ran.add(request)
            room = granted.get(request, 0)
            if not self._goes_on(scheduled, states.get(request), room) or step.preempted:
                self._check_scheduled(scheduled, step, states, room)
        idle = () if ran.issuperset(granted) else granted.keys() - ran
        for request in idle - {*step.preempted, *step.rejected} if idle else ():
            self._note(
                "KV blocks granted to a request that does not run",
                f"request {request} got KV blocks and is not in the batch",
                "blocks for those that run in the pass",
                request,
            )
        if step.preempted and all(
            call.method != "allocate_slots" or call.answer for call in step.calls
        ):
            self._note(
                "preemption without need",
                f"requests {list(step.preempted)} were preempted",
                "a preemption only where KV blocks were refused",
            )
        return granted

    def _note(
        self, mechanism: str, observed: str, expected: str, request: int | None = None
    ) -> None:
        self._log.add(CLAIM, mechanism, observed=observed, expected=expected, request=request)

    def _goes_on(
        self, scheduled: ScheduledRequest, before: RequestState | None, granted: int
    ) -> bool:
        """Whether a running request goes on from where it was, as most of a batch does.

        There is nothing else to judge about it, unless the pass preempted somebody.
        """
        if before is None or before.status != "running":
            return False
        start, tokens = before.num_computed_tokens, before.num_tokens
        placeholders = before.num_output_placeholders
        end = start + scheduled.num_scheduled_tokens
        drafts = end - tokens - placeholders
        return (
            scheduled.num_computed_tokens == start
            and scheduled.num_draft_tokens == (drafts if drafts > 0 else 0)
            and drafts <= before.num_draft_tokens
            and scheduled.num_output_placeholders == placeholders
            and scheduled.prefill_len == tokens
            and not scheduled.started
            and granted >= end
        )

    def _check_scheduled(
        self,
        scheduled: ScheduledRequest,
        step: PassSeen,
        states: Mapping[int, RequestState],
        granted: int,
    ) -> None:
        request = scheduled.request
        before = states.get(request)
        if before is None or before.status in ("paused", "finished", "rejected"):
            self._note(
                "request in the batch that cannot run",
                f"request {request} is in the batch",
                "requests that run or wait",
                request,
            )
            return
        end = scheduled.num_computed_tokens + scheduled.num_scheduled_tokens
        known_tokens = before.num_tokens + before.num_output_placeholders
        started = before.status != "running" or request in step.preempted
        drafts = end - known_tokens if end > known_tokens else 0
        agrees = (
            scheduled.num_draft_tokens == drafts
            and scheduled.num_output_placeholders == before.num_output_placeholders
            and scheduled.prefill_len == before.num_tokens
            and scheduled.started is started
        )
        found = self._prefix(request, before) if started else 0
        reclaimable = started and (
            scheduled.num_computed_tokens == found or request in self._unsure
        )
        if not agrees or not (
            reclaimable or scheduled.num_computed_tokens == before.num_computed_tokens
        ):
            self._note(
                "batch differs from the state before the pass",
                f"{scheduled}",
                f"{drafts} drafts, as before: {before}"
                + (f", or progress {found}" if started else ""),
                request,
            )
        if started:
            self._check_start(scheduled, before, found)
        # A request that starts may be padded with drafts, so that a batch of decodes is even.
        padding = self._config.num_speculative_tokens if started else 0
        if scheduled.num_draft_tokens > max(before.num_draft_tokens, padding):
            self._note(
                "drafts that nobody proposed",
                f"{scheduled.num_draft_tokens} drafts of request {request} run",
                f"at most the {before.num_draft_tokens} that waited",
                request,
            )
        if granted < end:
            self._note(
                "request runs without KV blocks",
                f"request {request} runs to {end}; room was made for {granted} tokens",
                f"a granted allocate_slots for {end} tokens in the pass",
                request,
            )

    def _check_start(self, scheduled: ScheduledRequest, before: RequestState, found: int) -> None:
        """Judge a start from nothing, which finds the prefix that the world answers."""
        request = scheduled.request
        if before.num_computed_tokens:
            if scheduled.num_computed_tokens == found == before.num_computed_tokens:
                # It went on, or its blocks were reclaimed in the pass and it found as many tokens.
                self._unsure.add(request)
            elif scheduled.num_computed_tokens == found:
                self._starts[request] += 1
            return
        self._starts[request] += 1
        if scheduled.num_computed_tokens != found and request not in self._unsure:
            self._note(
                "prefix that was not found",
                f"request {request} starts at {scheduled.num_computed_tokens}",
                f"it starts at {found}",
                request,
            )

    def _prefix(self, request: int, before: RequestState) -> int:
        """Tokens that the world lets a request find when it starts from nothing."""
        hits, starts = self._scenario.requests[request].prefix_hits, self._starts[request]
        return min(hits[starts], before.num_tokens - 1) if starts < len(hits) else 0
