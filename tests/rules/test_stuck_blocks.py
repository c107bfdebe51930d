"""Conditions of stuck states by block boundaries, and the passes they are proved about, run."""

from __future__ import annotations

from itertools import product

import pytest

from spec.rules.releases import Shifts
from spec.rules.stop_conditions import (
    aligned_neighbours_exceed_budget,
    boundary_splits_the_end,
    spared_neighbours_stop,
)
from spec.rules.stop_settings import boundary_can_stop_text
from spec.rules.stopping_passes import (
    Boundaries,
    Item,
    PairState,
    Room,
    end_at_boundary,
    pair_after,
    tokens_after_reservation,
    tokens_before_last_blocks,
    tokens_of_pair,
)
from tests.rules.test_stuck import pairs


def runs_to_the_end(
    first: Item, second: Item, prompt: int, room: Room, shifts: Shifts, block: int, last: int
) -> bool:
    """Whether a request gets through under the alignment that spares a prompt's last blocks."""
    state, budget = PairState(0, False, False), 2 * block
    while state.progress < prompt:
        asked = min(prompt - state.progress, budget)
        scene = (first, second, state, asked)
        cut = tokens_of_pair(*scene, room, shifts)
        end = state.progress + cut
        tokens = tokens_before_last_blocks(state.progress, cut, end - end % block, last)
        after = pair_after(*scene, tokens, room, shifts)
        if after == state:
            return False
        state = after
    return True


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("margin", [0, 1])
@pytest.mark.parametrize("block", [2, 3, 4])
def test_neighbours_stop_before_the_last_blocks_exactly(block, margin, shift) -> None:
    """Wrong: a prompt stops that the condition lets pass, or the other way round."""
    shifts, stopped = Shifts(shift, margin, shift), 0
    for first, second, least in pairs():
        total_rows = first.rows + second.rows
        for cache, tail in product(range(max(first.rows, second.rows), total_rows + 1), (0, block)):
            prompt = least + tail
            last = max(prompt - prompt % block - (block if shift else 0), 0)
            place = second.offset - shifts.cut
            before = place - place % block
            stops = spared_neighbours_stop(first, second, cache, before, last, shifts)
            room = Room(cache, total_rows)
            assert runs_to_the_end(first, second, prompt, room, shifts, block, last) != stops
            stopped += stops
    assert stopped


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("block", [2, 3, 4])
def test_the_budget_stops_at_a_boundary_exactly(block, shift) -> None:
    """Wrong: the encoder budget stops a prompt that the condition lets pass, or the other way."""
    shifts, stopped = Shifts(shift, 0, shift), 0
    for first, second, least in pairs():
        total_rows = first.rows + second.rows
        for budget, tail in product(
            range(max(first.rows, second.rows), total_rows + 1), (0, block)
        ):
            prompt = least + tail
            last = max(prompt - prompt % block - (block if shift else 0), 0)
            place = second.offset - shifts.cut
            stop = place - place % block if place < last else place
            stops = aligned_neighbours_exceed_budget(first, second, 0, stop, budget, shifts)
            room = Room(total_rows, budget)
            assert runs_to_the_end(first, second, prompt, room, shifts, block, last) != stops
            stopped += stops
    assert stopped


def text_runs_to_the_end(prompt: int, block: int, limit: int, shift: int) -> bool:
    """Whether text gets through under stops at block boundaries and the reservation."""
    progress, last = 0, max(prompt - prompt % block - block, 0)
    while progress < prompt:
        end = min(progress + limit, prompt)
        here = progress - progress % block
        boundaries = Boundaries(here, here + block, end - end % block, last)
        end = end_at_boundary(progress, end, prompt, boundaries, block > limit)
        tokens = tokens_after_reservation(progress, end - progress, prompt, shift)
        if tokens == 0:
            return False
        progress += tokens
    return True


@pytest.mark.parametrize("shift", [2, 3, 4])
def test_a_boundary_stops_text_exactly_under_the_condition(shift) -> None:
    """Wrong: some text stops under settings that are let pass, or none under others."""
    total_rows = set()
    for block, limit in product(range(1, 7), range(1, 13)):
        stopped = [
            prompt
            for prompt in range(1, 4 * block + 4)
            if not text_runs_to_the_end(prompt, block, limit, shift)
        ]
        can_stop = boundary_can_stop_text(block, limit, shift)
        assert bool(stopped) == can_stop, (block, limit)
        total_rows.add(can_stop)
        if can_stop and limit >= shift:
            for prompt in stopped:
                before = (prompt - 1) // block * block
                assert boundary_splits_the_end(prompt, before, shift), (prompt, block, limit)
    assert total_rows == {False, True}
