"""The smallest known scenario for each fault that the running loop shows.

Each is as small as the fault allows: one row where one suffices, and room for everything else.
"""

from __future__ import annotations

from typing import Any

from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest


def _scenario(
    tokens: int,
    rows: int,
    *requests: ScenarioRequest,
    resets: tuple[int, ...] = (),
    **settings: Any,
) -> Scenario:
    """A scenario with so many tokens in a pass and rows in the cache, and room for the rest."""
    chosen = {"encoder_compute_budget": 8, "num_kv_blocks": 16, **settings}
    config = EngineConfig(max_num_batched_tokens=tokens, encoder_cache_size=rows, **chosen)
    return Scenario(config, requests, resets)


_DRAFTER: dict[str, Any] = {
    "scheduler_lookahead": 1,
    "gather_lookahead": 1,
    "num_speculative_tokens": 1,
}
_TEXT_THEN_ROW = (False, True)
_ROW_THEN_TEXT = (True, False)

_NEIGHBOURS = ScenarioRequest(2, (Feature(0, 1, "A"), Feature(1, 1, "B")))
"""Two items of one token side by side."""

_TWICE = ScenarioRequest(4, (Feature(0, 2, "X"), Feature(2, 2, "X")))
"""One item twice, side by side."""

ONE_TOKEN_OF_TEXT = _scenario(1, 1, ScenarioRequest(1))
ONE_TOKEN_ITEM = _scenario(1, 1, ScenarioRequest(1, (Feature(0, 1, "A"),)))
TWO_ROWS = _scenario(2, 2, ScenarioRequest(2, (Feature(0, 2, "A"),)))
TEXT_BEFORE_ROW = _scenario(2, 1, ScenarioRequest(2, (Feature(0, 2, "A", _TEXT_THEN_ROW),)))
TEXT_BEFORE_ROW_APART = _scenario(1, 1, ScenarioRequest(2, (Feature(0, 2, "A", _TEXT_THEN_ROW),)))
ROW_BEFORE_TEXT_APART = _scenario(1, 1, ScenarioRequest(2, (Feature(0, 2, "A", _ROW_THEN_TEXT),)))

BOUNDARY_MISSING = _scenario(2, 1, _NEIGHBOURS, **_DRAFTER)
"""The second item lies at the boundary and finds no room."""

BOUNDARY_RESIDENT = _scenario(2, 1, ScenarioRequest(3, (Feature(2, 1, "A"),)), **_DRAFTER)
"""An item at the boundary, with room for it."""

LEADING_GAP = _scenario(2, 1, ScenarioRequest(3, (Feature(1, 2, "A", _TEXT_THEN_ROW),)), **_DRAFTER)
"""The chunk ends inside an item, before its only row: that is the drafter's."""

MISS_OF_DRAFTER = _scenario(
    2,
    1,
    ScenarioRequest(3, (Feature(1, 2, "A", _TEXT_THEN_ROW),)),
    gather_lookahead=1,
    num_speculative_tokens=1,
)
"""The same with a scheduler that does not look ahead: ``scheduler-looks-as-far`` is broken."""

NO_ROOM_FOR_SECOND = _scenario(2, 1, _NEIGHBOURS)
NO_ROOM_FOR_SECOND_SHIFTED = _scenario(2, 1, _NEIGHBOURS, scheduler_lookahead=1)
NO_ROOM_FOR_SECOND_OF_LAST = _scenario(2, 1, _NEIGHBOURS, scheduler_lookahead=2)
NO_ROOM_FOR_SECOND_IN_BLOCK = _scenario(2, 1, _NEIGHBOURS, block_alignment=2)

SPLIT_REPETITION = _scenario(3, 2, _TWICE)
"""The first chunk ends inside the second occurrence."""

OTHER_ROWS = _scenario(
    3,
    2,
    ScenarioRequest(1, (Feature(0, 1, "X"),)),
    ScenarioRequest(2, (Feature(0, 2, "X"),)),
)
"""One hash with one row and with two: the assumption ``hash-is-content`` is broken."""

EVICTED_AND_BACK = _scenario(
    2,
    2,
    ScenarioRequest(2, (Feature(0, 1, "X"), Feature(1, 1, "Y"))),
    ScenarioRequest(2, (Feature(0, 1, "Z"), Feature(1, 1, "X")), arrival=1),
)
"""Z evicts X, which comes back in the same pass and evicts Y."""

ABORTED_IN_ITEM = _scenario(1, 2, ScenarioRequest(2, (Feature(0, 2, "A"),), abort=1))

