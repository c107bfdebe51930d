"""Make a scenario smaller while it keeps meeting a condition. Deterministic: no draw, no clock.

What a scenario makes use of (its tags) goes first, then requests, items, events and answers, then
numbers, one token, row or pass at a time, where sizes that belong together fall together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from proofs.describe.shape import all_blocks, all_rows, has_derived_sizes, plenty, tags
from proofs.search.reduce import at_most, reduce
from spec.errors import InputError
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Continuation, Scenario, ScenarioRequest

Size: TypeAlias = tuple[bool, int, int, int, int, str]


def size(scenario: Scenario) -> Size:
    """A total order: sizes that a vLLM derives, tags, things, tokens and rows, other numbers."""
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
    any_sizes = not has_derived_sizes(config)
    return any_sizes, len(tags(scenario)), things, tokens, numbers, repr(scenario)


def _numbers(request: ScenarioRequest) -> int:
    numbers = request.arrival + abs(request.priority) + (request.abort or 0) + (request.close or 0)
    numbers += sum(request.accepted_drafts) + sum(request.prefix_hits)
    numbers += sum(load.at + load.num_computed_tokens for load in request.failed_loads)
    numbers += sum(turn.arrival for turn in request.continuations)
    return numbers + sum(
        feature.offset + (0 if feature.is_embed is None else 1 + feature.is_embed.count(False))
        for feature in request.all_features()
    )


Turn: TypeAlias = ScenarioRequest | Continuation
"""A prompt or a continuation: what both have is all that is changed of them."""

TurnT = TypeVar("TurnT", bound=Turn)
T = TypeVar("T")


def without_requests(scenario: Scenario) -> Iterator[Scenario]:
    """The scenario without half of its requests, then without one of them."""
    requests = scenario.requests
    half = len(requests) // 2
    if half > 1:
        yield replace(scenario, requests=requests[:half])
        yield replace(scenario, requests=requests[half:])
    if len(requests) > 1:
        for kept in _each_left_out(requests):
            yield replace(scenario, requests=kept)
        for index in range(1, len(requests)):
            joined = _joined(requests[0], requests[index])
            rest = requests[1:index] + requests[index + 1 :]
            yield replace(scenario, requests=(joined, *rest))


def _joined(request: ScenarioRequest, turn: Turn) -> ScenarioRequest:
    """The request with the tokens of both in its prompt."""
    moved = tuple(replace(f, offset=f.offset + request.num_prompt_tokens) for f in turn.features)
    both = request.contents and turn.contents
    return replace(
        request,
        num_prompt_tokens=request.num_prompt_tokens + turn.num_prompt_tokens,
        features=request.features + moved,
        contents=request.contents + turn.contents if both else (),
    )


def without_feature_tokens(
    requests: tuple[ScenarioRequest, ...], fewer: int
) -> Iterator[tuple[ScenarioRequest, ...]]:
    """All requests, where one identifier's items, or all items, have so many tokens less."""
    names = dict.fromkeys(f.identifier for request in requests for f in request.all_features())
    choices = [{name} for name in names]
    if len(choices) > 1:
        choices.append(set(names))
    for chosen in choices:
        for from_end in (True, False):
            shorter = requests
            for _ in range(fewer):
                shorter = tuple(_shortened(r, chosen, from_end=from_end) for r in shorter)
            yield shorter


def without_leading_tokens(
    requests: tuple[ScenarioRequest, ...], fewer: int
) -> tuple[ScenarioRequest, ...]:
    """All requests, where those that start with text have so many tokens less of it."""
    return tuple(
        _without_leading(request, min(fewer, _leading_text(request))) for request in requests
    )


def smaller_requests(request: ScenarioRequest) -> Iterator[ScenarioRequest]:
    """The request with one thing less, the boldest first; not all are legal."""
    for continuations in _each_left_out(request.continuations):
        yield replace(request, continuations=continuations)
    if request.continuations:
        yield _with_first_two_turns_joined(request)
    yield from _without_items(request)
    for field in ("accepted_drafts", "prefix_hits", "failed_loads"):
        answers = getattr(request, field)
        if answers:
            yield _with(request, field, ())
        if len(answers) > 1:
            for kept in _each_left_out(answers):
                yield _with(request, field, kept)
    if request.abort is not None:
        yield replace(request, abort=None)
    if request.close is not None:
        yield replace(request, close=None)
    if request.contents:
        yield replace(request, contents=())
    yield replace(request, arrival=0, priority=0)
    for index, turn in enumerate(request.continuations):
        for smaller in (*_without_items(turn), *_smaller_turns(turn)):
            turns = (*request.continuations[:index], smaller, *request.continuations[index + 1 :])
            yield replace(request, continuations=turns)
    yield from _fewer_leading_tokens(request)
    yield from _smaller_turns(request)
    yield from _smaller_numbers(request)


