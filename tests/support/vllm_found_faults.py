"""Faults of vLLM 0.33.0 that were found here and that are on no public list, as scenarios.

Each was read in that release's code as well: ``where`` names the place. What an engine of several
machines would do, and how often the settings meet in practice, was not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Continuation, FailedLoad, Scenario, ScenarioRequest

RELEASE = "0.33.0"


@dataclass(frozen=True)
class FoundFault:
    """A fault of the release.

    Attributes:
        claim: the claim that its scenario contradicts.
        sentence: what goes wrong.
        where: the function of the release that decides it.
        reached: the settings that reach it.
        runners: the runners that show it.
    """

    name: str
    claim: str
    sentence: str
    where: str
    reached: str
    scenario: Scenario
    runners: tuple[str, ...] = ("V1", "V2")


def _config(tokens: int, rows: int, **settings: object) -> EngineConfig:
    return EngineConfig(  # type: ignore[arg-type]
        tokens, max(rows, 8), rows, num_kv_blocks=60, **settings
    )


_EAGLE = {"scheduler_lookahead": 1, "gather_lookahead": 1, "num_speculative_tokens": 1}
_TWO_MODULES = {"scheduler_lookahead": 2, "gather_lookahead": 1, "num_speculative_tokens": 2}

FOUND: tuple[FoundFault, ...] = (
    FoundFault(
        "raw-data-stripped-for-good",
        "target-resident",
        "an item inside a prefix hit is sent without its raw data; after a preemption the hit is "
        "gone, nothing can be encoded, and the gather raises",
        "strip_covered_mm_data and GPUModelRunner._batch_mm_inputs_from_scheduler",
        "prefix caching and KV pressure, runner V1 (the release takes V2 where it can); no drafter",
        Scenario(
            EngineConfig(8, 8, 8, num_kv_blocks=12, prefix_caching=True),
            (
                ScenarioRequest(1, max_tokens=8),
                ScenarioRequest(5, (Feature(1, 2, "A"),), max_tokens=6, prefix_hits=(4,)),
            ),
        ),
        ("V1",),
    ),
    FoundFault(
        "victim-of-the-same-pass-not-encoded",
        "target-resident",
        "a request that is preempted in the pass in which its item was allocated leaves the entry "
        "in the book, and nobody encodes it: its next hit misses, and the gather raises",
        "Scheduler.schedule, where the victim's encoder inputs are taken from the output",
        "priority scheduling and KV pressure; no drafter",
        Scenario(
            EngineConfig(
                6, 8, 8, num_kv_blocks=15, policy="priority", long_prefill_token_threshold=3
            ),
            (
                ScenarioRequest(14, (Feature(10, 2, "A"),), priority=1),
                ScenarioRequest(3, max_tokens=8, arrival=1),
            ),
        ),
    ),
    FoundFault(
        "whole-item-cut-short",
        "no-stall",
        "a chunk ends the shift before an item that does not fit behind it; where that leaves no "
        "token, the request never runs again",
        "Scheduler._try_schedule_encoder_inputs, the roll-back before an item",
        "chunking of items off, a drafter, an item longer than the token budget less the shift",
        Scenario(
            _config(4, 4, whole_items=True, **_EAGLE),
            (ScenarioRequest(6, (Feature(1, 4, "A"),)),),
        ),
    ),
    FoundFault(
        "whole-item-cut-splits-neighbour",
        "item-whole",
        "the same roll-back ends inside the item before, which is split",
        "Scheduler._try_schedule_encoder_inputs, the roll-back before an item",
        "chunking of items off, a drafter, two items side by side",
        Scenario(
            _config(7, 8, whole_items=True, **_EAGLE),
            (ScenarioRequest(8, (Feature(0, 4, "A"), Feature(4, 4, "B"))),),
        ),
    ),
    FoundFault(
        "threshold-below-whole-item",
        "no-stall",
        "two requests stand before an item that the threshold on long prefills cuts: each is "
        "rolled back to nothing while the other is there",
        "Scheduler.schedule, the threshold, before the roll-back",
        "chunking of items off, a threshold below the item's length, two requests",
        Scenario(
            _config(8, 8, whole_items=True, long_prefill_token_threshold=2),
            (
                ScenarioRequest(5, (Feature(1, 3, "A"),)),
                ScenarioRequest(5, (Feature(1, 3, "B"),)),
            ),
        ),
    ),
    FoundFault(
        "reservation-after-cut",
        "no-stall",
        "a chunk that ends before a refused item close to the prompt's end is shortened again: the "
        "item before it is never finished and keeps the room",
        "Scheduler._reserve_prefill_lookahead",
        "a drafter of two modules or more, a cache too small for two neighbouring items",
        Scenario(
            _config(8, 4, **_TWO_MODULES),
            (ScenarioRequest(5, (Feature(0, 4, "A"), Feature(4, 1, "B"))),),
        ),
    ),
    FoundFault(
        "padded-decode-above-threshold",
        "no-error",
        "a request with one token left is padded to a decode with drafts, the threshold cuts it, "
        "and an assertion stops the engine",
        "Scheduler.schedule, the padding of new decodes",
        "a drafter, a threshold on long prefills of at most its drafts, two requests",
        Scenario(
            _config(8, 4, long_prefill_token_threshold=1, **_EAGLE),
            (
                ScenarioRequest(1, max_tokens=3),
                ScenarioRequest(1, max_tokens=3, arrival=1),
            ),
        ),
    ),
    FoundFault(
        "paused-session-keeps-item",
        "no-idle-references",
        "a turn ends while its last token still counts as a placeholder: the item that ends there "
        "stays referenced until the client sends more",
        "Scheduler.update_from_output, free before the placeholders shrink",
        "asynchronous scheduling and streaming input",
        Scenario(
            _config(1, 1, async_depth=1),
            (
                ScenarioRequest(1, (Feature(0, 1, "A"),), continuations=(Continuation(9, 1),)),
                ScenarioRequest(2, (Feature(0, 1, "B"),), arrival=1),
            ),
        ),
    ),
    FoundFault(
        "waiting-sessions-hold-blocks",
        "no-stall",
        "two streaming requests that wait for their next turn hold KV blocks that neither gets "
        "from the other",
        "Scheduler.schedule, where preemption looks at running requests only",
        "streaming input and KV pressure; no item, no drafter",
        Scenario(
            EngineConfig(2, 8, 8, num_kv_blocks=6),
            (
                ScenarioRequest(1, max_tokens=3, continuations=(Continuation(0, 1),)),
                ScenarioRequest(3, continuations=(Continuation(0, 1),)),
            ),
        ),
    ),
    FoundFault(
        "next-turn-behind-kept-item",
        "no-stall",
        "the item that a turn's end leaves referenced is not let go when the next turn begins: "
        "where the next item does not fit beside it, the session waits for ever",
        "Scheduler.update_from_output, free before the placeholders shrink",
        "asynchronous scheduling and streaming input, a cache too small for an item of either turn",
        Scenario(
            _config(1, 1, async_depth=1),
            (
                ScenarioRequest(
                    1,
                    (Feature(0, 1, "A"),),
                    continuations=(Continuation(0, 1, (Feature(0, 1, "B"),)),),
                ),
            ),
        ),
    ),
    FoundFault(
        "failed-load-keeps-placeholders",
        "no-stall",
        "a load that fails leaves the placeholders of what is in flight: the request waits for a "
        "token that nobody computes, or an output computed without the KV is emitted",
        "Scheduler._update_requests_with_invalid_blocks",
        "asynchronous scheduling, a store that loads within the step, failed loads recomputed; no "
        "item, no drafter",
        Scenario(
            EngineConfig(1, 8, 8, num_kv_blocks=8, prefix_caching=True, async_depth=1),
            (ScenarioRequest(2, prefix_hits=(1,), failed_loads=(FailedLoad(0, 0),)),),
        ),
    ),
    FoundFault(
        "failed-load-keeps-item-ahead",
        "no-stall",
        "a load that fails sets a request back before an item, and it keeps the one behind: where "
        "both do not fit, it never runs again",
        "Scheduler._update_requests_with_invalid_blocks",
        "a store that loads within the step, failed loads recomputed, a cache too small for two "
        "neighbouring items; no drafter",
        Scenario(
            EngineConfig(4, 8, 2, num_kv_blocks=60, prefix_caching=True),
            (
                ScenarioRequest(
                    4,
                    (Feature(0, 2, "A"), Feature(2, 2, "B")),
                    prefix_hits=(3,),
                    failed_loads=(FailedLoad(0, 0),),
                ),
            ),
        ),
    ),
    FoundFault(
        "reservation-against-alignment",
        "no-stall",
        "a chunk that ends at a block close to the prompt's end is shortened; the next one is cut "
        "at that block again and shortened to nothing",
        "Scheduler._reserve_prefill_lookahead, after Scheduler._mamba_block_aligned_split",
        "a hybrid model with prefix caching, a drafter of two modules or more, a budget left of "
        "one block; no item",
        Scenario(
            EngineConfig(
                16, 8, 8, num_kv_blocks=4, block_size=16, block_alignment=16, **_TWO_MODULES
            ),
            (ScenarioRequest(17),),
        ),
    ),
    FoundFault(
        "skipped-request-keeps-reference",
        "no-idle-references",
        "a waiting request that finds its item cached and is then given no token keeps the "
        "reference while it waits",
        "Scheduler.schedule, where a request without tokens is skipped",
        "a drafter of two modules or more, a repeated item, little budget left",
        Scenario(
            _config(4, 1, **_TWO_MODULES),
            (
                ScenarioRequest(2, (Feature(0, 1, "A"),), max_tokens=6),
                ScenarioRequest(2, (Feature(0, 1, "A"),), arrival=1),
                ScenarioRequest(1, (Feature(0, 1, "B"),), arrival=1),
            ),
        ),
    ),
    FoundFault(
        "evicted-identifier-comes-back",
        "fresh-tensor",
        "an identifier that is evicted and allocated again in one pass, with another number of "
        "rows, is not encoded: the old tensor is read, past the check for such an identifier",
        "EncoderRunner.prepare_mm_inputs, with EncoderCacheManager.get_freed_mm_hashes",
        "an identifier of the client's used for two contents, runner V2; no drafter",
        Scenario(
            _config(8, 3),
            (
                ScenarioRequest(2, (Feature(0, 2, "X"),), contents=("one",)),
                ScenarioRequest(2, (Feature(0, 2, "Y"),), arrival=1),
                ScenarioRequest(1, (Feature(0, 1, "X"),), arrival=1, contents=("another",)),
            ),
        ),
        ("V2",),
    ),
)
