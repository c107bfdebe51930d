"""The reference's integer guards equal the rules of the specification, for any integers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impl.reference.scheduling import guards
from impl.targets.functions import ReferenceTarget
from proofs.search.functions.strategies import row_range_cases, window_cases
from spec.monitor.functions.observed import check
from spec.rules import chunk_ends, free, geometry, tolerance

NUMBERS = st.integers()
COUNTS = st.integers(min_value=0)
LENGTHS = st.integers(min_value=1)


@pytest.mark.integers
@given(offset=NUMBERS, length=NUMBERS, margin=NUMBERS, computed=NUMBERS, placeholders=NUMBERS)
def test_reference_may_go(offset, length, margin, computed, placeholders):
    """Wrong: the reference frees by another rule than the one that is proved."""
    wanted = free.may_drop_reference(offset, length, computed, placeholders, margin)
    assert guards.reference_may_go(offset + length, margin, computed, placeholders) == wanted


@pytest.mark.integers
@given(computed=NUMBERS)
def test_encoder_decoder_reference_may_go(computed):
    """Wrong: the reference frees by another rule than the one that is proved."""
    wanted = free.may_drop_encoder_decoder_reference(computed)
    assert guards.encoder_decoder_reference_may_go(computed) == wanted


@pytest.mark.integers
@given(offset=NUMBERS, computed=NUMBERS, scheduled=NUMBERS, look_ahead=NUMBERS)
def test_tolerance(offset, computed, scheduled, look_ahead):
    """Wrong: a runner tolerates other misses than those at the boundary."""
    wanted = tolerance.miss_tolerated_v1(offset, computed, scheduled)
    assert guards.tolerates_miss_v1(offset, computed, scheduled) == wanted
    end = computed + scheduled + look_ahead
    assert guards.tolerates_miss_v2(offset, look_ahead, end) == wanted
    assert tolerance.miss_tolerated_v2(offset, look_ahead, end) == wanted


@pytest.mark.integers
@given(offset=NUMBERS, length=LENGTHS, start=NUMBERS, span=LENGTHS)
def test_overlap_and_slice(offset, length, start, span):
    """Wrong: a runner reads features outside its window, or cuts them wrongly."""
    end = start + span
    assert guards.overlaps(offset, length, start, end) == geometry.meets(offset, length, start, end)
    bounds = guards.slice_bounds(offset, length, start, end)
    assert bounds == geometry.slice_bounds(offset, length, start, end)


@pytest.mark.integers
@given(offset=NUMBERS, length=LENGTHS, start=NUMBERS, count=NUMBERS)
def test_ends_inside(offset, length, start, count):
    """Wrong: the reference splits an item that it should keep whole, or keeps one needlessly."""
    wanted = chunk_ends.splits_item(offset, offset + length, start, count)
    assert guards.ends_inside(start, count, offset, offset + length) == wanted


@given(window_cases())
def test_window_search(case):
    """Wrong: the search loses features or finds others."""
    target = ReferenceTarget()
    assert check(case, target.window(case), target.name) == ()


@given(row_range_cases())
def test_row_range(case):
    """Wrong: rows of a range are miscounted."""
    target = ReferenceTarget()
    assert check(case, target.row_range(case), target.name) == ()
