"""The reference's *free* and both of its books equal the specification."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impl.reference.scheduling.book import RowCountMismatchError
from impl.reference.scheduling.encoder_cache import EncoderCacheManager, EncoderDecoderCacheManager
from impl.reference.scheduling.free import free_encoder_inputs
from impl.reference.scheduling.request import MultiModalFeature, PlaceholderRange, Request
from impl.targets.functions import ReferenceTarget
from proofs.search.functions.strategies import book_cases, encoder_decoder_book_cases, free_cases
from spec.functions.cases import BookCase
from spec.monitor.functions.observed import check
from spec.rules import free


def request_with(name: str, *places: tuple[str, int, int]) -> Request:
    """A request with dense features, each given by identifier, offset and length."""
    return Request(name, [MultiModalFeature(i, PlaceholderRange(o, n)) for i, o, n in places])


def take(manager: EncoderCacheManager, request: Request, input_id: int) -> None:
    if not manager.check_and_update_cache(request, input_id):
        assert manager.can_allocate(request, input_id, 100, 0)
        manager.allocate(request, input_id)


@given(free_cases())
def test_free_holds_its_claims(case):
    """Otherwise a reference goes while it is needed, or slots drift."""
    target = ReferenceTarget()
    assert check(case, target.free(case), target.name) == ()


@given(case=free_cases(), margin=st.integers(0, 3))
def test_free_lets_go_exactly_by_the_rule(case, margin):
    """Otherwise references go late, which no safety claim sees, or early."""
    request = request_with("request", *[(f.identifier, f.offset, f.length) for f in case.features])
    kept = set(range(len(case.features)))
    manager = (
        EncoderDecoderCacheManager(100) if case.is_encoder_decoder else EncoderCacheManager(100)
    )
    for input_id in sorted(kept):
        if not manager.check_and_update_cache(request, input_id):
            manager.allocate(request, input_id)
    for moment in case.progress:
        request.num_computed_tokens = moment.num_computed_tokens
        request.num_output_placeholders = moment.num_output_placeholders
        gone = free_encoder_inputs(
            request, manager, is_encoder_decoder=case.is_encoder_decoder, margin=margin
        )
        wanted = [
            input_id
            for input_id in sorted(kept)
            if free.reference_may_go(
                case.features[input_id].offset,
                case.features[input_id].length,
                moment.num_computed_tokens,
                moment.num_output_placeholders,
                margin,
                case.is_encoder_decoder,
            )
        ]
        assert gone == wanted
        kept -= set(gone)
        assert manager.get_cached_input_ids(request) == kept


@given(book_cases())
def test_book_holds_its_claims(case):
    """Otherwise an answer, an eviction, a notice, a reference or a sum is wrong."""
    target = ReferenceTarget()
    assert check(case, target.book(case), target.name) == ()


@given(book_cases(content_is_hashed=False))
def test_book_refuses_another_row_count(case):
    """Otherwise one hash with two contents makes slots drift."""
    target = ReferenceTarget()
    observation = target.book(case)
    assert observation.error is None
    assert check(case, observation, target.name) == ()


@given(encoder_decoder_book_cases())
def test_encoder_decoder_book_holds_its_claims(case):
    """Otherwise the encoder-decoder book credits slots that it does not have."""
    target = ReferenceTarget()
    assert check(case, target.book(case), target.name) == ()


def test_row_count_mismatch_names_both_counts():
    """Otherwise nobody can tell why a request was refused."""
    manager = EncoderCacheManager(8)
    take(manager, request_with("first", ("X", 0, 2)), 0)
    with pytest.raises(RowCountMismatchError, match=r"second asks for 'X' with 4 rows .* has 2"):
        manager.check_and_update_cache(request_with("second", ("X", 0, 4)), 0)
    assert manager.references == {"X": ("first",)}


@pytest.mark.parametrize("manager_class", [EncoderCacheManager, EncoderDecoderCacheManager])
def test_room_depends_on_the_encoder_budget_and_on_what_was_chosen_before(manager_class):
    """Otherwise a pass encodes more than its budget, or allocates the same room twice."""
    request = request_with("request", ("X", 0, 4))
    manager = manager_class(8)
    assert manager.can_allocate(request, 0, 4, 4)
    assert not manager.can_allocate(request, 0, 3, 0)
    assert not manager.can_allocate(request, 0, 4, 5)


def test_a_refusal_evicts_nothing():
    """Otherwise entries are lost for an item that does not fit anyway."""
    manager = EncoderCacheManager(8)
    old, live, big = (request_with(n, (n, 0, s)) for n, s in (("old", 2), ("live", 4), ("big", 5)))
    take(manager, old, 0)
    take(manager, live, 0)
    manager.free(old)
    assert not manager.can_allocate(big, 0, 100, 0)
    assert set(manager.references) == {"old", "live"}
    assert manager.get_freed_mm_hashes() == []


def test_encoder_decoder_notices_come_one_pass_later():
    """Otherwise the worker drops an output before the step that reads it has run."""
    manager = EncoderDecoderCacheManager(8)
    manager.allocate(request_with("request", ("X", 0, 4)), 0)
    assert [manager.get_freed_mm_hashes() for _ in range(3)] == [[], ["X"], []]


def test_drawn_books_reach_what_matters(drawn):
    """Otherwise the comparison with the oracle passes for want of anything hard."""
    seen: Counter[str] = Counter()
    target = ReferenceTarget()
    for case in drawn(book_cases(), 300):
        seen.update(_events_of(case, target))
    missing = {name: seen[name] for name, floor in FLOORS.items() if seen[name] < floor}
    assert not missing, f"too few of these among 300 drawn cases: {missing}"


FLOORS = {
    "allocated": 100,
    "hit": 40,
    "refused": 10,
    "entry shared by requests": 10,
    "entry unreferenced": 40,
    "entry evicted": 10,
}
"""Of 300 draws, how many must show each event."""


def _events_of(case: BookCase, target: ReferenceTarget) -> set[str]:
    events: set[str] = set()
    names: set[str] = set()
    for step in target.book(case).steps:
        holders = dict(step.book.references)
        events.add(step.answer)
        events.update("entry shared by requests" for h in holders.values() if len(h) > 1)
        events.update("entry unreferenced" for h in holders.values() if not h)
        if names - set(holders) and step.answer == "allocated":
            events.add("entry evicted")
        names = set(holders)
    return events
