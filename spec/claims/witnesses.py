"""Scenarios in which the premises of the claims on the loop happen."""

from __future__ import annotations

from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest

_DRAFTER = {"scheduler_lookahead": 1, "gather_lookahead": 1, "num_speculative_tokens": 1}


def _config(tokens: int, rows: int, **settings: object) -> EngineConfig:
    """Settings with room for everything but the tokens of a pass and the rows of the cache."""
    return EngineConfig(tokens, rows, rows, num_kv_blocks=40, **settings)  # type: ignore[arg-type]


TWO_ITEMS = Scenario(
    _config(4, 8, **_DRAFTER),
    (ScenarioRequest(9, (Feature(0, 4, "A"), Feature(4, 4, "B")), max_tokens=3),),
)
"""Two items beside each other, room for both: the chunk ends where the second begins."""

FULL_CACHE = Scenario(
    _config(4, 4, **_DRAFTER),
    (
        ScenarioRequest(
            9,
            (Feature(0, 4, "A"), Feature(4, 4, "B", (True, True, False, True))),
            max_tokens=2,
        ),
    ),
)
"""Room for one of two items: the second is refused while the first is needed, and then evicts it.
"""

SHORT_SHIFT = Scenario(
    _config(2, 4, gather_lookahead=1, num_speculative_tokens=1),
    (ScenarioRequest(4, (Feature(1, 3, "A", (False, True, True)),)),),
)
"""The first chunk ends inside an item, before its first row, which the drafter reads: the scheduler
does not look as far (``scheduler-looks-as-far`` is broken), and nobody asked for it."""

REPEATED_ITEM = Scenario(
    _config(3, 4), (ScenarioRequest(9, (Feature(0, 4, "X"), Feature(4, 4, "X"))),)
)
"""One item twice in one request."""

WHOLE_ITEMS = Scenario(
    _config(6, 8, whole_items=True),
    (ScenarioRequest(9, (Feature(3, 5, "A"),)),),
)
"""A chunk that would end inside an item which is not to be split."""

PREEMPTION = Scenario(
    EngineConfig(4, 8, 8, num_kv_blocks=13),
    (
        ScenarioRequest(5, (Feature(0, 4, "A"),), max_tokens=3),
        ScenarioRequest(9, (Feature(0, 4, "B"),), max_tokens=4),
    ),
)
"""Two requests that do not fit the KV blocks together: one starts again, with a shorter chunk."""

REFUSED_HEAD = Scenario(
    _config(8, 4, long_prefill_token_threshold=2),
    (
        ScenarioRequest(6, (Feature(0, 4, "A"),), max_tokens=2),
        ScenarioRequest(6, (Feature(0, 4, "B"),), max_tokens=2, arrival=1),
        ScenarioRequest(2, arrival=1, max_tokens=2),
    ),
)
"""A waiting request whose item finds no room, and one behind it that needs none."""

SHORT_CHUNKS = Scenario(
    _config(8, 8, long_prefill_token_threshold=3),
    (
        ScenarioRequest(7, (Feature(4, 2, "A"),), max_tokens=2),
        ScenarioRequest(2, max_tokens=2),
    ),
)
"""Two requests that get all that a threshold allows, in passes that have tokens left."""

LAST_CHUNK = Scenario(
    _config(4, 8, scheduler_lookahead=2, gather_lookahead=1, num_speculative_tokens=2),
    (ScenarioRequest(5, (Feature(0, 4, "A"),), max_tokens=2),),
)
"""A prefill one token longer than a pass: all but two of its tokens run first."""
