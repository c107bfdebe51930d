"""When a claim's premise happens in a case: without that, holding on the case means nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spec.functions.book import Occurrence, SpecBook
from spec.functions.cases import (
    BookCase,
    BookOperation,
    Case,
    FreeCase,
    GatherCase,
    Progress,
    RowRangeCase,
    WindowCase,
)
from spec.functions.gather import Gathered, InteriorMiss, expected_gather, read_features
from spec.functions.observations import Answer
from spec.monitor.functions.observed import in_common_domain
from spec.record.feature import Feature
from spec.rules.geometry import meets


def premise_happens(claim: str, case: Case) -> bool:
    """Whether the case puts the claim to the test.

    Raises:
        KeyError: the claim says nothing about cases of this kind.
    """
    match case:
        case GatherCase():
            return _GATHER[claim](case)
        case FreeCase():
            return _FREE[claim](case)
        case BookCase():
            return _BOOK[claim](case)
        case WindowCase():
            return _WINDOW[claim](case)
        case RowRangeCase():
            return _ROW_RANGE[claim](case)


def _returns_rows(case: GatherCase) -> bool:
    expected = expected_gather(case)
    return isinstance(expected, Gathered) and any(expected.mask)


def _tolerates_boundary_miss(case: GatherCase) -> bool:
    return isinstance(expected_gather(case), Gathered) and any(
        read.boundary and not read.resident for read in read_features(case)
    )


def _has_interior_miss(case: GatherCase) -> bool:
    return isinstance(expected_gather(case), InteriorMiss)


def _reads_resident_boundary(case: GatherCase) -> bool:
    return isinstance(expected_gather(case), Gathered) and any(
        read.boundary and read.resident for read in read_features(case)
    )


def _compares_runners(case: GatherCase) -> bool:
    return in_common_domain(case) and _returns_rows(case)


def _reads_without_miss(case: GatherCase) -> bool:
    return _returns_rows(case) and not _tolerates_boundary_miss(case)


_GATHER: dict[str, Callable[[GatherCase], bool]] = {
    "boundary-miss-tolerated": _tolerates_boundary_miss,
    "interior-miss-raises": _has_interior_miss,
    "rows-exact": _returns_rows,
    "mask-exact": _returns_rows,
    "boundary-used-when-resident": _reads_resident_boundary,
    "runners-agree": _compares_runners,
    "no-error": _reads_without_miss,
}


def _has_passed(case: FreeCase, moment: Progress, feature: Feature) -> bool:
    """Whether the request is done with the feature, on confirmed progress."""
    if case.is_encoder_decoder:
        return moment.num_computed_tokens > 0
    return feature.end <= moment.num_computed_tokens - moment.num_output_placeholders


def _lets_go(case: FreeCase) -> bool:
    return any(_has_passed(case, moment, f) for moment in case.progress for f in case.features)


def _passes_one_of_two_occurrences(case: FreeCase) -> bool:
    if case.is_encoder_decoder:
        return False
    return any(
        first.identifier == later.identifier
        and _has_passed(case, moment, first)
        and later.has_row_at_or_past(moment.num_computed_tokens - moment.num_drafts_in_flight)
        for moment in case.progress
        for index, first in enumerate(case.features)
        for later in case.features[index + 1 :]
    )


def _has_features(case: FreeCase) -> bool:
    return bool(case.features)


_FREE: dict[str, Callable[[FreeCase], bool]] = {
    "freed-not-needed": _lets_go,
    "held-until-last-use": _passes_one_of_two_occurrences,
    "slots-conserved": _lets_go,
    "no-error": _has_features,
}


@dataclass(frozen=True)
class BookEvent:
    """One operation of a case, as the oracle's book carries it out.

    Attributes:
        answer: the oracle's answer.
        evicted: identifiers that the operation evicts.
        reallocated: whether the operation allocates what was evicted in the same pass.
        let_go: occurrences that the operation lets go.
        still_taken: whether another occurrence of an entry that it lets go of stays taken.
    """

    operation: BookOperation
    answer: Answer
    evicted: tuple[str, ...] = ()
    reallocated: bool = False
    let_go: tuple[Occurrence, ...] = ()
    still_taken: bool = False


def book_events(case: BookCase) -> Iterator[BookEvent]:
    """Replay the case on the oracle's decoder-only book."""
    book = SpecBook(case.cache_size)
    for operation in case.operations:
        occurrence = (operation.request, operation.feature)
        match operation.action:
            case "take":
                feature = case.requests[operation.request][operation.feature]
                before = tuple(book.evicted)
                answer = book.take(
                    occurrence, feature, operation.encoder_budget, operation.num_rows_chosen
                )
                yield BookEvent(
                    operation,
                    answer,
                    evicted=tuple(book.evicted[len(before) :]),
                    reallocated=answer == "allocated" and feature.identifier in before,
                )
            case "drop":
                yield _let_go(book, operation, [occurrence])
            case "finish":
                yield _let_go(book, operation, book.occurrences_of(operation.request))
            case "end_pass":
                book.end_pass()
                yield BookEvent(operation, "done")
            case "reset":
                book.reset()
                yield BookEvent(operation, "done")