def _with(request: ScenarioRequest, field: str, value: Any) -> ScenarioRequest:
    changes: dict[str, Any] = {field: value}
    return replace(request, **changes)


def _each_left_out(things: Sequence[T]) -> Iterator[tuple[T, ...]]:
    for index in range(len(things)):
        yield (*things[:index], *things[index + 1 :])


def _with_first_two_turns_joined(request: ScenarioRequest) -> ScenarioRequest:
    first, *later = request.continuations
    return replace(_joined(request, first), max_tokens=first.max_tokens, continuations=tuple(later))


def _without_items(turn: TurnT) -> Iterator[TurnT]:
    """One item becomes text, or goes with its tokens."""
    for index, feature in enumerate(turn.features):
        contents = turn.contents[:index] + turn.contents[index + 1 :]
        features = turn.features[:index] + turn.features[index + 1 :]
        yield replace(turn, features=features, contents=contents)
        behind = (*turn.features[:index], *_moved(turn.features[index + 1 :], feature.length))
        fewer = max(1, turn.num_prompt_tokens - feature.length)
        yield replace(turn, features=behind, contents=contents, num_prompt_tokens=fewer)


def _smaller_turns(turn: TurnT) -> Iterator[TurnT]:
    """Fewer tokens of text or generated, plain masks, an earlier arrival."""
    last = max((f.end for f in turn.features), default=1)
    for length in dict.fromkeys((last, last + 1, turn.num_prompt_tokens - 1)):
        if 0 < length < turn.num_prompt_tokens:
            yield replace(turn, num_prompt_tokens=length)
    for generated in dict.fromkeys((1, turn.max_tokens // 2, turn.max_tokens - 1)):
        if 0 < generated < turn.max_tokens:
            yield replace(turn, max_tokens=generated)
    if turn.arrival:
        yield replace(turn, arrival=turn.arrival - 1)
    for index, feature in enumerate(turn.features):
        for mask in _plainer_masks(feature):
            plainer = replace(feature, is_embed=mask)
            features = (*turn.features[:index], plainer, *turn.features[index + 1 :])
            yield replace(turn, features=features)
        gap = feature.offset - (turn.features[index - 1].end if index else 0)
        for fewer in dict.fromkeys((gap, gap // 2, 2, 1)):
            if 0 < fewer <= gap:
                behind = (*turn.features[:index], *_moved(turn.features[index:], fewer))
                yield replace(
                    turn, features=behind, num_prompt_tokens=turn.num_prompt_tokens - fewer
                )
                yield replace(turn, features=behind)
        yield from _with_shorter_item(turn, index)


def _with_shorter_item(turn: TurnT, index: int) -> Iterator[TurnT]:
    """The item has one token; or a token less at its end, with what follows moved up or not."""
    feature = turn.features[index]
    for fewer in dict.fromkeys((feature.length - 1, feature.length // 2, 1)):
        if not 0 < fewer < feature.length:
            continue
        mask = None if feature.is_embed is None else feature.is_embed[: feature.length - fewer]
        shorter = replace(feature, length=feature.length - fewer, is_embed=mask)
        behind = turn.features[index + 1 :]
        before = turn.features[:index]
        yield replace(
            turn,
            features=(*before, shorter, *_moved(behind, fewer)),
            num_prompt_tokens=max(1, turn.num_prompt_tokens - fewer),
        )
        yield replace(turn, features=(*before, shorter, *behind))


def _leading_text(request: ScenarioRequest) -> int:
    return min((f.offset for f in request.features), default=request.num_prompt_tokens - 1)


def _fewer_leading_tokens(request: ScenarioRequest) -> Iterator[ScenarioRequest]:
    text = _leading_text(request)
    hit = next(iter(request.prefix_hits), 0)
    for fewer in dict.fromkeys((hit, text, text // 2, 3, 2, 1)):
        if 0 < fewer <= text:
            yield _without_leading(request, fewer)


def _without_leading(request: ScenarioRequest, fewer: int) -> ScenarioRequest:
    """Without text at the start, so that hits and falls of progress end where they did."""
    return replace(
        request,
        num_prompt_tokens=request.num_prompt_tokens - fewer,
        features=_moved(request.features, fewer),
        prefix_hits=tuple(max(0, answer - fewer) for answer in request.prefix_hits),
        failed_loads=tuple(
            replace(load, num_computed_tokens=max(0, load.num_computed_tokens - fewer))
            for load in request.failed_loads
        ),
    )


def _smaller_numbers(request: ScenarioRequest) -> Iterator[ScenarioRequest]:
    if request.priority:
        yield replace(request, priority=request.priority - (1 if request.priority > 0 else -1))
    if request.abort:
        yield replace(request, abort=request.abort - 1)
    if request.close:
        yield replace(request, close=request.close - 1)
    for field in ("accepted_drafts", "prefix_hits"):
        answers = getattr(request, field)
        for index, answer in enumerate(answers):
            for lower in dict.fromkeys((0, answer - 1)):
                if lower < answer:
                    kept = (*answers[:index], lower, *answers[index + 1 :])
                    yield _with(request, field, kept)
    for index, load in enumerate(request.failed_loads):
        for smaller in (
            replace(load, at=load.at - 1),
            replace(load, num_computed_tokens=load.num_computed_tokens - 1),
        ):
            loads = (*request.failed_loads[:index], smaller, *request.failed_loads[index + 1 :])
            yield replace(request, failed_loads=loads)


def _moved(features: Sequence[Feature], fewer: int) -> tuple[Feature, ...]:
    return tuple(replace(f, offset=max(0, f.offset - fewer)) for f in features)


def _plainer_masks(feature: Feature) -> Iterator[tuple[bool, ...] | None]:
    """No mask; or one F more made T."""
    mask = feature.is_embed
    if mask is None:
        return
    yield None
    for index, takes_row in enumerate(mask):
        if not takes_row:
            yield (*mask[:index], True, *mask[index + 1 :])


def _shortened(request: ScenarioRequest, chosen: set[str], *, from_end: bool) -> ScenarioRequest:
    features, length = _shorter(request.features, request.num_prompt_tokens, chosen, from_end)
    turns = []
    for turn in request.continuations:
        its_features, its_length = _shorter(turn.features, turn.num_prompt_tokens, chosen, from_end)
        turns.append(replace(turn, features=its_features, num_prompt_tokens=its_length))
    return replace(
        request,
        features=features,
        num_prompt_tokens=length,
        continuations=tuple(turns),
    )


def _shorter(
    features: tuple[Feature, ...], length: int, chosen: set[str], from_end: bool
) -> tuple[tuple[Feature, ...], int]:
    """A token less of each chosen item that has two, and everything behind it moves up."""
    moved: list[Feature] = []
    fewer = 0
    for feature in features:
        offset = max(0, feature.offset - fewer)
        if feature.identifier in chosen and feature.length > 1:
            mask = feature.is_embed
            if mask is not None:
                mask = mask[:-1] if from_end else mask[1:]
            feature = replace(feature, length=feature.length - 1, is_embed=mask)
            fewer += 1
        moved.append(replace(feature, offset=offset))
    return tuple(moved), max(1, length - fewer)


DEFAULT_TRIES = 4000
"""Runs of the target that one reduction may take."""


def reduce_scenario(
    scenario: Scenario,
    condition: Callable[[Scenario], bool],
    max_tries: int = DEFAULT_TRIES,
    may_try: Callable[[], bool] = lambda: True,
) -> Scenario:
    """The smallest scenario reached by one simplification after the other.

    Args:
        scenario: one that meets the condition.
        condition: what every step must still meet; given legal scenarios only.
        max_tries: how often the condition may be asked.
        may_try: asked before each try; see :func:`proofs.search.reduce.reduce`.
    """
    broken = _broken_assumptions(scenario)

    def is_allowed(candidate: Scenario) -> bool:
        return _is_legal(candidate) and _broken_assumptions(candidate) <= broken

    return reduce(
        scenario,
        condition,
        candidates=_simplified,
        size=size,
        is_allowed=is_allowed,
        may_try=at_most(max_tries, may_try),
    )


def _broken_assumptions(scenario: Scenario) -> frozenset[str]:
    """What the scenario takes back of what claims rest on; a reduction must not add to it."""
    config = scenario.config
    broken = frozenset(scenario.broken_assumptions)
    if config.num_speculative_tokens < config.scheduler_lookahead:
        broken |= {"drafts reach as far as the shift"}
    return broken


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
        ("encoder_cache_size", all_rows(before.requests), plenty(config, candidate.requests)),
        ("encoder_compute_budget", all_rows(before.requests), plenty(config, candidate.requests)),
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
    most = plenty(config, requests)
    yield from _derived_sizes(config, requests)
    yield replace(config, scheduler_lookahead=0, gather_lookahead=0, num_speculative_tokens=0)
    yield replace(config, async_depth=0)
    yield replace(config, whole_items=False)
    yield replace(config, long_prefill_token_threshold=0)
    yield replace(config, block_alignment=0)
    yield replace(config, policy="fcfs")
    yield with_sizes(config, most)
    yield replace(config, encoder_cache_size=most)
    yield replace(config, encoder_compute_budget=most)
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


def with_sizes(config: EngineConfig, rows: int) -> EngineConfig:
    """The settings with an encoder cache and an encoder budget of so many rows."""
    return replace(config, encoder_cache_size=rows, encoder_compute_budget=rows)


def _derived_sizes(
    config: EngineConfig, requests: tuple[ScenarioRequest, ...]
) -> Iterator[EngineConfig]:
    """Sizes that a vLLM derives, near those that are drawn."""
    if has_derived_sizes(config):
        return
    budget, cache = config.max_num_batched_tokens, config.encoder_cache_size
    encoder = config.encoder_compute_budget
    largest = max((f.num_rows for r in requests for f in r.all_features()), default=1)
    for rows in dict.fromkeys((max(budget, largest), cache, encoder, largest)):
        for tokens in dict.fromkeys((budget, min(budget, rows))):
            yield with_sizes(replace(config, max_num_batched_tokens=tokens), max(rows, tokens))


def _smaller_settings(config: EngineConfig) -> Iterator[EngineConfig]:
    if has_derived_sizes(config):
        rows = config.encoder_cache_size
        for lower in dict.fromkeys((rows // 2, rows - 1)):
            if lower > 0:
                yield with_sizes(config, lower)
                tokens = min(config.max_num_batched_tokens, lower)
                yield with_sizes(replace(config, max_num_batched_tokens=tokens), lower)
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
            if has_derived_sizes(config):
                rows = config.encoder_cache_size - fewer
                yield replace(scenario, config=with_sizes(smaller, rows), requests=requests)
    for fewer in (2, 1):
        for requests in without_feature_tokens(scenario.requests, fewer):
            for smaller in _fitted_configs(config, fewer):
                yield replace(scenario, config=smaller, requests=requests)
    yield from _without_an_item_and_its_room(scenario)
    for index, request in enumerate(scenario.requests):
        for field in ("num_prompt_tokens", "max_tokens"):
            shorter = replace(request, **{field: getattr(request, field) - 1})
            requests = (*scenario.requests[:index], shorter, *scenario.requests[index + 1 :])
            for blocks in (1, 2):
                fewer_blocks = replace(config, num_kv_blocks=config.num_kv_blocks - blocks)
                yield replace(scenario, config=fewer_blocks, requests=requests)
    yield from _without_a_pass(scenario)


def _without_a_pass(scenario: Scenario) -> Iterator[Scenario]:
    """The tokens of a pass less of one prompt, with their KV blocks: the others fall as before."""
    config = scenario.config
    fewer = config.max_num_batched_tokens
    blocks = -(-fewer // config.block_size)
    for index, request in enumerate(scenario.requests):
        if request.num_prompt_tokens > fewer:
            shorter = replace(request, num_prompt_tokens=request.num_prompt_tokens - fewer)
            requests = (*scenario.requests[:index], shorter, *scenario.requests[index + 1 :])
            fitted = replace(config, num_kv_blocks=config.num_kv_blocks - blocks)
            yield replace(scenario, config=fitted, requests=requests)


def _without_an_item_and_its_room(scenario: Scenario) -> Iterator[Scenario]:
    """An item less where sizes are as a vLLM derives them, with the sizes that were cut to fit it.

    The token budget falls where it was as large, and so do the drafts that no longer fit into it.
    """
    config = scenario.config
    if not has_derived_sizes(config):
        return
    for index, request in enumerate(scenario.requests):
        for smaller in _without_items(request):
            before = {f.identifier: f.num_rows for f in request.features}
            left = {f.identifier for f in smaller.features}
            fewer = sum(rows for name, rows in before.items() if name not in left) or 1
            rows = config.encoder_cache_size - fewer
            tokens = min(config.max_num_batched_tokens, rows)
            if tokens <= config.scheduler_lookahead:
                continue
            drafts = min(config.num_speculative_tokens, tokens - 1)
            requests = (*scenario.requests[:index], smaller, *scenario.requests[index + 1 :])
            for blocks in range(4):
                fitted = replace(
                    config,
                    max_num_batched_tokens=tokens,
                    num_speculative_tokens=drafts,
                    num_kv_blocks=config.num_kv_blocks - blocks,
                )
                yield replace(scenario, config=with_sizes(fitted, rows), requests=requests)


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
            close=None if request.close is None else max(0, request.close - 1),
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
