"""In which order the events of a scenario come; every target runs them in this one."""

from __future__ import annotations

from collections import defaultdict

from spec.record.scenario import Scenario
from spec.record.steps import Event


def events_by_pass(scenario: Scenario) -> dict[int, list[tuple[Event, int]]]:
    """What comes before each pass: arrivals, then continuations, closes, aborts and resets."""
    events: dict[int, list[tuple[Event, int]]] = defaultdict(list)
    for index, request in enumerate(scenario.requests):
        events[request.arrival].append(("arrival", index))
    for index, request in enumerate(scenario.requests):
        for turn in request.continuations:
            events[turn.arrival].append(("continuation", index))
    for index, request in enumerate(scenario.requests):
        if request.close is not None:
            events[request.close].append(("close", index))
    for index, request in enumerate(scenario.requests):
        if request.abort is not None:
            events[request.abort].append(("abort", index))
    for reset in scenario.resets:
        events[reset].append(("reset", -1))
    return dict(events)
