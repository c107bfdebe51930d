"""Where the features of each request lie, as its turns begin."""

from __future__ import annotations

from dataclasses import replace

from spec.record.feature import Feature
from spec.record.scenario import Scenario
from spec.record.steps import Step


class Prompts:
    """Features at their positions in the whole sequence of each request.

    The first turn's features are known from the start; those of a continuation join when a step
    says that it begins, at the base that the step names.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._features = [request.features for request in scenario.requests]
        self._turns = [0] * len(scenario.requests)

    def fork(self) -> Prompts:
        """Another one that goes on from here."""
        fork = Prompts(self._scenario)
        fork._features, fork._turns = list(self._features), list(self._turns)
        return fork

    def observe(self, step: Step) -> None:
        """Note the continuations that begin with a step."""
        if step.kind == "pass":
            return
        for request, base in step.continued:
            turns = self._scenario.requests[request].continuations
            turn = turns[self._turns[request]]
            self._turns[request] += 1
            moved = (replace(f, offset=f.offset + base) for f in turn.features)
            self._features[request] = (*self._features[request], *moved)

    def features(self, request: int) -> tuple[Feature, ...]:
        """The request's features so far; indices as in all steps."""
        return self._features[request]

    def turn(self, request: int) -> int:
        """The turn that the request is in, from 0."""
        return self._turns[request]
