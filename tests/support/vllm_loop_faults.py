"""The public faults that show in the loop of a real release, as scenarios to be run again.

``last_affected`` and ``first_good`` are the releases next to each other among those looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from spec.claims.witnesses import REPEATED_ITEM
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest


@dataclass(frozen=True)
class RecordedFault:
    """A public fault and where it is found.

    Attributes:
        name: as in the list of switches.
        claim: the claim that its scenario contradicts.
        last_affected: the last release on which it shows.
        first_good: the first release on which it does not; ``None`` while there is none.
        first_affected: the first release on which it shows, where an earlier one was seen without.
    """

    name: str
    claim: str
    scenario: Scenario
    last_affected: str
    first_good: str | None
    first_affected: str | None = None


def _config(tokens: int, rows: int, **settings: object) -> EngineConfig:
    return EngineConfig(tokens, rows, rows, num_kv_blocks=60, **settings)  # type: ignore[arg-type]


_DRAFTER = {"scheduler_lookahead": 1, "gather_lookahead": 1, "num_speculative_tokens": 1}
_MASK = (False, False, True, True)

_BOUNDARY = Scenario(
    _config(4, 8, **_DRAFTER), (ScenarioRequest(12, (Feature(4, 4, "A"),), max_tokens=2),)
)
_MASKED_GAP = Scenario(
    _config(6, 8, **_DRAFTER), (ScenarioRequest(12, (Feature(4, 4, "A", _MASK),), max_tokens=2),)
)
_GAP_OF_ONE = Scenario(
    _config(8, 4, **_DRAFTER),
    (ScenarioRequest(12, (Feature(0, 4, "A"), Feature(5, 4, "B")), max_tokens=2),),
)
_NEIGHBOURS = Scenario(
    _config(8, 4, **_DRAFTER),
    (ScenarioRequest(10, (Feature(0, 4, "A"), Feature(4, 4, "B")), max_tokens=2),),
)
_ALIGNED = Scenario(
    _config(8, 6, block_alignment=8, block_size=8),
    (ScenarioRequest(20, (Feature(0, 5, "A"), Feature(6, 5, "B"))),),
)
_ALIGNED_DRAFTER = Scenario(
    _config(8, 6, block_alignment=8, block_size=8, **_DRAFTER), _ALIGNED.requests
)
_SAME_PASS = Scenario(
    _config(6, 4), (ScenarioRequest(9, (Feature(0, 4, "X"), Feature(4, 4, "X"))),)
)
_NOTICE = Scenario(
    _config(16, 8),
    (
        ScenarioRequest(5, (Feature(0, 4, "X"),)),
        ScenarioRequest(5, (Feature(0, 4, "Y"),)),
        ScenarioRequest(5, (Feature(0, 4, "Z"),), arrival=2),
        ScenarioRequest(5, (Feature(0, 4, "X"),), arrival=2),
    ),
)
_OWN_SIZE = Scenario(
    _config(8, 8),
    (
        ScenarioRequest(5, (Feature(0, 2, "X"),)),
        ScenarioRequest(5, (Feature(0, 4, "X"),), arrival=1),
    ),
)
_REFUSED_HEAD = Scenario(
    _config(8, 10),
    (
        ScenarioRequest(12, (Feature(0, 10, "A"),), max_tokens=2),
        ScenarioRequest(6, (Feature(0, 4, "B"),), max_tokens=2, arrival=1),
        ScenarioRequest(2, arrival=1, max_tokens=2),
    ),
)
_CREDIT = Scenario(
    _config(4, 4, is_encoder_decoder=True),
    (ScenarioRequest(2, (Feature(0, 4, "A"),), max_tokens=4),),
)
_SPLIT_AT_START = Scenario(
    _config(4, 8, whole_items=True),
    (
        ScenarioRequest(2, max_tokens=5),
        ScenarioRequest(6, (Feature(0, 4, "A"),), arrival=1),
    ),
)
_WARM_SPLIT = Scenario(
    _config(4, 8, whole_items=True),
    (
        ScenarioRequest(8, (Feature(0, 4, "A"),)),
        ScenarioRequest(8, (Feature(2, 4, "A"),), arrival=4),
    ),
)

_VICTIM_WITHOUT_TOKENS = Scenario(
    EngineConfig(4, 1, 1, num_kv_blocks=6, long_prefill_token_threshold=1, policy="priority"),
    (
        ScenarioRequest(3, (Feature(2, 1, "A"),), priority=1),
        ScenarioRequest(1, max_tokens=3, arrival=1),
        ScenarioRequest(3, (Feature(0, 3, "B", (True, False, False)),), arrival=1),
    ),
)
"""The first request is refused its item, gets no tokens and then loses its KV blocks to the second;
the third stands behind both."""

RECORDED = (
    RecordedFault(
        "no-boundary-tolerance", "boundary-miss-tolerated", _BOUNDARY, "0.23.0", "0.24.0"
    ),
    RecordedFault("boundary-never-encoded", "need-agrees", _BOUNDARY, "0.27.1", "0.28.0"),
    RecordedFault(
        "masked-leading-gap", "drafter-resident-or-boundary", _MASKED_GAP, "0.27.1", "0.28.0"
    ),
    RecordedFault("deferred-free-margin", "no-stall", _GAP_OF_ONE, "0.32.0", "0.33.0", "0.24.0"),
    RecordedFault("shifted-cut", "no-stall", _NEIGHBOURS, "0.32.0", "0.33.0"),
    RecordedFault("align-after-cut", "no-stall", _ALIGNED, "0.27.1", "0.28.0"),
    RecordedFault("align-after-cut", "no-stall", _ALIGNED_DRAFTER, "0.32.0", "0.33.0"),
    RecordedFault("stalled-head-ends-pass", "work-conserving", _REFUSED_HEAD, "0.32.0", "0.33.0"),
    RecordedFault("free-before-execution", "dropped-in-update", _BOUNDARY, "0.19.1", "0.20.2"),
    RecordedFault(
        "dropped-at-first-occurrence", "held-until-last-use", REPEATED_ITEM, "0.28.0", "0.29.0"
    ),
    RecordedFault(
        "same-step-duplicate-unreferenced", "held-until-last-use", _SAME_PASS, "0.31.0", "0.32.0"
    ),
    RecordedFault("stale-eviction-notice", "evicted-not-live", _NOTICE, "0.27.1", "0.28.0"),
    RecordedFault("own-size-free", "fresh-tensor", _OWN_SIZE, "0.30.0", "0.31.0"),
    RecordedFault("encoder-decoder-credit", "slots-conserved", _CREDIT, "0.33.0", None),
    RecordedFault("item-split-at-start", "item-whole", _SPLIT_AT_START, "0.32.0", "0.33.0"),
    RecordedFault(
        "skips-behind-victim", "pass-uses-budget", _VICTIM_WITHOUT_TOKENS, "0.27.1", "0.28.0"
    ),
    RecordedFault("warm-item-split", "item-whole", _WARM_SPLIT, "0.31.0", "0.32.0"),
)
"""Not here: ``no-scheduler-shift`` and ``waiting-keeps-references`` are gone since 0.14, before the
releases covered; ``rollback-ignores-shift`` since 0.17; ``free-ignores-placeholders`` cannot be
reached in a loop while features lie in the prompt; ``negative-mask-index`` is about empty ranges,
which no gather asks for; the last two are checked on the functions."""
