"""The monitor accepts what the oracles say, and rejects every change of it, field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import groupby

import pytest
from hypothesis.strategies import SearchStrategy

from proofs.search.functions import strategies
from spec.functions.book import SpecBook
from spec.functions.cases import (
    BookCase,
    BookOperation,
    Case,
    FreeCase,
    GatherCase,
    GatherRequest,
    RowRangeCase,
    WindowCase,
)
from spec.functions.gather import InteriorMiss, expected_gather
from spec.functions.observations import (
    Answer,
    BookObservation,
    BookState,
    BookStep,
    FreeMoment,
    FreeObservation,
    GatherObservation,
    Observation,
    RangeObservation,
    RowIdentity,
    request_name,
)
from spec.monitor.functions.observed import check, check_runners_agree, in_common_domain
from spec.record.feature import Feature
from spec.record.steps import ErrorSeen
from spec.rules.free import reference_may_go
from spec.rules.geometry import count_rows_before, meets

Draw = Callable[[SearchStrategy[Case], int], list[Case]]

STRATEGIES = {
    "gather": strategies.gather_cases(),
    "free": strategies.free_cases(),
    "book": strategies.book_cases(),
    "book of unlike contents": strategies.book_cases(content_is_hashed=False),
    "encoder-decoder book": strategies.encoder_decoder_book_cases(),
    "window": strategies.window_cases(),
    "row range": strategies.row_range_cases(),
}

TAKEN_AND_LET_GO = BookCase(
    4, ((Feature(0, 4, "A"),),), (BookOperation("take"), BookOperation("drop"))
)


def observe(case: Case) -> Observation:
    """What a target sees that does exactly what the oracles say."""
    match case:
        case GatherCase():
            return _gather(case)
        case FreeCase():
            return _encoder_decoder_free(case) if case.is_encoder_decoder else _free(case)
        case BookCase():
            return _encoder_decoder_book(case) if case.is_encoder_decoder else _book(case)
        case WindowCase():
            met = [
                index
                for index, f in enumerate(case.features)
                if meets(f.offset, f.length, case.start, case.end)
            ]
            return RangeObservation(met[0], met[-1] + 1) if met else RangeObservation(0, 0)
        case RowRangeCase():
            return RangeObservation(
                count_rows_before(case.is_embed, case.start),
                count_rows_before(case.is_embed, case.end),
            )


def _gather(case: GatherCase) -> GatherObservation:
    expected = expected_gather(case)
    if isinstance(expected, InteriorMiss):
        return GatherObservation(error=ErrorSeen("RuntimeError", f"miss: {expected.identifier}."))
    slices = [
        len(list(rows)) for row, rows in groupby(expected.positions, _identifier) if row is not None
    ]
    return GatherObservation(expected.rows, tuple(slices), expected.mask, expected.positions)


def _identifier(row: RowIdentity | None) -> str | None:
    return None if row is None else row.identifier


def _state(book: SpecBook) -> BookState:
    references = tuple(
        (name, tuple(sorted({request_name(request) for request, _ in entry.occurrences})))
        for name, entry in book.entries.items()
    )
    return BookState(references, book.num_free_slots, book.num_freeable_slots)


def _free(case: FreeCase) -> FreeObservation:
    book = SpecBook(case.cache_size)
    for index, feature in enumerate(case.features):
        book.take((0, index), feature)
    moments: list[FreeMoment] = []
    held = set(range(len(case.features)))
    for moment in case.progress:
        dropped = [
            index
            for index in sorted(held)
            if reference_may_go(
                case.features[index].offset,
                case.features[index].length,
                moment.num_computed_tokens,
                moment.num_output_placeholders,
                0,
                False,
            )
        ]
        for index in dropped:
            book.drop((0, index))
        held -= set(dropped)
        moments.append(FreeMoment(tuple(dropped), _state(book)))
    return FreeObservation(tuple(moments))


def _encoder_decoder_free(case: FreeCase) -> FreeObservation:
    moments: list[FreeMoment] = []
    held = sum(feature.num_rows for feature in case.features)
    for moment in case.progress:
        goes = held > 0 and moment.num_computed_tokens > 0
        held = 0 if goes else held
        dropped = tuple(range(len(case.features))) if goes else ()
        moments.append(FreeMoment(dropped, BookState((), case.cache_size - held, None)))
    return FreeObservation(tuple(moments))


def _book(case: BookCase) -> BookObservation:
    book, steps = SpecBook(case.cache_size), []
    for operation in case.operations:
        occurrence = operation.request, operation.feature
        answer: Answer = "done"
        notices: tuple[str, ...] = ()
        match operation.action:
            case "take":
                feature = case.requests[operation.request][operation.feature]
                answer = book.take(
                    occurrence, feature, operation.encoder_budget, operation.num_rows_chosen
                )
            case "drop":
                book.drop(occurrence)
            case "finish":
                for held in book.occurrences_of(operation.request):
                    book.drop(held)
            case "end_pass":
                notices = tuple(sorted(book.end_pass()))
            case "reset":
                book.reset()
        steps.append(BookStep(answer, notices, _state(book)))
    return BookObservation(tuple(steps))


def _encoder_decoder_book(case: BookCase) -> BookObservation:
    held: dict[tuple[int, int], int] = {}
    steps = []
    for operation in case.operations:
        occurrence = operation.request, operation.feature
        answer: Answer = "done"
        if operation.action == "take":
            rows = case.requests[operation.request][operation.feature].num_rows
            budget = rows if operation.encoder_budget is None else operation.encoder_budget
            needed = rows + operation.num_rows_chosen + sum(held.values())
            fits = rows <= budget and needed <= case.cache_size
            answer = "allocated" if fits else "refused"
            if answer == "allocated":
                held[occurrence] = rows
        elif operation.action == "drop":
            held.pop(occurrence, None)
        elif operation.action == "finish":
            held = {o: rows for o, rows in held.items() if o[0] != operation.request}
        elif operation.action == "reset":
            held.clear()
        state = BookState((), case.cache_size - sum(held.values()), None)
        steps.append(BookStep(answer, (), state))
    return BookObservation(tuple(steps))


def _with(parts: tuple[object, ...], index: int, part: object) -> tuple[object, ...]:
    return (*parts[:index], part, *parts[index + 1 :])


def _mutants(case: Case, seen: Observation) -> Iterator[tuple[str, Observation]]:
    match case, seen:
        case GatherCase(), GatherObservation():
            yield from _gather_mutants(seen)
        case FreeCase(), FreeObservation():
            yield from _free_mutants(case, seen)
        case BookCase(), BookObservation():
            yield from _book_mutants(case, seen)
        case _, RangeObservation():
            yield "error", replace(seen, error=ErrorSeen("IndexError", "out of range"))
            if seen.low < seen.high or isinstance(case, RowRangeCase):
                yield "low", replace(seen, low=seen.low - 1)
                yield "high", replace(seen, high=seen.high + 1)
            if seen.low < seen.high:
                yield "low", replace(seen, low=seen.low + 1)
                yield "high", replace(seen, high=seen.high - 1)


def _gather_mutants(seen: GatherObservation) -> Iterator[tuple[str, Observation]]:
    other_error = ErrorSeen("ValueError", "shapes do not match")
    if seen.error is not None:
        yield "error", replace(seen, error=other_error)
        yield "error", GatherObservation()
        return
    yield "error", GatherObservation(error=other_error)
    yield "mask", replace(seen, mask=(*seen.mask, False))
    yield "mask", replace(seen, mask=seen.mask[:-1])
    stranger = RowIdentity("unrecognised", -1)
    yield "rows", replace(seen, rows=(*seen.rows, stranger))
    for index, takes_row in enumerate(seen.mask):
        yield "mask", replace(seen, mask=_with(seen.mask, index, not takes_row))  # type: ignore[arg-type]
        merged = stranger if seen.merged[index] is None else None
        yield "merged", replace(seen, merged=_with(seen.merged, index, merged))  # type: ignore[arg-type]
    for index, row in enumerate(seen.rows):
        moved = replace(row, row=row.row + 1)
        yield "rows", replace(seen, rows=_with(seen.rows, index, moved))  # type: ignore[arg-type]
        yield "rows", replace(seen, rows=seen.rows[:index] + seen.rows[index + 1 :])


def _state_mutants(state: BookState) -> Iterator[tuple[str, BookState]]:
    yield "free slots", replace(state, num_free_slots=state.num_free_slots + 1)
    yield "free slots", replace(state, num_free_slots=state.num_free_slots - 1)
    if state.num_freeable_slots is not None:
        yield "freeable slots", replace(state, num_freeable_slots=state.num_freeable_slots + 1)


def _free_mutants(case: FreeCase, seen: FreeObservation) -> Iterator[tuple[str, Observation]]:
    def at(index: int, moment: FreeMoment) -> FreeObservation:
        return FreeObservation(_with(seen.moments, index, moment))  # type: ignore[arg-type]

    yield "error", replace(seen, error=ErrorSeen("KeyError", "A"))
    gone: set[int] = set()
    for index, (moment, progress) in enumerate(zip(seen.moments, case.progress, strict=True)):
        gone |= set(moment.dropped)
        for name, state in _state_mutants(moment.book):
            yield name, at(index, replace(moment, book=state))
        floor = progress.num_computed_tokens - progress.num_drafts_in_flight
        for feature_index, feature in enumerate(case.features):
            kept = feature_index not in gone
            needed = feature.end > floor
            if case.is_encoder_decoder:
                needed = progress.num_computed_tokens == 0
            if kept and needed:
                dropped = (*moment.dropped, feature_index)
                yield "dropped", at(index, replace(moment, dropped=dropped))
            if kept and not case.is_encoder_decoder and feature.has_row_at_or_past(floor):
                lost = tuple(
                    (name, () if name == feature.identifier else holders)
                    for name, holders in moment.book.references
                )
                yield (
                    "references",
                    at(index, replace(moment, book=replace(moment.book, references=lost))),
                )


def _book_mutants(case: BookCase, seen: BookObservation) -> Iterator[tuple[str, Observation]]:
    def at(index: int, step: BookStep) -> BookObservation:
        return BookObservation(_with(seen.steps, index, step))  # type: ignore[arg-type]

    yield "error", replace(seen, error=ErrorSeen("AssertionError", ""))
    for index, step in enumerate(seen.steps):
        for name, state in _state_mutants(step.book):
            yield name, at(index, replace(step, book=state))
        if case.operations[index].action == "take":
            other_answer: Answer = "refused" if step.answer == "allocated" else "allocated"
            yield "answer", at(index, replace(step, answer=other_answer))
        if case.is_encoder_decoder:
            continue
        yield "notices", at(index, replace(step, notices=(*step.notices, "other")))
        for name, _ in step.book.references:
            yield "notices", at(index, replace(step, notices=(*step.notices, name)))
        for notice in step.notices:
            fewer = tuple(name for name in step.notices if name != notice)
            yield "notices", at(index, replace(step, notices=fewer))
        for place, (name, holders) in enumerate(step.book.references):
            for changed in (holders[1:] if holders else ("request-9",), (*holders, "request-9")):
                references = _with(step.book.references, place, (name, changed))
                state = replace(step.book, references=references)  # type: ignore[arg-type]
                yield "references", at(index, replace(step, book=state))
            fewer_entries = tuple(e for e in step.book.references if e[0] != name)
            state = replace(step.book, references=fewer_entries)
            yield "references", at(index, replace(step, book=state))


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_the_oracle_says_is_accepted(name: str, drawn: Draw) -> None:
    """Wrong: a false alarm on a correct target."""
    for case in drawn(STRATEGIES[name], 200):
        assert check(case, observe(case), "oracle") == ()


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_changed_field_is_rejected(name: str, drawn: Draw) -> None:
    """Wrong: a field that the monitor does not look at, where a fault can hide."""
    changed: dict[str, int] = {}
    for case in drawn(STRATEGIES[name], 120):
        seen = observe(case)
        for field, mutant in _mutants(case, seen):
            if mutant == seen:
                continue
            changed[field] = changed.get(field, 0) + 1
            assert check(case, mutant, "mutant"), (field, case, mutant)
    assert changed
    assert all(count > 5 for count in changed.values()), changed


@pytest.mark.parametrize("name", ["free", "book", "encoder-decoder book"])
def test_an_observation_cut_short_without_an_error_is_not_accepted(name: str, drawn: Draw) -> None:
    """Wrong: a target that stops answering passes for what it did not do."""
    for case in drawn(STRATEGIES[name], 60):
        seen = observe(case)
        if isinstance(seen, FreeObservation):
            short: Observation = FreeObservation(seen.moments[:-1])
        else:
            assert isinstance(seen, BookObservation)
            short = BookObservation(seen.steps[:-1])
        if short != seen:
            with pytest.raises(ValueError, match="observ"):
                check(case, short, "short")


def test_tensors_split_differently_break_the_agreement_only(drawn: Draw) -> None:
    """Wrong: V1 and V2 may differ in tensors, or one runner's own fault counts twice."""
    compared = 0
    for case in drawn(STRATEGIES["gather"], 400):
        assert isinstance(case, GatherCase)
        seen = _gather(case)
        split = replace(seen, slices=(1,) * len(seen.rows))
        found = check_runners_agree(case, seen, split, "oracle")
        if in_common_domain(case) and split != seen:
            compared += 1
            assert [finding.claim for finding in found] == ["runners-agree"]
            wrong = replace(split, rows=(*split.rows, RowIdentity("unrecognised", -1)))
            assert check_runners_agree(case, seen, wrong, "oracle") == ()
        else:
            assert found == ()
    assert compared > 20


