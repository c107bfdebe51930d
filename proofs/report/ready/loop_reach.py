"""What a scenario needs that default settings do not give."""

from __future__ import annotations

from collections.abc import Sequence

from impl.target import RUNNERS, Runner
from proofs.describe.shape import all_blocks
from proofs.describe.words import counted
from proofs.report.ready.reach import Reach
from spec.record.scenario import Scenario

_SMALL = (
    "the budgets are small so that the run is short; what counts is how they compare with the "
    "items and the chunks"
)


_ONLY_V1 = (
    "the V1 model runner (0.33.0 picks V2, and falls back to V1 only where V2 cannot run, or for "
    "VLLM_USE_V2_MODEL_RUNNER=0; older releases picked by model)"
)


def reach_of_scenario(scenario: Scenario, runners: Sequence[Runner] = RUNNERS) -> Reach:
    """Whether default settings reach what a scenario shows, and what it takes.

    Args:
        scenario: the smallest run.
        runners: model runners that show it.
    """
    needed = [_ONLY_V1] if tuple(runners) == ("V1",) else []
    needed += needed_settings(scenario)
    given = _given_by_default(scenario)
    told = (
        "" if not given else "of what is on or usual by default it uses " + ", ".join(given) + "; "
    )
    if needed:
        return Reach("no", f"it takes {', '.join(needed)}; {told}{_SMALL}")
    return Reach("yes", f"{told}{_SMALL}")


def needed_settings(scenario: Scenario) -> list[str]:
    """Settings and kinds of models that somebody has to choose."""
    config = scenario.config
    needed = []
    if config.num_speculative_tokens:
        drafter = (
            f"speculative decoding with {counted(config.num_speculative_tokens, 'draft token')}"
        )
        if config.scheduler_lookahead > 1:
            drafter += f" by a drafter of {config.scheduler_lookahead} modules (multi-module MTP)"
        elif config.scheduler_lookahead:
            drafter += " by a drafter that reads multimodal embeddings (EAGLE, MTP)"
        needed.append(drafter)
    if config.whole_items:
        needed.append("--disable-chunked-mm-input")
    if config.long_prefill_token_threshold:
        needed.append(f"--long-prefill-token-threshold {config.long_prefill_token_threshold}")
    if config.block_alignment:
        needed.append("a hybrid model whose prefill chunks are aligned to blocks")
    if config.policy == "priority":
        needed.append("--scheduling-policy priority")
    if config.is_encoder_decoder:
        needed.append("an encoder-decoder model")
    if any(request.failed_loads for request in scenario.requests):
        needed.append("a KV connector whose loads can fail")
    if any(request.continuations for request in scenario.requests):
        needed.append("streaming input")
    if scenario.resets:
        needed.append("a reset of the encoder cache")
    return needed


def _given_by_default(scenario: Scenario) -> list[str]:
    config, requests = scenario.config, scenario.requests
    given = []
    if config.async_depth:
        given.append("asynchronous scheduling")
    if any(any(request.prefix_hits) for request in requests):
        given.append(
            "prefix caching (a KV connector of the test says what is found; the local cache was "
            "not run)"
        )
    if config.num_kv_blocks < all_blocks(config, requests):
        given.append("a shortage of KV blocks")
    return given
