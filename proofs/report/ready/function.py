"""A test file for upstream that fails on the release with the finding and passes without it.

It holds the smallest case as literals, what the claim asks for as the oracle computes it, and the
call of the real function in the forms of all covered releases; it needs nothing of this project.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from proofs.report.ready.part_names import broken_assumption
from proofs.report.ready.reach import reach_of
from proofs.report.text.literals import (
    LINE_LENGTH,
    allow_long_strings,
    printable,
    wrapped,
)
from proofs.report.text.templates import text_templates
from spec.claims.texts import function_claim
from spec.functions.book import SpecBook, SpecEncoderDecoderBook
from spec.functions.cases import BookCase, FreeCase, GatherCase, RowRangeCase, WindowCase
from spec.functions.findings import Finding
from spec.functions.gather import InteriorMiss, expected_gather
from spec.record.feature import Feature
from spec.rules.geometry import meets

_MERGE_DIFFERS = "merged embeddings differ"

PlainFeature = tuple[str, int, int, list[bool] | None]


def ready_test(finding: Finding, part: str, name: str) -> str:
    """The text of the test file.

    Args:
        finding: what was found.
        part: the part it was found on, such as ``V2``.
        name: the test function's name, without ``test_``.
    """
    values: dict[str, Any] = {
        "docstring": _docstring(finding, part),
        "test_name": name,
        "claim": finding.claim,
        "case": finding.case,
    }
    match finding.case:
        case GatherCase() as case:
            template = "gather.py.jinja"
            values |= _gather_values(finding, case, part)
        case FreeCase() as case:
            template = "free.py.jinja"
            values |= {
                "book_class": _book_class(case.is_encoder_decoder),
                "features": _plain(case.features),
                "is_limited": False,
                "progress": [
                    (
                        moment.num_computed_tokens,
                        moment.num_output_placeholders,
                        moment.num_drafts_in_flight,
                    )
                    for moment in case.progress
                ],
            }
        case BookCase() as case:
            template = "book.py.jinja"
            values |= {
                "book_class": _book_class(case.is_encoder_decoder),
                "is_encoder_decoder": case.is_encoder_decoder,
                "requests": [_plain(features) for features in case.requests],
                "operations": _operations(case, finding.claim == "book-exact"),
                "is_limited": _is_limited(case),
            }
        case WindowCase() as case:
            template = "window.py.jinja"
            values |= {
                "features": _plain(case.features),
                "expected": [
                    index
                    for index, feature in enumerate(case.features)
                    if meets(feature.offset, feature.length, case.start, case.end)
                ],
            }
        case RowRangeCase() as case:
            template = "row_range.py.jinja"
            values |= {"mask": list(case.is_embed)}
    return allow_long_strings(text_templates().get_template(template).render(values))


def _docstring(finding: Finding, part: str) -> str:
    broken = broken_assumption(part)
    claim = function_claim(finding.claim)
    reach = reach_of(finding)
    first = f"{claim.sentence[0].upper()}{claim.sentence[1:]}."
    observed, expected = finding.observed.rstrip("."), finding.expected.rstrip(".")
    seen = f"Observed: {observed}. Asked for: {expected}."
    paragraphs = [
        wrapped(f"Found on {finding.target}. {seen}"),
        wrapped(f"Why it matters: {claim.why}. Numbers are pull requests and issues."),
        wrapped(f"Reached in default settings: {reach.answer}; {reach.sentence}."),
    ]
    if broken is not None:
        paragraphs.insert(1, wrapped(f"The case breaks on purpose that {broken.sentence}."))
    opening = textwrap.fill(printable(first), LINE_LENGTH, initial_indent='"""')
    return "\n\n".join([opening, *paragraphs]) + '\n"""'


def _book_class(is_encoder_decoder: bool) -> str:
    return "EncoderDecoderCacheManager" if is_encoder_decoder else "EncoderCacheManager"


def _plain(features: Sequence[Feature]) -> list[PlainFeature]:
    return [
        (
            feature.identifier,
            feature.offset,
            feature.length,
            None if feature.is_embed is None else list(feature.is_embed),
        )
        for feature in features
    ]


def _gather_values(finding: Finding, case: GatherCase, part: str) -> dict[str, Any]:
    compares = finding.claim == "runners-agree"
    expected = expected_gather(case)
    values: dict[str, Any] = {
        "runners": ["V1", "V2"] if compares else [part],
        "compares_runners": compares,
        "checks_merge": finding.mechanism == _MERGE_DIFFERS,
        "look_ahead": case.draft_lookahead,
        "requests": [
            {
                "num_computed_tokens": request.num_computed_tokens,
                "num_scheduled_tokens": request.num_scheduled_tokens,
                "prefill_len": request.prefill_len,
                "features": _plain(request.features),
            }
            for request in case.requests
        ],
        "resident": {output.identifier: output.num_rows for output in case.resident},
        "missing": None,
    }
    if isinstance(expected, InteriorMiss):
        return values | {"missing": expected.identifier, "checks_merge": False}
    return values | {
        "expected_mask": list(expected.mask),
        "expected_rows": [(row.identifier, row.row) for row in expected.rows],
    }


def _is_limited(case: BookCase) -> bool:
    """Whether a take has an encoder budget, or room to leave for what was chosen before it."""
    return any(o.encoder_budget is not None or o.num_rows_chosen for o in case.operations)


def _operations(case: BookCase, with_answers: bool) -> list[tuple[Any, ...]]:
    plain: list[tuple[Any, ...]] = [
        (operation.action, operation.request, operation.feature) for operation in case.operations
    ]
    if _is_limited(case):
        plain = [
            (*values, operation.encoder_budget, operation.num_rows_chosen)
            for values, operation in zip(plain, case.operations, strict=True)
        ]
    if not with_answers:
        return plain
    answers = _encoder_decoder_answers(case) if case.is_encoder_decoder else _answers(case)
    return [(*operation, answer) for operation, answer in zip(plain, answers, strict=True)]


def _answers(case: BookCase) -> Iterator[str | list[str]]:
    """What the oracle's book answers to each operation; notices for the end of a pass."""
    book = SpecBook(case.cache_size)
    for operation in case.operations:
        occurrence = (operation.request, operation.feature)
        answer: str | list[str] = "done"
        match operation.action:
            case "take":
                feature = case.requests[operation.request][operation.feature]
                answer = book.take(
                    occurrence, feature, operation.encoder_budget, operation.num_rows_chosen
                )
            case "drop":
                book.drop(occurrence)
            case "finish":
                for taken in book.occurrences_of(operation.request):
                    book.drop(taken)
            case "end_pass":
                answer = sorted(book.end_pass())
            case "reset":
                book.reset()
        yield answer


def _encoder_decoder_answers(case: BookCase) -> Iterator[str]:
    book = SpecEncoderDecoderBook(case.cache_size)
    for operation in case.operations:
        occurrence = (operation.request, operation.feature)
        answer = "done"
        match operation.action:
            case "take":
                feature = case.requests[operation.request][operation.feature]
                answer = book.take(
                    occurrence, feature, operation.encoder_budget, operation.num_rows_chosen
                )
            case "drop":
                book.drop(occurrence)
            case "finish":
                book.finish(operation.request)
            case "reset":
                book.reset()
        yield answer