CREDITED_TWICE = _scenario(
    2,
    1,
    ScenarioRequest(1, (Feature(0, 1, "A"),), max_tokens=2),
    ScenarioRequest(1, (Feature(0, 1, "B"),), arrival=2),
    ScenarioRequest(1, (Feature(0, 1, "C"),), arrival=2),
    is_encoder_decoder=True,
)
"""One request decodes once, and then two items come at once."""

ITEM_AFTER_ITEM = _scenario(
    2,
    1,
    ScenarioRequest(1, (Feature(0, 1, "A"),)),
    ScenarioRequest(1, (Feature(0, 1, "B"),)),
    is_encoder_decoder=True,
)

HIT_WITHOUT_BLOCKS = _scenario(
    4,
    1,
    ScenarioRequest(2, (Feature(0, 1, "A"),)),
    ScenarioRequest(2, (Feature(0, 1, "A"),)),
    num_kv_blocks=3,
)
"""The second request hits the first one's item, and the KV blocks hold only one of them."""

STALLED_HEAD = _scenario(
    3,
    1,
    ScenarioRequest(1, (Feature(0, 1, "A"),)),
    ScenarioRequest(1, (Feature(0, 1, "B"),)),
    ScenarioRequest(1),
)

ITEM_OVER_THRESHOLD = _scenario(
    2,
    2,
    ScenarioRequest(2, (Feature(0, 2, "A"),)),
    whole_items=True,
    long_prefill_token_threshold=1,
)

ITEM_AS_LONG_AS_BUDGET = _scenario(
    1, 1, ScenarioRequest(2, (Feature(1, 1, "A"),)), scheduler_lookahead=1, whole_items=True
)
"""One token before an item that takes the whole budget."""

WARM_ITEM = _scenario(
    2, 2, ScenarioRequest(5, (Feature(0, 2, "A"), Feature(3, 2, "A"))), whole_items=True
)
"""The second occurrence is in the book when a chunk would end inside it."""

USED_BY_FINISHED = _scenario(
    2, 1, ScenarioRequest(1, (Feature(0, 1, "A"),)), ScenarioRequest(1, max_tokens=2)
)
"""A pass after the end of a request whose item stays in the book."""

RESET_IN_ITEM = _scenario(1, 2, ScenarioRequest(2, (Feature(0, 2, "A"),)), resets=(1,))

ITEM_AFTER_PREEMPTION = _scenario(
    2,
    1,
    ScenarioRequest(1, max_tokens=2),
    ScenarioRequest(2, (Feature(1, 1, "A"),)),
    num_kv_blocks=3,
    long_prefill_token_threshold=1,
)
"""The second request is preempted before its item, and encodes it after it resumed."""

TWO_LONG_PREFILLS = _scenario(
    6,
    1,
    ScenarioRequest(4),
    ScenarioRequest(4),
    num_kv_blocks=5,
    long_prefill_token_threshold=3,
)
"""Two prompts of two chunks each, and KV blocks for the first chunk of one of them at a time."""

REJECTED_DRAFT = _scenario(2, 1, ScenarioRequest(1, max_tokens=3), **_DRAFTER)
"""One draft, which is rejected, and a further step after it."""

VICTIM_BEFORE = _scenario(
    2,
    3,
    ScenarioRequest(4, (Feature(0, 3, "A"),), priority=2),
    ScenarioRequest(1, arrival=1, max_tokens=2, priority=1),
    ScenarioRequest(2, (Feature(1, 1, "B"),), arrival=1),
    encoder_compute_budget=3,
    num_kv_blocks=6,
    max_num_seqs=3,
    long_prefill_token_threshold=1,
    policy="priority",
)
"""The second request takes the KV blocks of the first, which was to run the last token but one; the
third waits for that token."""

TWO_TEXTS = _scenario(2, 1, ScenarioRequest(1), ScenarioRequest(1))
"""Two requests that could start in one pass."""

TWO_OVER_THRESHOLD = _scenario(
    3, 1, ScenarioRequest(2), ScenarioRequest(1), long_prefill_token_threshold=1
)
"""A prompt longer than the threshold, and somebody else beside it."""

LAST_CHUNK_BEFORE_OTHERS = _scenario(
    3,
    1,
    ScenarioRequest(4),
    ScenarioRequest(1),
    scheduler_lookahead=2,
    gather_lookahead=1,
    num_speculative_tokens=2,
)
"""A pass is one token short of the prompt, and another request waits."""

LAST_CHUNK_RESUMED = _scenario(
    3,
    1,
    ScenarioRequest(1, max_tokens=2),
    ScenarioRequest(4),
    num_kv_blocks=7,
    scheduler_lookahead=2,
    gather_lookahead=1,
    num_speculative_tokens=2,
)
"""The second request is preempted, and starts again where a pass is one token short of it."""
