"""What a scenario makes use of, as a short list of tags: the shape of a finding once it is shrunk.

A tag says that something is there, never how much of it, so that the same fault found by another
seed or told with other numbers keeps its fingerprint. The reducer removes tags before anything
else; what is left is what the fault needs.
"""

from __future__ import annotations

from spec.record.config import EngineConfig
from spec.record.scenario import Scenario, ScenarioRequest


def tags(scenario: Scenario) -> tuple[str, ...]:
    """The tags of a scenario, in a fixed order."""
    config, requests = scenario.config, scenario.requests
    return (
        *_tags_of_settings(config),
        *_tags_of_requests(requests),
        *_tags_of_items(requests),
        *_tags_of_limits(config, requests),
        *(("reset",) if scenario.resets else ()),
    )


def shape(scenario: Scenario) -> str:
    """The tags in one line; ``plain`` where there are none."""
    return ", ".join(tags(scenario)) or "plain"


def _tags_of_settings(config: EngineConfig) -> tuple[str, ...]:
    present = {
        "encoder-decoder": config.is_encoder_decoder,
        "drafter": config.num_speculative_tokens > 0 or config.scheduler_lookahead > 0,
        "look-ahead above 1": config.gather_lookahead > 1,
        "shift below look-ahead": config.scheduler_lookahead < config.gather_lookahead,
        "shift above look-ahead": config.scheduler_lookahead > config.gather_lookahead,
        "async": config.async_depth > 0,
        "async depth above 1": config.async_depth > 1,
        "whole items": config.whole_items,
        "long-prefill threshold": config.long_prefill_token_threshold > 0,
        "block alignment": config.block_alignment > 0,
        "block size above 1": config.block_size > 1,
        "priority": config.policy == "priority",
    }
    return tuple(tag for tag, applies in present.items() if applies)


def _tags_of_requests(requests: tuple[ScenarioRequest, ...]) -> tuple[str, ...]:
    present = {
        "late arrival": any(request.arrival for request in requests),
        "streaming": any(request.streams for request in requests),
        "late close": any(request.close is not None for request in requests),
        "accepted drafts": any(any(request.accepted_drafts) for request in requests),
        "prefix hit": any(any(request.prefix_hits) for request in requests),
        "failed load": any(request.failed_loads for request in requests),
        "abort": any(request.abort is not None for request in requests),
    }
    number = (_number(len(requests), "request"),) if len(requests) > 1 else ()
    return (*number, *(tag for tag, applies in present.items() if applies))


def _tags_of_items(requests: tuple[ScenarioRequest, ...]) -> tuple[str, ...]:
    items = [f for request in requests for f in request.all_features()]
    by_request = [{f.identifier for f in request.all_features()} for request in requests]
    present = {
        "mask": any(f.is_embed is not None for f in items),
        "hash repeated in a request": any(
            len(own) < len(request.all_features())
            for own, request in zip(by_request, requests, strict=True)
        ),
        "hash shared by requests": len(set().union(*by_request)) < sum(map(len, by_request)),
        "other content": any(
            contents
            for request in requests
            for contents in (request.contents, *(turn.contents for turn in request.continuations))
        ),
    }
    number = (_number(len(items), "item"),) if items else ()
    return (*number, *(tag for tag, applies in present.items() if applies))


def _tags_of_limits(config: EngineConfig, requests: tuple[ScenarioRequest, ...]) -> tuple[str, ...]:
    """Sizes that bind: less than all the scenario could ask for."""
    present = {
        "cache below all items": config.encoder_cache_size < all_rows(requests),
        "encoder budget below all items": config.encoder_compute_budget < all_rows(requests),
        "KV blocks below all requests": config.num_kv_blocks < all_blocks(config, requests),
        "fewer sequences than requests": config.max_num_seqs < len(requests),
    }
    return tuple(tag for tag, applies in present.items() if applies)


def has_derived_sizes(config: EngineConfig) -> bool:
    """Whether a vLLM can be started with the sizes of the encoder cache and of its budget.

    Neither is a setting: at start-up both become the larger of the token budget and of the largest
    item that the model takes (``SchedulerConfig.__post_init__`` and
    ``vllm/v1/core/encoder_cache_manager.py``). Other sizes take a cache manager of one's own.
    """
    size = config.encoder_cache_size
    return size == config.encoder_compute_budget and size >= config.max_num_batched_tokens


def plenty(config: EngineConfig, requests: tuple[ScenarioRequest, ...]) -> int:
    """A size of the encoder cache, and of its budget, that no request ever waits for."""
    return max(config.max_num_batched_tokens, all_rows(requests))


def all_rows(requests: tuple[ScenarioRequest, ...]) -> int:
    """Rows of all cache entries together; at least one."""
    rows = {f.identifier: f.num_rows for request in requests for f in request.all_features()}
    return max(1, sum(rows.values()))


def all_blocks(config: EngineConfig, requests: tuple[ScenarioRequest, ...]) -> int:
    """KV blocks with which no request ever waits for another."""
    in_flight = (config.async_depth + 1) * (1 + config.num_speculative_tokens)
    return sum(-(-(request.most_tokens + in_flight) // config.block_size) for request in requests)


def _number(number: int, noun: str) -> str:
    words = {1: "one", 2: "two", 3: "three", 4: "four"}
    return f"{words.get(number, 'many')} {noun}" + ("s" if number > 1 else "")
