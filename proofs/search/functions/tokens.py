"""Leave one token out of a case: everything behind it moves up by one position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spec.functions.cases import (
    BookCase,
    Case,
    EncoderOutput,
    FreeCase,
    GatherCase,
    RowRangeCase,
    WindowCase,
)
from spec.record.feature import Feature

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
                one = frozenset({position})
                mask = (*case.is_embed[:position], *case.is_embed[position + 1 :])
                yield RowRangeCase(mask, _moved(case.start, one), _moved(case.end, one))


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
