"""Make a case smaller by leaving parts of it out.

Hypothesis shrinks what it draws. A feature that it cannot delete without moving the ones behind it
stays; here it becomes text, and everything else keeps its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from string import ascii_uppercase
from typing import TypeVar

from proofs.search.reduce import reduce
from spec.errors import InputError
from spec.functions.cases import (
    BookCase,
    BookOperation,
    Case,
    EncoderOutput,
    FreeCase,
    GatherCase,
    GatherRequest,
    RowRangeCase,
    WindowCase,
)
from spec.record.feature import Feature, rows_by_identifier

Features = tuple[Feature, ...]
Positions = frozenset[int]


def cases_without_a_token(case: Case) -> Iterator[Case]:
    """Every case with one token less, valid or not.

    A token of a content goes from all its occurrences, so that equal identifiers still stand for
    equal contents.
    """
    match case:
        case GatherCase():
            for left_out in _choices([request.features for request in case.requests]):
                yield _gather_without(case, left_out)
        case FreeCase():
            for (out,) in _choices([case.features]):
                yield replace(
                    case,
                    features=_without(case.features, out),
                    progress=tuple(
                        replace(p, num_computed_tokens=_moved(p.num_computed_tokens, out))
                        for p in case.progress
                    ),
                )
        case BookCase():
            for left_out in _choices(case.requests):
                pairs = zip(case.requests, left_out, strict=True)
                yield replace(case, requests=tuple(_without(f, out) for f, out in pairs))
        case WindowCase():
            for (out,) in _choices([case.features]):
                yield WindowCase(
                    _without(case.features, out),
                    _moved(case.start, out),
                    _moved(case.end, out),
                )
        case RowRangeCase():
            for position in range(len(case.is_embed) if len(case.is_embed) > 1 else 0):
                removed = frozenset({position})
                mask = (*case.is_embed[:position], *case.is_embed[position + 1 :])
                yield RowRangeCase(mask, _moved(case.start, removed), _moved(case.end, removed))


def _choices(requests: Sequence[Features]) -> Iterator[list[Positions]]:
    """Positions to leave out of each request: one of a content, or one of the text."""
    lengths: dict[str, int] = {}
    for feature in (feature for features in requests for feature in features):
        lengths[feature.identifier] = max(lengths.get(feature.identifier, 0), feature.length)
    for identifier, length in lengths.items():
        for index in range(length):
            yield [
                frozenset(
                    feature.offset + index
                    for feature in features
                    if feature.identifier == identifier and index < feature.length
                )
                for features in requests
            ]
    for request, features in enumerate(requests):
        covered = {position for f in features for position in range(f.offset, f.end)}
        for position in range(features[-1].offset if features else 1):
            if position not in covered:
                yield [
                    frozenset({position}) if index == request else frozenset()
                    for index in range(len(requests))
                ]


def _moved(position: int, left_out: Positions) -> int:
    return position - sum(1 for gone in left_out if gone < position)


def _without(features: Features, left_out: Positions) -> Features:
    return tuple(_feature_without(feature, left_out) for feature in features)


def _feature_without(feature: Feature, left_out: Positions) -> Feature:
    offset, end = _moved(feature.offset, left_out), _moved(feature.end, left_out)
    mask = feature.is_embed
    if mask is not None:
        kept = (i for i in range(feature.length) if feature.offset + i not in left_out)
        mask = tuple(mask[index] for index in kept)
    return Feature(offset, end - offset, feature.identifier, mask)


def _gather_without(case: GatherCase, left_out: Sequence[Positions]) -> GatherCase:
    requests = []
    for request, out in zip(case.requests, left_out, strict=True):
        start = _moved(request.num_computed_tokens, out)
        end = _moved(request.num_computed_tokens + request.num_scheduled_tokens, out)
        requests.append(
            replace(
                request,
                num_computed_tokens=start,
                num_scheduled_tokens=end - start,
                prefill_len=_moved(request.prefill_len, out),
                features=_without(request.features, out),
            )
        )
    rows = {f.identifier: f.num_rows for request in requests for f in request.features}
    resident = tuple(
        EncoderOutput(output.identifier, rows.get(output.identifier, output.num_rows))
        for output in case.resident
    )
    return replace(case, requests=tuple(requests), resident=resident)


T = TypeVar("T")


def size(case: Case) -> tuple[int, int, str]:
    """A total order of cases: with fewer limits on takes first, then what is shorter to write."""
    text = repr(case)
    return _num_limits(case), len(text), text


def _num_limits(case: Case) -> int:
    if not isinstance(case, BookCase):
        return 0
    return sum((o.encoder_budget is not None) + (o.num_rows_chosen > 0) for o in case.operations)


def reduce_case(
    case: Case, condition: Callable[[Case], bool], may_try: Callable[[], bool] = lambda: True
) -> Case:
    """The smallest case that is reached by leaving out one part after the other.

    Args:
        condition: what every step must still meet.
        may_try: asked before each try; see :func:`proofs.search.reduce.reduce`.
    """
    return reduce(
        case,
        condition,
        candidates=smaller_cases,
        size=size,
        is_allowed=_is_valid,
        may_try=may_try,
    )


def smaller_cases(case: Case) -> Iterator[Case]:
    """Every case with one part or one token less, valid or not."""
    match case:
        case GatherCase():
            yield from _smaller_gathers(case)
        case FreeCase():
            yield from _smaller_frees(case)
        case BookCase():
            yield from _smaller_books(case)
        case WindowCase():
            for features in _each_left_out(case.features):
                yield replace(case, features=features)
            yield replace(case, features=_renamed(case.features, _names(case.features)))
        case RowRangeCase():
            pass
    yield from cases_without_a_token(case)


def _is_valid(case: Case) -> bool:
    """Whether an engine can come to the case: it asks the book for features with rows only."""
    try:
        case.validate()
    except InputError:
        return False
    match case:
        case FreeCase():
            return all(feature.num_rows for feature in case.features)
        case BookCase():
            return all(feature.num_rows for request in case.requests for feature in request)
        case _:
            return True


def _each_left_out(parts: Sequence[T]) -> Iterator[tuple[T, ...]]:
    for index in range(len(parts)):
        yield (*parts[:index], *parts[index + 1 :])


def _names(features: Sequence[Feature]) -> dict[str, str]:
    """New identifiers ``A``, ``B``... by old ones, in order of appearance."""
    return dict(zip(dict.fromkeys(f.identifier for f in features), ascii_uppercase, strict=False))


def _renamed(
    features: Sequence[Feature], names: dict[str, str] | None = None
) -> tuple[Feature, ...]:
    """The features with identifiers ``A``, ``B``... in order of appearance."""
    names = _names(features) if names is None else names
    return tuple(replace(f, identifier=names.get(f.identifier, f.identifier)) for f in features)


def _smaller_gathers(case: GatherCase) -> Iterator[Case]:
    for requests in _each_left_out(case.requests):
        yield replace(case, requests=requests)
    for index, request in enumerate(case.requests):
        for smaller in _smaller_requests(request):
            changed = (*case.requests[:index], smaller, *case.requests[index + 1 :])
            yield replace(case, requests=changed)
    for resident in _each_left_out(case.resident):
        yield replace(case, resident=resident)
    names = _names([f for request in case.requests for f in request.features])
    yield replace(
        case,
        requests=tuple(replace(r, features=_renamed(r.features, names)) for r in case.requests),
        resident=tuple(
            replace(output, identifier=names.get(output.identifier, output.identifier))
            for output in case.resident
        ),
    )


def _smaller_requests(request: GatherRequest) -> Iterator[GatherRequest]:
    for features in _each_left_out(request.features):
        yield replace(request, features=features)
    last = max((feature.end for feature in request.features), default=1)
    processed = request.num_computed_tokens + request.num_scheduled_tokens
    yield replace(request, prefill_len=max(last, processed))


def _smaller_frees(case: FreeCase) -> Iterator[Case]:
    for features in _each_left_out(case.features):
        yield replace(case, features=features)
    for progress in _each_left_out(case.progress):
        yield replace(case, progress=progress)
    yield replace(case, features=_renamed(case.features, _names(case.features)))
    sizes = (
        [feature.num_rows for feature in case.features]
        if case.is_encoder_decoder
        else list(rows_by_identifier(case.features).values())
    )
    yield replace(case, cache_size=sum(sizes))


def _smaller_books(case: BookCase) -> Iterator[Case]:
    """Calls go with their feature or request only: a drop without its take is not an engine's."""
    for index, request in enumerate(case.requests):
        yield _without_request(case, index)
        for feature in range(len(request)):
            yield _without_feature(case, index, feature)
    for index, operation in enumerate(case.operations):
        for weaker in _smaller_limits(operation):
            operations = (*case.operations[:index], weaker, *case.operations[index + 1 :])
            yield replace(case, operations=operations)
    names = _names([feature for request in case.requests for feature in request])
    yield replace(case, requests=tuple(_renamed(request, names) for request in case.requests))


