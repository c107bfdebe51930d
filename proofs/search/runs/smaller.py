"""Requests with one thing less: an item, a turn, an answer, a token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from spec.record.feature import Feature
from spec.record.scenario import Continuation, Scenario, ScenarioRequest

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
            others = requests[1:index] + requests[index + 1 :]
            yield replace(scenario, requests=(joined, *others))


def _joined(request: ScenarioRequest, other: Turn) -> ScenarioRequest:
    """The request with the tokens of both in its prompt."""
    moved = tuple(replace(f, offset=f.offset + request.num_prompt_tokens) for f in other.features)
    both = request.contents and other.contents
    return replace(
        request,
        num_prompt_tokens=request.num_prompt_tokens + other.num_prompt_tokens,
        features=request.features + moved,
        contents=request.contents + other.contents if both else (),
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
    first, *others = request.continuations
    return replace(
        _joined(request, first), max_tokens=first.max_tokens, continuations=tuple(others)
    )


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
