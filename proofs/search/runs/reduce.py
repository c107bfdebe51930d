"""Make a scenario smaller while it keeps meeting a condition. Deterministic: no draw, no clock.

What a scenario makes use of (its tags) goes first, then requests, items, events and answers, then
numbers, one token, row or pass at a time, where sizes that belong together fall together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from proofs.describe.shape import all_blocks, all_rows
from proofs.search.runs.size import size
from proofs.search.runs.smaller import (
    smaller_requests,
    without_feature_tokens,
    without_leading_tokens,
    without_requests,
)
from spec.errors import InputError
from spec.record.config import EngineConfig
from spec.record.scenario import Scenario, ScenarioRequest

DEFAULT_TRIES = 4000
"""Runs of the target that one reduction may take."""


def reduce_scenario(
    scenario: Scenario, condition: Callable[[Scenario], bool], max_tries: int = DEFAULT_TRIES
) -> Scenario:
    """The smallest scenario reached by one simplification after the other.

    Args:
        scenario: one that meets the condition.
        condition: what every step must still meet; given legal scenarios only.
        max_tries: how often the condition may be asked.
    """
    known: set[Scenario] = {scenario}
    broken = _broken_assumptions(scenario)
    tries = 0
    improved = True
    while improved:
        improved = False
        current = size(scenario)
        for candidate in _simplified(scenario):
            if candidate in known:
                continue
            known.add(candidate)
            if size(candidate) >= current or not _is_legal(candidate):
                continue
            if not _broken_assumptions(candidate) <= broken:
                continue
            if tries == max_tries:
                return scenario
            tries += 1
            if condition(candidate):
                scenario, improved = candidate, True
                break
    return scenario


def _broken_assumptions(scenario: Scenario) -> frozenset[str]:
    """What the scenario takes back of what claims rest on; a reduction must not add to it."""
    config = scenario.config
    broken = {
        "hash-is-content": not scenario.content_is_hashed,
        "scheduler-looks-as-far": config.scheduler_lookahead < config.gather_lookahead,
        "drafts reach as far as the shift": config.num_speculative_tokens
        < config.scheduler_lookahead,
    }
    return frozenset(name for name, is_broken in broken.items() if is_broken)


def _is_legal(scenario: Scenario) -> bool:
    try:
        scenario.validate()
    except InputError:
        return False
    return True


def _simplified(scenario: Scenario) -> Iterator[Scenario]:
    """Candidates, the boldest first. Limits that did not bind are kept from binding."""
    for candidate in _candidates(scenario):
        fitted = _with_plenty(candidate, scenario)
        yield fitted
        if fitted != candidate:
            yield candidate


def _with_plenty(candidate: Scenario, before: Scenario) -> Scenario:
    """Limits that were plentiful before are again exactly plentiful."""
    config, old = candidate.config, before.config
    changes: dict[str, Any] = {}
    for name, old_need, need in (
        ("encoder_cache_size", all_rows(before.requests), all_rows(candidate.requests)),
        ("encoder_compute_budget", all_rows(before.requests), all_rows(candidate.requests)),
        (
            "num_kv_blocks",
            all_blocks(old, before.requests),
            all_blocks(config, candidate.requests),
        ),
        ("max_num_seqs", len(before.requests), len(candidate.requests)),
    ):
        if getattr(old, name) >= old_need and getattr(config, name) == getattr(old, name):
            changes[name] = need
    return replace(candidate, config=replace(config, **changes)) if changes else candidate


def _candidates(scenario: Scenario) -> Iterator[Scenario]:
    yield from without_requests(scenario)
    for config in _plainer_settings(scenario):
        yield replace(scenario, config=config)
    if scenario.resets:
        for index in range(len(scenario.resets)):
            kept = scenario.resets[:index] + scenario.resets[index + 1 :]
            yield replace(scenario, resets=kept)
    for index, request in enumerate(scenario.requests):
        for smaller in smaller_requests(request):
            requests = (*scenario.requests[:index], smaller, *scenario.requests[index + 1 :])
            yield replace(scenario, requests=requests)
    for index, reset in enumerate(scenario.resets):
        if reset:
            resets = (*scenario.resets[:index], reset - 1, *scenario.resets[index + 1 :])
            yield replace(scenario, resets=resets)
    for config in _smaller_settings(scenario.config):
        yield replace(scenario, config=config)
    yield from _smaller_together(scenario)
    yield _earlier(scenario)
    yield _renamed(scenario)


def _plainer_settings(scenario: Scenario) -> Iterator[EngineConfig]:
    """One setting off, or one limit that binds no more."""
    config, requests = scenario.config, scenario.requests
    plenty = all_rows(requests)
    yield replace(config, scheduler_lookahead=0, gather_lookahead=0, num_speculative_tokens=0)
    yield replace(config, async_depth=0)
    yield replace(config, whole_items=False)
    yield replace(config, long_prefill_token_threshold=0)
    yield replace(config, block_alignment=0)
    yield replace(config, policy="fcfs")
    yield replace(config, encoder_cache_size=plenty, encoder_compute_budget=plenty)
    yield replace(config, encoder_cache_size=plenty)
    yield replace(config, encoder_compute_budget=plenty)
    yield replace(config, num_kv_blocks=all_blocks(config, requests))
    yield replace(config, max_num_seqs=len(requests))
    single = replace(config, block_size=1)
    yield replace(single, num_kv_blocks=all_blocks(single, requests))
    yield replace(single, num_kv_blocks=config.num_kv_blocks * config.block_size)
    if config.scheduler_lookahead > config.gather_lookahead:
        yield replace(config, scheduler_lookahead=config.gather_lookahead)
    if config.gather_lookahead > 1:
        yield replace(config, scheduler_lookahead=1, gather_lookahead=1)
    if not any(request.prefix_hits for request in requests):
        yield replace(config, prefix_caching=False)


def _smaller_settings(config: EngineConfig) -> Iterator[EngineConfig]:
    for name in (
        "max_num_batched_tokens",
        "encoder_cache_size",
        "encoder_compute_budget",
        "num_kv_blocks",
        "max_num_seqs",
        "num_speculative_tokens",
        "async_depth",
        "scheduler_lookahead",
        "long_prefill_token_threshold",
        "block_alignment",
    ):
        value = getattr(config, name)
        for lower in dict.fromkeys((value // 2, value - 1)):
            if 0 <= lower < value:
                yield replace(config, **{name: lower})


def _smaller_together(scenario: Scenario) -> Iterator[Scenario]:
    """Fewer tokens of text or of items, with the sizes that were cut to fit them."""
    config = scenario.config
    budget = config.max_num_batched_tokens
    for fewer in dict.fromkeys((budget // 2, 2, 1)):
        if 0 < fewer < budget:
            requests = without_leading_tokens(scenario.requests, fewer)
            smaller = replace(config, max_num_batched_tokens=budget - fewer)
            yield replace(scenario, config=smaller, requests=requests)
    for fewer in (2, 1):
        for requests in without_feature_tokens(scenario.requests, fewer):
            for smaller in _fitted_configs(config, fewer):
                yield replace(scenario, config=smaller, requests=requests)
    for index, request in enumerate(scenario.requests):
        for field in ("num_prompt_tokens", "max_tokens"):
            shorter = replace(request, **{field: getattr(request, field) - 1})
            requests = (*scenario.requests[:index], shorter, *scenario.requests[index + 1 :])
            for blocks in (1, 2):
                fewer_blocks = replace(config, num_kv_blocks=config.num_kv_blocks - blocks)
                yield replace(scenario, config=fewer_blocks, requests=requests)


def _fitted_configs(config: EngineConfig, fewer: int) -> Iterator[EngineConfig]:
    """Sizes that fall with items that are so many tokens shorter, or stay."""
    for budget in (0, fewer):
        for cache in (0, fewer, 2 * fewer):
            for encoder in (0, fewer):
                for blocks in (0, fewer, 2 * fewer):
                    yield replace(
                        config,
                        max_num_batched_tokens=config.max_num_batched_tokens - budget,
                        encoder_cache_size=config.encoder_cache_size - cache,
                        encoder_compute_budget=config.encoder_compute_budget - encoder,
                        num_kv_blocks=config.num_kv_blocks - blocks,
                    )


def _earlier(scenario: Scenario) -> Scenario:
    """Everything from outside comes one pass sooner."""

    def sooner(request: ScenarioRequest) -> ScenarioRequest:
        return replace(
            request,
            arrival=max(0, request.arrival - 1),
            abort=None if request.abort is None else max(0, request.abort - 1),
            continuations=tuple(
                replace(turn, arrival=max(0, turn.arrival - 1)) for turn in request.continuations
            ),
            failed_loads=tuple(
                replace(load, at=max(0, load.at - 1)) for load in request.failed_loads
            ),
        )

    return replace(
        scenario,
        requests=tuple(sooner(request) for request in scenario.requests),
        resets=tuple(max(0, reset - 1) for reset in scenario.resets),
    )


def _renamed(scenario: Scenario) -> Scenario:
    """Identifiers ``A``, ``B``... in order of appearance."""
    features = [f for request in scenario.requests for f in request.all_features()]
    old = list(dict.fromkeys(feature.identifier for feature in features))
    if len(old) > 26:
        return scenario
    names = {identifier: chr(ord("A") + index) for index, identifier in enumerate(old)}
    requests = tuple(
        replace(
            request,
            features=tuple(replace(f, identifier=names[f.identifier]) for f in request.features),
            continuations=tuple(
                replace(
                    turn,
                    features=tuple(
                        replace(f, identifier=names[f.identifier]) for f in turn.features
                    ),
                )
                for turn in request.continuations
            ),
        )
        for request in scenario.requests
    )
    return replace(scenario, requests=requests)
