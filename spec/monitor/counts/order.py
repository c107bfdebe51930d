"""Who goes first: the order of victims, of admissions and of the waiting queue.

Part of the claim ``counts-agree``, with :mod:`spec.monitor.counts.counts`.

Releases keep requests that were looked at and skipped in queues of their own, or those that hold KV
blocks, and some let the next turn of a streaming request count as a new arrival. Only what every
release has in common is judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spec.history.admission import by_admission
from spec.history.log import FindingLog
from spec.record.scenario import Scenario
from spec.record.steps import EngineState, PassSeen, RequestState, Step

CLAIM = "counts-agree"


class OrderMonitor:
    """Judge the order of requests in each step of a run.

    Args:
        scenario: what was chosen from outside.
        log: where findings go.
    """

    def __init__(self, scenario: Scenario, log: FindingLog) -> None:
        self._requests = scenario.requests
        self._by_priority = scenario.config.policy == "priority"
        self._log = log
        self._running: tuple[int, ...] = ()
        self._arrivals: dict[int, int] = {}
        self._started: set[int] = set()
        self._not_looked_at: list[int] = []
        """Waiting requests that no pass has looked at since they were put there, in order."""

    def observe(self, step: Step, states: Mapping[int, RequestState]) -> None:
        """Judge a step, given the state of each request before it."""
        waiting = step.state.waiting
        if step.kind == "event":
            if step.event == "arrival":
                self._arrivals[step.request] = len(self._arrivals)
                self._not_looked_at.append(step.request)
                self._check_waiting(step.state)
        elif step.kind == "pass":
            victims = [r for r in step.preempted if r not in step.rejected]
            if victims:
                self._check_victims(victims, step)
            if not victims or any(call.request not in self._running for call in step.calls):
                self._not_looked_at.clear()
            else:
                # A pass that preempted somebody looks at no waiting request.
                back = [request for request in self._running if request in victims]
                self._not_looked_at[:0] = back
            self._check_starts(step, states)
            self._check_waiting(step.state)
        if step.kind != "pass" and (step.continued or self._not_looked_at):
            gone = {request for request, _ in step.continued}
            if gone or any(request not in waiting for request in self._not_looked_at):
                self._not_looked_at = [
                    request
                    for request in self._not_looked_at
                    if request in waiting and request not in gone
                ]
        self._running = step.state.running

    def _goes_before(self, first: int, second: int) -> bool:
        """Whether the priority policy lets the first request go before the second, or may."""
        earlier, other = self._requests[first], self._requests[second]
        if earlier.priority != other.priority:
            return earlier.priority < other.priority
        if earlier.streams or other.streams:
            return True
        return self._arrivals.get(first, first) < self._arrivals.get(second, second)

    def _check_victims(self, victims: Sequence[int], step: PassSeen) -> None:
        ran = [request for request in self._running if request not in step.rejected]
        stayed = [request for request in ran if request not in victims]
        if self._by_priority:
            wrong = any(
                not self._goes_before(request, victim) for victim in victims for request in stayed
            )
            expected = "the one that comes last by priority and arrival"
        else:
            wrong = ran[: len(stayed)] != stayed
            expected = "the last of the running requests"
        if wrong:
            self._note(
                "victim out of turn",
                f"requests {list(victims)} were preempted; {stayed} stayed",
                f"{expected} is preempted first",
            )

    def _check_starts(self, step: PassSeen, states: Mapping[int, RequestState]) -> None:
        started = [scheduled.request for scheduled in step.scheduled if scheduled.started]
        if len(started) > 1:
            # A worker may order its batch by the length of ranges.
            started = [entry.request for entry in by_admission(step) if entry.started]
            if self._by_priority:
                free = [r for r in started if r in states and not states[r].num_blocks]
                self._check_order("requests start out of turn", free)
            else:
                self._check_arrivals("requests start out of turn", started)
        self._started.update(started)

    def _check_waiting(self, state: EngineState) -> None:
        waiting = state.waiting
        if len(waiting) < 2:
            return
        mechanism = "waiting queue out of order"
        still_waiting = [request for request in self._not_looked_at if request in waiting]
        if self._by_priority:
            self._check_order(
                mechanism, [request for request in waiting if request in still_waiting]
            )
            return
        if [request for request in waiting if request in still_waiting] != still_waiting:
            self._note(
                mechanism,
                f"waiting: {list(waiting)}",
                f"{still_waiting} in this order: preempted requests before those that arrived",
            )
        self._check_arrivals(mechanism, waiting)

    def _check_order(self, mechanism: str, requests: Sequence[int]) -> None:
        for place, request in enumerate(requests):
            if not all(self._goes_before(request, other) for other in requests[place + 1 :]):
                self._note(
                    mechanism,
                    f"in this order: {list(requests)}",
                    "the lowest priority number first, and of equals the one that arrived first",
                    request,
                )
                return

    def _check_arrivals(self, mechanism: str, requests: Sequence[int]) -> None:
        """Requests that never ran keep the order in which they arrived."""
        new = [
            request
            for request in requests
            if request not in self._started and request in self._arrivals
        ]
        wanted = sorted(new, key=self._arrivals.__getitem__)
        if new != wanted:
            self._note(mechanism, f"in this order: {new}", f"as they arrived: {wanted}")

    def _note(
        self, mechanism: str, observed: str, expected: str, request: int | None = None
    ) -> None:
        self._log.add(CLAIM, mechanism, observed=observed, expected=expected, request=request)
