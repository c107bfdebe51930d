"""Scenarios next to one: one number changed by one, so that the edge of a fault can be seen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from proofs.describe.shape import all_blocks
from proofs.describe.words import counted
from proofs.report.text.letters import letters_of_scenario
from spec.errors import InputError
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest

MOST_VARIATIONS = 48
"""Neighbours that are run of one scenario, at each distance."""

_SETTINGS: tuple[tuple[str, str, str], ...] = (
    ("encoder_cache_size", "row", "a cache of {}"),
    ("max_num_batched_tokens", "token", "a budget of {} in a pass"),
    ("encoder_compute_budget", "row", "an encoder budget of {}"),
    ("num_kv_blocks", "KV block", "{}"),
    ("max_num_seqs", "request", "at most {} running"),
    ("long_prefill_token_threshold", "token", "prefill chunks of at most {}"),
    ("block_alignment", "token", "chunks aligned to {}"),
    ("scheduler_lookahead", "token", "a scheduler that looks {} ahead"),
    ("gather_lookahead", "token", "a drafter that reads {} ahead"),
    ("num_speculative_tokens", "draft token", "{}"),
    ("async_depth", "pass", "{} scheduled ahead"),
)
"""Settings that are varied: what they count, and in which words."""
_WORDS_FOR_NONE = {
    "long_prefill_token_threshold": "no threshold on long prefills",
    "block_alignment": "no alignment of chunks",
}
"""Settings for which 0 means that there is no such limit."""
_ONLY_WHEN_SET = (
    "long_prefill_token_threshold",
    "block_alignment",
    "scheduler_lookahead",
    "gather_lookahead",
    "num_speculative_tokens",
)


@dataclass(frozen=True)
class Variation:
    """A scenario that differs in one number, and in words how."""

    what: str
    scenario: Scenario


def variations(scenario: Scenario, distance: int) -> tuple[Variation, ...]:
    """Legal scenarios that differ in one number by so much, the likeliest to matter first.

    Args:
        scenario: the scenario.
        distance: by how much.
    """
    found: dict[Scenario, str] = {}
    for what, candidate in _candidates(scenario, distance):
        if len(found) == MOST_VARIATIONS:
            break
        if candidate == scenario or candidate in found or not _is_legal(candidate, scenario):
            continue
        found[candidate] = what
    return tuple(Variation(what, candidate) for candidate, what in found.items())


def _is_legal(candidate: Scenario, scenario: Scenario) -> bool:
    try:
        candidate.validate()
    except InputError:
        return False
    # A hash may get one content again; that it loses it would be another kind of run.
    return candidate.content_is_hashed or not scenario.content_is_hashed


def _candidates(scenario: Scenario, distance: int) -> Iterator[tuple[str, Scenario]]:
    for by in (distance, -distance):
        yield from _settings(scenario, by, ("encoder_cache_size",))
        yield from _places(scenario, by)
    others = tuple(name for name, *_ in _SETTINGS if name != "encoder_cache_size")
    for by in (distance, -distance):
        yield from _settings(scenario, by, others)
        yield from _numbers(scenario, by)


def _settings(
    scenario: Scenario, by: int, names: tuple[str, ...]
) -> Iterator[tuple[str, Scenario]]:
    for name, noun, words in _SETTINGS:
        old = getattr(scenario.config, name)
        if name not in names or old + by < 0 or (name in _ONLY_WHEN_SET and not old):
            continue
        if by > 0 and old >= _plenty(scenario, name):
            continue
        config = replace(scenario.config, **{name: old + by})
        number = counted(old + by, noun, "passes" if noun == "pass" else None)
        change = (
            words.format(number) if old + by else _WORDS_FOR_NONE.get(name, words.format(number))
        )
        yield f"{change} instead of {old}", replace(scenario, config=config)


def _plenty(scenario: Scenario, name: str) -> int:
    """From what on more of a limit changes nothing."""
    config, requests = scenario.config, scenario.requests
    match name:
        case "encoder_cache_size" | "encoder_compute_budget":
            return sum(f.num_rows for request in requests for f in request.all_features())
        case "num_kv_blocks":
            return all_blocks(config, requests)
        case "max_num_seqs":
            return len(requests)
        case "max_num_batched_tokens":
            return sum(request.most_tokens for request in requests)
    return sys.maxsize


def _places(scenario: Scenario, by: int) -> Iterator[tuple[str, Scenario]]:
    """Items moved against the tokens before them, and items of another length."""
    if scenario.config.is_encoder_decoder:
        return
    letters = letters_of_scenario(scenario)
    for index, request in enumerate(scenario.requests):
        of_request = "" if len(scenario.requests) == 1 else f" of request {index}"
        for place, feature in enumerate(request.features):
            label = f"{letters[feature.identifier]}[{feature.offset},{feature.end}){of_request}"
            before = request.features[place - 1].end if place else 0
            gap = feature.offset - before
            if gap + by >= 0:
                moved = _moved(request, place, by)
                change = f"{counted(gap + by, 'token')} instead of {gap} before {label}"
                yield change, _with_request(scenario, index, moved)
            if feature.is_embed is None and feature.length + by > 0:
                longer = _resized(request, place, by)
                change = f"{label} of {counted(feature.length + by, 'token')} instead of "
                change += str(feature.length)
                yield change, _with_request(scenario, index, longer)


def _moved(request: ScenarioRequest, place: int, by: int) -> ScenarioRequest:
    """The request with the item and all behind it moved, in a prompt as much longer."""
    features = (
        *request.features[:place],
        *(_at(feature, feature.offset + by) for feature in request.features[place:]),
    )
    return _of_tokens(request, features, by)


def _resized(request: ScenarioRequest, place: int, by: int) -> ScenarioRequest:
    feature = request.features[place]
    features = (
        *request.features[:place],
        replace(feature, length=feature.length + by),
        *(_at(behind, behind.offset + by) for behind in request.features[place + 1 :]),
    )
    return _of_tokens(request, features, by)


def _at(feature: Feature, offset: int) -> Feature:
    return replace(feature, offset=max(offset, 0))


def _of_tokens(request: ScenarioRequest, features: tuple[Feature, ...], by: int) -> ScenarioRequest:
    tokens = max(request.num_prompt_tokens + by, 1)
    return replace(request, features=features, num_prompt_tokens=tokens)


def _numbers(scenario: Scenario, by: int) -> Iterator[tuple[str, Scenario]]:
    """Longer and shorter prompts and answers, sooner and later arrivals."""
    for index, request in enumerate(scenario.requests):
        subject = "the request" if len(scenario.requests) == 1 else f"request {index}"
        for name, words in (
            ("num_prompt_tokens", "a prompt of {} (tokens)"),
            ("max_tokens", "{} to generate (tokens)"),
            ("arrival", "an arrival before pass {}"),
        ):
            old = getattr(request, name)
            if old + by < 0:
                continue
            changed = replace(request, **{name: old + by})
            change = f"{words.format(old + by)} for {subject} instead of {old}"
            yield change, _with_request(scenario, index, changed)


def _with_request(scenario: Scenario, index: int, request: ScenarioRequest) -> Scenario:
    requests = (*scenario.requests[:index], request, *scenario.requests[index + 1 :])
    return replace(scenario, requests=requests)