@pytest.mark.parametrize("is_encoder_decoder", [False, True])
@pytest.mark.parametrize(
    ("budget", "chosen", "answer"),
    [(None, 0, "allocated"), (3, 0, "refused"), (4, 4, "allocated"), (None, 5, "refused")],
)
def test_a_take_is_held_to_its_limits(
    budget: int | None, chosen: int, answer: Answer, is_encoder_decoder: bool
) -> None:
    """Wrong: a book that encodes past its budget, or gives the same room twice, is right."""
    operations = (BookOperation("take", 0, 0, budget, chosen),)
    case = BookCase(8, ((Feature(0, 4, "A"),),), operations, is_encoder_decoder)
    claims = {}
    for seen in ("allocated", "refused"):
        unlimited = replace(case, cache_size=8 if seen == "allocated" else 3)
        operation = (BookOperation("take"),)
        (step,) = observe(replace(unlimited, operations=operation)).steps  # type: ignore[union-attr]
        free = 4 if seen == "allocated" else 8
        freeable = None if is_encoder_decoder else free
        state = replace(step.book, num_free_slots=free, num_freeable_slots=freeable)
        observation = BookObservation((replace(step, book=state),))
        claims[seen] = [found.claim for found in check(case, observation, "book")]
    other_answer = "refused" if answer == "allocated" else "allocated"
    assert claims[answer] == []
    assert claims[other_answer] in (["book-exact"], ["held-until-last-use"], ["released"])


