"""Scenarios in which engines differ without a fault: each is run in more than one healthy way."""

from __future__ import annotations

from dataclasses import replace

from impl.faults.scenarios import OTHER_ROWS
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import FailedLoad, Scenario, ScenarioRequest

OTHER_ROWS_ASYNC = replace(OTHER_ROWS, config=replace(OTHER_ROWS.config, async_depth=1))
"""A request that is refused for good, and a further pass before the update that may end it."""

LOAD_FAILS_OVER_ITEM = Scenario(
    EngineConfig(4, 4, 4, num_kv_blocks=60, prefix_caching=True),
    (
        ScenarioRequest(
            4,
            (Feature(0, 2, "A"),),
            prefix_hits=(3,),
            failed_loads=(FailedLoad(at=0, num_computed_tokens=0),),
        ),
    ),
)
"""A request starts behind its item, and then has to read it: what it found could not be loaded. A
worker that was not sent the item's raw data at first is sent it then."""

WIDE_BLOCK = Scenario(
    EngineConfig(4, 8, 8, num_kv_blocks=10, block_size=8, block_alignment=8, prefix_caching=True),
    (ScenarioRequest(20),),
)
"""No chunk holds a block to which chunks are aligned: releases refuse to start, or run in it."""

WITHOUT_ROWS = Scenario(
    EngineConfig(8, 8, 8, num_kv_blocks=60),
    (ScenarioRequest(6, (Feature(1, 3, "A", (False, False, False)),)),),
)
"""An item of which no token takes a row: nobody has to encode it."""
