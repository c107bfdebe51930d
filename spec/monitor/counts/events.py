"""Events: what the scenario has, each before its pass.

Part of the claim ``counts-agree``, with :mod:`spec.monitor.counts.counts`.
"""

from __future__ import annotations

from collections import Counter

from spec.history.log import FindingLog
from spec.record.scenario import Scenario
from spec.record.steps import EventSeen, PassSeen

CLAIM = "counts-agree"


class EventsMonitor:
    """Judge which events happen, and when.

    Args:
        scenario: what was chosen from outside.
        log: where findings go.
    """

    def __init__(self, scenario: Scenario, log: FindingLog) -> None:
        self._log = log
        self._due = _events_of(scenario)

    def check_event(self, step: EventSeen) -> None:
        """Judge an event."""
        key = (step.before, step.event, step.request)
        if not self._due[key]:
            self._log.add(
                CLAIM,
                "event that the scenario does not have",
                observed=f"{step.event} of request {step.request} before pass {step.before}",
                expected="the events of the scenario, each before its pass",
            )
        self._due[key] -= 1
        if self._due[key] <= 0:
            del self._due[key]

    def check_pass(self, step: PassSeen) -> None:
        """Judge that no event before the pass was left out."""
        if not self._due:
            return
        for before, event, request in [key for key in self._due if key[0] <= step.index]:
            del self._due[before, event, request]
            self._log.add(
                CLAIM,
                "event left out",
                observed=f"no {event} of request {request} before pass {before}",
                expected="each event of the scenario before its pass",
                request=request if request >= 0 else None,
            )


def _events_of(scenario: Scenario) -> Counter[tuple[int, str, int]]:
    """What comes from outside, and before which pass; a reset is for request -1."""
    events = Counter((reset, "reset", -1) for reset in scenario.resets)
    for index, request in enumerate(scenario.requests):
        events[request.arrival, "arrival", index] += 1
        events.update((turn.arrival, "continuation", index) for turn in request.continuations)
        if request.close is not None:
            events[request.close, "close", index] += 1
        if request.abort is not None:
            events[request.abort, "abort", index] += 1
    return events
