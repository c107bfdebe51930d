"""Where the features of each request lie and where its turn ends, as turns begin."""

from __future__ import annotations

from dataclasses import replace

from spec.record.feature import Feature
from spec.record.scenario import Continuation, Scenario
from spec.record.steps import Step


class Prompts:
    """Features at their positions in the whole sequence of each request.

    The first turn's features are known from the start; those of a continuation join when a step
    says that it begins, at the base that the step names.

    Attributes:
        turn_ends: for each request, the tokens at which its turn ends at the latest.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._features = [request.features for request in scenario.requests]
        self._turns = [0] * len(scenario.requests)
        self.turn_ends = [r.num_prompt_tokens + r.max_tokens for r in scenario.requests]
        self._grows = any(request.continuations for request in scenario.requests)

    def fork(self) -> Prompts:
        """Another one that goes on from here; itself where nothing can change."""
        if not self._grows:
            return self
        fork = Prompts(self._scenario)
        fork._features, fork._turns = list(self._features), list(self._turns)
        fork.turn_ends = list(self.turn_ends)
        return fork

    def observe(self, step: Step) -> None:
        """Note the continuations that begin with a step."""
        if step.kind == "pass" or not step.continued:
            return
        for request, base in step.continued:
            self.begin_turn(request, base)

    def begin_turn(self, request: int, base: int) -> Continuation:
        """Begin the request's next turn, whose tokens follow the position ``base``."""
        turn = self._scenario.requests[request].continuations[self._turns[request]]
        self._turns[request] += 1
        moved = (replace(f, offset=f.offset + base) for f in turn.features)
        self._features[request] = (*self._features[request], *moved)
        self.turn_ends[request] = base + turn.num_prompt_tokens + turn.max_tokens
        return turn

    def features(self, request: int) -> tuple[Feature, ...]:
        """The request's features so far; indices as in all steps."""
        return self._features[request]

    def turn(self, request: int) -> int:
        """The turn that the request is in, from 0."""
        return self._turns[request]
