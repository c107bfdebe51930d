"""The strategies draw valid cases only, and often enough the edges at which guards differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis.strategies import SearchStrategy

from proofs.search.functions import strategies
from proofs.search.functions.premises import BookEvent, book_events
from proofs.search.functions.reduce import reduce_case, size, smaller_cases
from proofs.search.functions.strategies import edges_of
from spec.errors import InputError
from spec.functions.cases import (
    BookCase,
    BookOperation,
    Case,
    FreeCase,
    GatherCase,
    RowRangeCase,
    WindowCase,
)
from spec.functions.gather import Gathered, InteriorMiss, expected_gather, read_features
from spec.record.feature import Feature

Draw = Callable[[SearchStrategy[Case], int], list[Case]]

ALL = {
    "gather": (strategies.gather_cases(), 800),
    "free": (strategies.free_cases(), 400),
    "free, features in the prompt": (strategies.free_cases(features_in_prompt=True), 300),
    "book": (strategies.book_cases(), 600),
    "book of unlike contents": (strategies.book_cases(content_is_hashed=False), 300),
    "encoder-decoder book": (strategies.encoder_decoder_book_cases(), 300),
    "window": (strategies.window_cases(), 400),
    "row range": (strategies.row_range_cases(), 300),
}
"""Every strategy, and how many cases of it are looked at."""


def _tally(cases: Iterable[Case], happens: Callable[[Case], Iterable[str]]) -> Counter[str]:
    return Counter(name for case in cases for name in set(happens(case)))


def _require(floors: dict[str, int], seen: Counter[str]) -> None:
    rare = {name: seen[name] for name, floor in floors.items() if seen[name] < floor}
    assert not rare, f"drawn too seldom: {rare}; all: {dict(seen)}"


@pytest.mark.parametrize("name", ALL)
def test_every_drawn_case_is_valid(name: str, drawn: Draw) -> None:
    """Wrong: a case that no engine could have produced, so that its findings mean nothing."""
    cases = drawn(*ALL[name])
    assert len(cases) >= 80
    for case in cases:
        case.validate()


def _gather_events(case: Case) -> Iterable[str]:
    assert isinstance(case, GatherCase)
    expected, reads = expected_gather(case), read_features(case)
    yield f"look-ahead {case.draft_lookahead}"
    if isinstance(expected, InteriorMiss):
        yield "interior miss"
    if isinstance(expected, Gathered):
        yield from (
            "resident boundary" if read.resident else "boundary miss"
            for read in reads
            if read.boundary
        )
    names = [{f.identifier for f in request.features} for request in case.requests]
    if any(a & b for i, a in enumerate(names) for b in names[i + 1 :]):
        yield "hash shared by requests"
    stored = {f.identifier for r in case.requests for f in r.features if f.num_rows}
    if len(stored) > 1:
        yield {0: "nothing resident", len(stored): "all resident"}.get(
            len(case.resident), "some resident"
        )
    for request in case.requests:
        yield from _layout_events(request.features)
        start = request.num_computed_tokens
        end = start + request.num_scheduled_tokens
        if start >= request.prefill_len:
            yield "decode" if len(case.requests) == 1 else "decode in a batch"
            continue
        for edge in edges_of(request.features):
            if abs(end - edge) <= 1:
                yield f"chunk ends {('on', 'after', 'before')[end - edge]} an edge"
            if abs(end + case.draft_lookahead - edge) <= 1:
                side = ("on", "after", "before")[end + case.draft_lookahead - edge]
                yield f"drafter's window ends {side} an edge"
        if any(f.offset < start < f.end for f in request.features):
            yield "start inside a feature"
        if end == request.prefill_len:
            yield "chunk ends the prefill"


def _layout_events(features: tuple[Feature, ...]) -> Iterable[str]:
    names = [feature.identifier for feature in features]
    if len(set(names)) < len(names):
        yield "duplicate within a request"
    for left, right in pairwise(features):
        yield "adjacent features" if left.end == right.offset else "gapped features"
    for mask in (feature.is_embed for feature in features):
        if mask is None:
            yield "dense feature"
        elif not any(mask):
            yield "feature without rows"
        else:
            yield from ("leading False",) * (not mask[0])
            yield from ("trailing False",) * (not mask[-1])


def test_gather_cases_reach_the_edges(drawn: Draw) -> None:
    """Wrong: a guard that is off by one is seldom or never put to the test."""
    seen = _tally(drawn(*ALL["gather"]), _gather_events)
    floors = {
        "boundary miss": 20,
        "resident boundary": 30,
        "interior miss": 25,
        "hash shared by requests": 50,
        "nothing resident": 15,
        "some resident": 30,
        "all resident": 30,
        "decode": 8,
        "decode in a batch": 30,
        "chunk ends on an edge": 100,
        "chunk ends before an edge": 60,
        "chunk ends after an edge": 60,
        "drafter's window ends on an edge": 60,
        "drafter's window ends before an edge": 60,
        "drafter's window ends after an edge": 60,
        "start inside a feature": 20,
        "chunk ends the prefill": 20,
        "duplicate within a request": 50,
        "adjacent features": 50,
        "gapped features": 50,
        "dense feature": 100,
        "feature without rows": 15,
        "leading False": 50,
        "trailing False": 50,
        **{f"look-ahead {look_ahead}": 25 for look_ahead in range(4)},
    }
    _require(floors, seen)


def _free_events(case: Case) -> Iterable[str]:
    assert isinstance(case, FreeCase)
    yield f"shift {case.scheduler_shift}"
    yield "encoder-decoder" if case.is_encoder_decoder else "decoder-only"
    yield from _layout_events(case.features)
    if len(case.progress) > 1:
        yield "several moments"
    for moment in case.progress:
        floor = moment.num_computed_tokens - moment.num_drafts_in_flight
        if moment.num_drafts_in_flight:
            yield "drafts in flight"
        if moment.num_output_placeholders > moment.num_drafts_in_flight:
            yield "placeholders beside drafts"
        for feature in case.features:
            if abs(floor - feature.end) <= 1:
                yield f"floor {('on', 'after', 'before')[floor - feature.end]} an end"
            if floor < feature.end <= moment.num_computed_tokens:
                yield "drafts over an end"


def test_free_cases_reach_the_edges(drawn: Draw) -> None:
    """Wrong: a free that is off by one, or forgets placeholders, passes."""
    seen = _tally(drawn(*ALL["free"]), _free_events)
    floors = {
        "encoder-decoder": 40,
        "decoder-only": 150,
        "duplicate within a request": 50,
        "several moments": 100,
        "drafts in flight": 100,
        "placeholders beside drafts": 80,
        "floor on an end": 80,
        "floor before an end": 30,
        "floor after an end": 30,
        "drafts over an end": 40,
        **{f"shift {shift}": 20 for shift in range(4)},
    }
    _require(floors, seen)


def test_features_in_prompt_keeps_drafts_behind_features(drawn: Draw) -> None:
    """Wrong: a violation that needs features past the prompt is reported without that remark."""
    cases = drawn(*ALL["free, features in the prompt"])
    seen = _tally(cases, _free_events)
    assert not seen["drafts over an end"]
    _require({"drafts in flight": 18, "floor on an end": 50}, seen)


def _limit_events(case: BookCase, event: BookEvent) -> Iterable[str]:
    operation = event.operation
    rows = case.requests[operation.request][operation.feature].num_rows
    if operation.encoder_budget is not None:
        yield f"budget {('exact', 'larger', 'too small')[operation.encoder_budget - rows]}"
    if operation.num_rows_chosen:
        yield f"{event.answer} with rows chosen before"


def _book_events(case: Case) -> Iterable[str]:
    assert isinstance(case, BookCase)
    evicted = False
    for event in book_events(case):
        yield event.answer
        evicted = evicted or bool(event.evicted)
        if event.evicted:
            yield "eviction"
        if event.reallocated:
            yield "evicted and allocated again in one pass"
        if event.operation.action == "take" and event.answer != "hit":
            yield from _limit_events(case, event)
        if event.still_taken:
            yield "one of two occurrences let go"
        if event.operation.action == "drop" and not event.let_go:
            yield "drop of what was not taken"
        if event.operation.action in ("reset", "finish"):
            yield event.operation.action
        if event.operation.action == "end_pass" and evicted:
            yield "pass with an eviction ends"


def test_book_cases_reach_the_edges(drawn: Draw) -> None:
    """Wrong: an eviction notice, a shared reference or a full cache is seldom put to the test."""
    seen = _tally(drawn(*ALL["book"]), _book_events)
    floors = {
        "allocated": 200,
        "hit": 150,
        "refused": 50,
        "eviction": 80,
        "evicted and allocated again in one pass": 25,
        "one of two occurrences let go": 40,
        "drop of what was not taken": 8,
        "pass with an eviction ends": 40,
        "reset": 30,
        "finish": 30,
        "budget exact": 10,
        "budget larger": 10,
        "budget too small": 10,
        "allocated with rows chosen before": 10,
        "refused with rows chosen before": 10,
    }
    _require(floors, seen)
    assert not seen["rejected"]


def test_book_cases_with_other_contents_meet_the_mismatch(drawn: Draw) -> None:
    """Wrong: the family that breaks hash-is-content never breaks it."""
    seen = _tally(drawn(*ALL["book of unlike contents"]), _book_events)
    _require({"rejected": 25}, seen)


def test_encoder_decoder_book_cases_take_once(drawn: Draw) -> None:
    """Wrong: an occurrence taken twice in a row, which no encoder-decoder engine does."""
    answers: Counter[str] = Counter()
    for case in drawn(*ALL["encoder-decoder book"]):
        assert isinstance(case, BookCase)
        assert case.is_encoder_decoder
        held: set[tuple[int, int]] = set()
        for operation in case.operations:
            occurrence = operation.request, operation.feature
            answers[operation.action] += 1
            if operation.action == "take":
                assert occurrence not in held
                held.add(occurrence)
            elif operation.action == "drop":
                held.discard(occurrence)
            elif operation.action == "finish":
                held = {o for o in held if o[0] != operation.request}
            elif operation.action == "reset":
                held.clear()
    assert min(answers[action] for action in ("take", "drop", "finish", "reset")) > 30


def test_window_and_row_range_cases_reach_the_edges(drawn: Draw) -> None:
    """Wrong: empty ranges, empty results and exact edges are not searched."""
    windows: Counter[str] = Counter()
    for case in drawn(*ALL["window"]):
        assert isinstance(case, WindowCase)
        edges = edges_of(case.features)
        windows["start on an edge"] += case.start in edges
        windows["end on an edge"] += case.end in edges
        windows["no feature"] += not case.features
        windows["start inside"] += any(f.offset < case.start < f.end for f in case.features)
    _require({"start on an edge": 50, "end on an edge": 50, "start inside": 20}, windows)
    ranges: Counter[str] = Counter()
    for case in drawn(*ALL["row range"]):
        assert isinstance(case, RowRangeCase)
        ranges["empty"] += case.start == case.end
        ranges["empty at the start"] += case.start == case.end == 0
        ranges["all"] += (case.start, case.end) == (0, len(case.is_embed))
    _require({"empty": 40, "empty at the start": 15, "all": 6}, ranges)


@pytest.mark.parametrize("name", ALL)
def test_smaller_cases_are_what_an_engine_could_see(name: str, drawn: Draw) -> None:
    """Wrong: a reduction that never ends, or one that leaves the domain of its claim."""
    for case in drawn(ALL[name][0], 30):
        reduced = reduce_case(case, lambda _: True)
        reduced.validate()
        assert size(reduced) <= size(case)
        assert not any(_is_smaller(candidate, reduced) for candidate in smaller_cases(reduced))


def _is_smaller(candidate: Case, than: Case) -> bool:
    try:
        candidate.validate()
    except InputError:
        return False
    if isinstance(candidate, BookCase) and any(
        feature.num_rows == 0 for request in candidate.requests for feature in request
    ):
        return False
    if isinstance(candidate, FreeCase) and any(f.num_rows == 0 for f in candidate.features):
        return False
    return size(candidate) < size(than)


def test_reduction_leaves_out_limits_first() -> None:
    """Wrong: a counterexample keeps a budget, or rows chosen before, that it does not need."""
    operations = (BookOperation("take", 0, 0, 4, 2), BookOperation("take", 1, 0, 3, 2))
    case = BookCase(8, ((Feature(0, 4, "A"),), (Feature(0, 4, "B"),)), operations)

    def exceeds_a_budget(candidate: Case) -> bool:
        assert isinstance(candidate, BookCase)
        return any(
            o.encoder_budget is not None
            and o.encoder_budget < candidate.requests[o.request][o.feature].num_rows
            for o in candidate.operations
        )

    reduced = reduce_case(case, exceeds_a_budget)
    assert isinstance(reduced, BookCase)
    assert reduced.operations == (BookOperation("take", 0, 0, 0),)
    assert reduced.requests == ((Feature(0, 1, "A"),),)
    plain = reduce_case(case, lambda _: True)
    assert isinstance(plain, BookCase)
    assert not any(o.encoder_budget is not None or o.num_rows_chosen for o in plain.operations)


@given(strategies.gather_cases())
def test_reduction_keeps_its_condition(case: GatherCase) -> None:
    """Wrong: a counterexample that shows nothing any more after it was made small."""

    def has_boundary_read(candidate: Case) -> bool:
        assert isinstance(candidate, GatherCase)
        return any(read.boundary for read in read_features(candidate))

    if has_boundary_read(case):
        reduced = reduce_case(case, has_boundary_read)
        assert has_boundary_read(reduced)
        assert isinstance(reduced, GatherCase)
        assert sum(len(request.features) for request in reduced.requests) == 1
