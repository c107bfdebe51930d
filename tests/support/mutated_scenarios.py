"""Small scenarios that together show every field of a trace in use."""

from __future__ import annotations

from typing import Any

from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Continuation, FailedLoad, Scenario, ScenarioRequest

_DRAFTER: dict[str, Any] = {
    "scheduler_lookahead": 1,
    "gather_lookahead": 1,
    "num_speculative_tokens": 1,
}
_MASK = (True, True, False, True)


def _config(tokens: int, rows: int, blocks: int = 40, **settings: Any) -> EngineConfig:
    return EngineConfig(tokens, rows, rows, blocks, **settings)


SCENARIOS: dict[str, Scenario] = {
    "drafter": Scenario(
        _config(6, 8, **_DRAFTER),
        (
            ScenarioRequest(
                9, (Feature(0, 4, "A"), Feature(4, 4, "B", _MASK)), 0, 4, accepted_drafts=(1, 0)
            ),
            ScenarioRequest(6, (Feature(1, 4, "A"),), 1, 2),
        ),
    ),
    "async drafts": Scenario(
        _config(5, 4, async_depth=1, block_size=2, **_DRAFTER),
        (
            ScenarioRequest(
                9, (Feature(0, 4, "A"), Feature(4, 4, "B", _MASK)), 0, 5, accepted_drafts=(1, 0, 1)
            ),
            ScenarioRequest(3, (), 2, 3, accepted_drafts=(0, 1)),
        ),
    ),
    "preemption": Scenario(
        _config(4, 8, 13),
        (
            ScenarioRequest(5, (Feature(0, 4, "A"),), max_tokens=3),
            ScenarioRequest(9, (Feature(0, 4, "B"),), max_tokens=4),
        ),
    ),
    "async preemption by priority": Scenario(
        _config(6, 8, 10, async_depth=1, policy="priority"),
        (
            ScenarioRequest(5, (Feature(0, 4, "A"),), max_tokens=4, priority=1),
            ScenarioRequest(5, (Feature(0, 4, "B"),), 1, 4, priority=0),
        ),
    ),
    "streaming": Scenario(
        _config(6, 8, 20),
        (
            ScenarioRequest(
                5,
                (Feature(0, 4, "A"),),
                max_tokens=2,
                continuations=(
                    Continuation(1, 4, (Feature(0, 3, "B"),), 2),
                    Continuation(9, 3, (), 1),
                ),
            ),
            ScenarioRequest(3, (Feature(0, 2, "C"),), 2, 2),
        ),
    ),
    "prefix hit and failed load": Scenario(
        _config(4, 8, prefix_caching=True),
        (
            ScenarioRequest(
                9,
                (Feature(0, 4, "A"), Feature(5, 3, "B")),
                max_tokens=3,
                prefix_hits=(3,),
                failed_loads=(FailedLoad(2, 2),),
            ),
            ScenarioRequest(5, (Feature(1, 3, "B"),), 1, 2, prefix_hits=(1,)),
        ),
    ),
    "encoder-decoder": Scenario(
        _config(3, 6, is_encoder_decoder=True),
        (
            ScenarioRequest(3, (Feature(0, 4, "A"),), max_tokens=3),
            ScenarioRequest(2, (Feature(0, 2, "B"),), 1, 2),
            ScenarioRequest(2, (Feature(0, 2, "B"),), 1, 2),
        ),
    ),
    "shared hashes and evictions": Scenario(
        _config(4, 4),
        (
            ScenarioRequest(6, (Feature(0, 2, "X"), Feature(2, 2, "X"), Feature(4, 2, "Y"))),
            ScenarioRequest(5, (Feature(0, 2, "Z"), Feature(2, 2, "X")), 1, 2),
        ),
    ),
    "abort and reset": Scenario(
        _config(4, 8),
        (
            ScenarioRequest(7, (Feature(0, 6, "A"),), abort=1, max_tokens=5),
            ScenarioRequest(5, (Feature(0, 3, "C"),), 1, 1),
        ),
        resets=(2,),
    ),
    "one hash with two sizes": Scenario(
        _config(4, 8),
        (
            ScenarioRequest(5, (Feature(0, 3, "A"),)),
            ScenarioRequest(5, (Feature(0, 2, "A"),), 1),
        ),
    ),
}

WITH_TENSORS = ("drafter", "shared hashes and evictions")
"""Those that also run with tensors, so that the merge is seen."""
