"""When one scenario is smaller than another: what a person would rather read."""

from __future__ import annotations

from typing import TypeAlias

from proofs.describe.shape import all_rows, tags
from proofs.search.runs.smaller import Turn
from spec.record.scenario import Scenario, ScenarioRequest

Size: TypeAlias = tuple[int, int, int, int, str]


def size(scenario: Scenario) -> Size:
    """A total order: tags, then things, then tokens and rows, then all other numbers."""
    requests = scenario.requests
    turns: list[Turn] = []
    for request in requests:
        turns += [request, *request.continuations]
    things = len(requests) + len(turns) + len(scenario.resets)
    things += sum(len(turn.features) for turn in turns)
    things += sum(
        len(r.accepted_drafts) + len(r.prefix_hits) + len(r.failed_loads) for r in requests
    )
    config = scenario.config
    tokens = sum(turn.num_prompt_tokens + turn.max_tokens for turn in turns)
    tokens += sum(feature.length for turn in turns for feature in turn.features)
    # Plentiful limits follow from the requests and are counted as what they are: no limit.
    tokens += config.max_num_batched_tokens
    if config.encoder_cache_size < all_rows(requests):
        tokens += config.encoder_cache_size
    numbers = config.num_speculative_tokens + config.scheduler_lookahead + config.async_depth
    numbers += config.num_kv_blocks + config.block_size + config.encoder_compute_budget
    numbers += config.encoder_cache_size + config.max_num_seqs + config.block_alignment
    numbers += config.long_prefill_token_threshold + sum(scenario.resets)
    numbers += sum(_numbers(request) for request in requests)
    return len(tags(scenario)), things, tokens, numbers, repr(scenario)


def _numbers(request: ScenarioRequest) -> int:
    numbers = request.arrival + abs(request.priority) + (request.abort or 0)
    numbers += sum(request.accepted_drafts) + sum(request.prefix_hits)
    numbers += sum(load.at + load.num_computed_tokens for load in request.failed_loads)
    numbers += sum(turn.arrival for turn in request.continuations)
    return numbers + sum(
        feature.offset + (0 if feature.is_embed is None else 1 + feature.is_embed.count(False))
        for feature in request.all_features()
    )