def test_room_is_made_for_rows_chosen_before_and_a_hit_needs_none() -> None:
    """Wrong: the oracle evicts too little for what is allocated next, or refuses what is there."""
    book = SpecBook(8)
    a, b, c = (Feature(0, 2, name) for name in "ABC")
    for index, feature in enumerate((a, b)):
        book.take((index, 0), feature)
        book.drop((index, 0))
    assert book.take((0, 0), a, encoder_budget=0, num_rows_chosen=9) == "hit"
    assert book.take((2, 0), c, encoder_budget=2, num_rows_chosen=5) == "refused"
    assert book.evicted == []
    assert book.take((2, 0), c, encoder_budget=2, num_rows_chosen=3) == "allocated"
    assert book.evicted == ["B"]
    assert book.num_free_slots == 4


def test_observations_hold_raw_data_and_no_verdict() -> None:
    """Wrong: a target can say of itself that it is right, and be believed."""
    names = {
        field.name
        for kind in (GatherObservation, FreeObservation, BookObservation, RangeObservation)
        for field in fields(kind)
    }
    assert names == {"rows", "slices", "mask", "merged", "error", "moments", "steps", "low", "high"}


def test_totals_are_recomputed_from_contents() -> None:
    """Wrong: running totals that agree with each other and not with the contents are believed."""
    case = TAKEN_AND_LET_GO
    seen = _book(case)
    states = [replace(s, book=replace(s.book, num_free_slots=4)) for s in seen.steps]
    lying = BookObservation(
        tuple(replace(s, book=replace(s.book, num_freeable_slots=4)) for s in states)
    )
    assert [finding.claim for finding in check(case, lying, "liar")] == ["slots-conserved"]


def test_an_observation_of_another_kind_is_an_error() -> None:
    """Wrong: a case checked against an observation that has nothing to do with it."""
    with pytest.raises(TypeError, match="RangeObservation does not observe a BookCase"):
        check(TAKEN_AND_LET_GO, RangeObservation(0, 0), "mixed up")


def test_an_error_is_blamed_on_the_request_whose_range_lacks_the_hash() -> None:
    """Found with `window-search-late`: C lies at the boundary of one request and inside another."""
    features = (Feature(1, 3, "B"), Feature(6, 2, "C"))
    case = GatherCase(
        (GatherRequest(0, 5, 8, features), GatherRequest(0, 7, 11, features)), (), draft_lookahead=3
    )
    raised = GatherObservation(error=ErrorSeen("RuntimeError", "encoder output C is missing"))
    assert [finding.claim for finding in check(case, raised, "t")] == ["interior-miss-raises"]
