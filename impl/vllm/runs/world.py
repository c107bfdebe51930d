"""What the world answers in a run of the real engine: drafts, prefixes found and failed loads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from impl.vllm.runs.connector_hooks import Hooks
from spec.record.scenario import Scenario


class World:
    """Keeps which of a scenario's answers were given.

    Args:
        scenario: the answers.
        indices: index of each request, by id.
    """

    def __init__(self, scenario: Scenario, indices: Mapping[str, int]) -> None:
        self._scenario = scenario
        self._indices = indices
        self._verified = [0] * len(scenario.requests)
        self._started = [0] * len(scenario.requests)
        self._loaded: dict[int, int] = {}

    def hooks(self) -> Hooks:
        """What a store of KV asks."""
        return Hooks(self._hit, self._start)

    def _hit(self, request: Any) -> int:
        index = self._indices[request.request_id]
        hits = self._scenario.requests[index].prefix_hits
        start = self._started[index]
        hit = hits[start] if start < len(hits) else 0
        last: int = request.num_tokens - 1
        return min(hit, last)

    def _start(self, request: Any, num_loaded_tokens: int) -> None:
        index = self._indices[request.request_id]
        if request.num_computed_tokens == 0:
            self._started[index] += 1
        self._loaded[index] = num_loaded_tokens

    def take_loads(self) -> dict[int, int]:
        """Tokens loaded for each request that started since this was last asked."""
        loaded, self._loaded = self._loaded, {}
        return {index: tokens for index, tokens in loaded.items() if tokens}

    def accepted(self, index: int, num_draft_tokens: int) -> int:
        """How many drafts the target accepts in the request's next step that verifies some."""
        answers = self._scenario.requests[index].accepted_drafts
        verified = self._verified[index]
        return min(answers[verified], num_draft_tokens) if verified < len(answers) else 0

    def verify(self, index: int) -> None:
        """An answer on drafts was taken."""
        self._verified[index] += 1

    def failed_load(self, pass_index: int, index: int, num_loaded_tokens: int) -> int | None:
        """What is left of a request's progress when the pass's load fails (tokens).

        Only KV that was loaded in this very pass can turn out not to be there: a store that loads
        within a step reports its failures with that step.
        """
        for load in self._scenario.requests[index].failed_loads:
            if load.at == pass_index and load.num_computed_tokens < num_loaded_tokens:
                return load.num_computed_tokens
        return None