def _smaller_limits(operation: BookOperation) -> Iterator[BookOperation]:
    """Without one limit, or with one limit a row less, so that the item can have a row less."""
    if operation.encoder_budget is not None:
        yield replace(operation, encoder_budget=None)
        yield replace(operation, encoder_budget=operation.encoder_budget - 1)
    if operation.num_rows_chosen:
        yield replace(operation, num_rows_chosen=0)
        yield replace(operation, num_rows_chosen=operation.num_rows_chosen - 1)


def _without_request(case: BookCase, left_out: int) -> BookCase:
    def moved(operation: BookOperation) -> BookOperation:
        behind = operation.request > left_out
        return replace(operation, request=operation.request - 1) if behind else operation

    return replace(
        case,
        requests=(*case.requests[:left_out], *case.requests[left_out + 1 :]),
        operations=tuple(moved(o) for o in case.operations if o.request != left_out),
    )


def _without_feature(case: BookCase, request: int, left_out: int) -> BookCase:
    def moved(operation: BookOperation) -> BookOperation:
        behind = operation.request == request and operation.feature > left_out
        return replace(operation, feature=operation.feature - 1) if behind else operation

    features = case.requests[request]
    kept = (*features[:left_out], *features[left_out + 1 :])
    return replace(
        case,
        requests=(*case.requests[:request], kept, *case.requests[request + 1 :]),
        operations=tuple(
            moved(operation)
            for operation in case.operations
            if operation.action not in ("take", "drop")
            or (operation.request, operation.feature) != (request, left_out)
        ),
    )