def _let_go(book: SpecBook, operation: BookOperation, occurrences: list[Occurrence]) -> BookEvent:
    holding = [
        (entry, occurrence)
        for occurrence in occurrences
        for entry in book.entries.values()
        if occurrence in entry.occurrences
    ]
    for occurrence in occurrences:
        book.drop(occurrence)
    return BookEvent(
        operation,
        "done",
        let_go=tuple(occurrence for _, occurrence in holding),
        still_taken=any(entry.occurrences for entry, _ in holding),
    )


def _allocates(case: BookCase) -> bool:
    return any(event.answer == "allocated" for event in book_events(case))


def _takes_and_lets_go(case: BookCase) -> bool:
    if case.is_encoder_decoder:
        actions = [operation.action for operation in case.operations]
        last = max((i for i, a in enumerate(actions) if a in ("drop", "finish")), default=0)
        return "take" in actions[:last]
    return any(event.let_go for event in book_events(case))


def _counts_slots(case: BookCase) -> bool:
    if not case.content_is_hashed:
        return any(event.answer == "rejected" for event in book_events(case))
    return _takes_and_lets_go(case) if case.is_encoder_decoder else _allocates(case)


def _ends_pass_after_eviction(case: BookCase) -> bool:
    evicted = False
    for event in book_events(case):
        evicted = evicted or bool(event.evicted)
        if event.operation.action == "end_pass" and evicted:
            return True
        if event.operation.action == "reset":
            evicted = False
    return False


def _lets_go_of_one_of_two(case: BookCase) -> bool:
    return any(event.still_taken for event in book_events(case))


def _answers_beyond_allocation(case: BookCase) -> bool:
    if case.is_encoder_decoder:
        return any(operation.action == "take" for operation in case.operations)
    return any(event.answer in ("hit", "refused") or event.evicted for event in book_events(case))


def _has_operations(case: BookCase) -> bool:
    return bool(case.operations)


_BOOK: dict[str, Callable[[BookCase], bool]] = {
    "slots-conserved": _counts_slots,
    "evicted-not-live": _ends_pass_after_eviction,
    "released": _takes_and_lets_go,
    "held-until-last-use": _lets_go_of_one_of_two,
    "book-exact": _answers_beyond_allocation,
    "no-error": _has_operations,
}


def _meets_any(case: WindowCase) -> bool:
    return any(meets(f.offset, f.length, case.start, case.end) for f in case.features)


def _takes_rows_somewhere(case: RowRangeCase) -> bool:
    return any(case.is_embed)


_WINDOW: dict[str, Callable[[WindowCase], bool]] = {"window-exact": _meets_any}
_ROW_RANGE: dict[str, Callable[[RowRangeCase], bool]] = {"row-range-exact": _takes_rows_somewhere}
