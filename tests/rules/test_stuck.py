"""The conditions of stuck states, and the passes they are proved about, on small integers.

The proofs are for all integers; here the passes are run, and compared with the reference, so that
what is proved is about something that an engine does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.rules.releases import Shifts
from spec.rules.stop_conditions import (
    chunks_below_shift_stop,
    item_never_fits,
    neighbours_near_the_end_stop,
    neighbours_stop,
    neighbours_stop_at_start,
    padded_decode_breaks,
    whole_item_stops,
)
from spec.rules.stopping_passes import (
    Item,
    PairState,
    Room,
    pair_after,
    tokens_after_reservation,
    tokens_before_whole_item,
    tokens_of_pair,
)


def pairs() -> Iterator[tuple[Item, Item, int]]:
    """Two items of a prompt, with a gap and a tail, and the prompt's length."""
    for offset, first, gap, second, tail in product(
        range(2), range(1, 4), range(3), range(1, 3), range(3)
    ):
        begin = offset + first + gap
        yield (
            Item(offset, first, first),
            Item(begin, second, second),
            begin + second + tail,
        )


def run_pair(
    first: Item, second: Item, prompt: int, budget: int, room: Room, shifts: Shifts, reserves: bool
) -> list[int]:
    """Progress after each pass, until the prompt is over or a pass changes nothing."""
    state = PairState(0, False, False)
    seen = [0]
    while state.progress < prompt:
        asked = min(prompt - state.progress, budget)
        tokens = tokens_of_pair(first, second, state, asked, room, shifts)
        if reserves:
            tokens = tokens_after_reservation(state.progress, tokens, prompt, shifts.window)
        after = pair_after(first, second, state, asked, tokens, room, shifts)
        if after == state:
            break
        state = after
        seen.append(state.progress)
    return seen


def reference_run(
    first: Item, second: Item, prompt: int, config: EngineConfig, switches: tuple[str, ...]
) -> list[int]:
    """The same of the reference with switches."""
    features = (
        Feature(first.offset, first.length, "A"),
        Feature(second.offset, second.length, "B"),
    )
    scenario = Scenario(config, (ScenarioRequest(prompt, features),))
    scenario.validate()
    trace = record(ReferenceLoop(switches), scenario, "V2", max_passes=60).trace
    seen = [0]
    for step in trace.steps:
        if step.kind == "pass" and step.scheduled:
            (chunk,) = step.scheduled
            if chunk.num_computed_tokens < prompt:
                seen.append(chunk.num_computed_tokens + chunk.num_scheduled_tokens)
    return seen


@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize("margin", [0, 1])
@pytest.mark.parametrize("is_cut_shifted", [False, True])
def test_neighbours_stop_exactly_under_the_condition(shift, margin, is_cut_shifted) -> None:
    """Wrong: a prompt stops that the condition lets pass, or the other way round."""
    shifts = Shifts(shift, margin, shift if is_cut_shifted else 0)
    stopped = 0
    for first, second, prompt in pairs():
        total_rows = first.rows + second.rows
        for cache, budget in product(
            range(max(first.rows, second.rows), total_rows + 1), (1, 3, 9)
        ):
            seen = run_pair(first, second, prompt, budget, Room(cache, total_rows), shifts, False)
            stops = neighbours_stop(first, second, cache, shifts)
            assert (seen[-1] < prompt) == stops, (first, second, cache, budget)
            stopped += stops
    assert bool(stopped) == bool(margin or shifts.cut)


@pytest.mark.parametrize("shift", [1, 2])
def test_the_budget_stops_exactly_under_the_condition(shift) -> None:
    """Wrong: the encoder budget stops a prompt that the condition lets pass, or the other way."""
    shifts, stopped = Shifts(shift, 0, shift), 0
    for first, second, prompt in pairs():
        total_rows = first.rows + second.rows
        for budget in range(max(first.rows, second.rows), total_rows + 1):
            seen = run_pair(first, second, prompt, 9, Room(total_rows, budget), shifts, False)
            stops = neighbours_stop_at_start(first, second, 0, budget, shifts)
            assert (seen[-1] < prompt) == stops, (first, second, budget)
            stopped += stops
    assert stopped


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_the_reservation_stops_exactly_under_the_condition(shift) -> None:
    """Wrong: the reservation stops a prompt that the condition lets pass, or the other way."""
    shifts, stopped = Shifts(shift, 0, 0), 0
    for first, second, prompt in pairs():
        total_rows = first.rows + second.rows
        for cache, budget in product(
            range(max(first.rows, second.rows), total_rows + 1), (shift, 9)
        ):
            seen = run_pair(first, second, prompt, budget, Room(cache, total_rows), shifts, True)
            stops = neighbours_near_the_end_stop(first, second, cache, prompt, shift)
            assert (seen[-1] < prompt) == stops, (first, second, cache, budget, prompt)
            stopped += stops
    assert bool(stopped) == (shift > 1)


def test_short_chunks_stop_exactly_under_the_condition() -> None:
    """Wrong: text stops that the condition lets pass, or the other way round."""
    stopped = 0
    for prompt, limit, shift in product(range(1, 8), range(1, 5), range(4)):
        progress = 0
        while progress < prompt:
            asked = min(prompt - progress, limit)
            tokens = tokens_after_reservation(progress, asked, prompt, shift)
            if tokens == 0:
                break
            progress += tokens
        stops = chunks_below_shift_stop(prompt, limit, shift)
        assert (progress < prompt) == stops, (prompt, limit, shift)
        stopped += stops
    assert stopped


@pytest.mark.parametrize("spares_start", [False, True])
def test_a_whole_item_stops_exactly_under_the_condition(spares_start) -> None:
    """Wrong: a whole item stops that the condition lets pass, or the other way round."""
    stopped = 0
    for lead, length, tail, limit, cut in product(
        range(5), range(1, 5), range(2), range(1, 7), range(3)
    ):
        prompt, progress = lead + length + tail, 0
        while progress < prompt:
            asked = min(prompt - progress, limit)
            tokens = tokens_before_whole_item(lead, length, progress, asked, cut, cut, spares_start)
            if tokens == 0:
                break
            progress += tokens
        stops = whole_item_stops(length, lead, limit, cut, spares_start)
        assert (progress < prompt) == stops, (lead, length, limit, cut)
        stopped += stops
    assert stopped


@pytest.mark.parametrize(
    ("switches", "margin", "is_cut_shifted", "reserves"),
    [
        ((), 0, False, False),
        (("deferred-free-margin",), 1, False, False),
        (("shifted-cut",), 0, True, False),
        (("deferred-free-margin", "shifted-cut"), 1, True, False),
        (("reservation-after-cut",), 0, False, True),
    ],
)
def test_passes_are_those_of_the_reference(switches, margin, is_cut_shifted, reserves) -> None:
    """Wrong: what is proved of the passes says nothing of an engine."""
    for shift in (0, 1) if not reserves else (2,):
        shifts = Shifts(shift, margin, shift if is_cut_shifted else 0)
        for number, (first, second, prompt) in enumerate(pairs()):
            total_rows = first.rows + second.rows
            budget = (2, 3, 9)[number % 3]
            cache = max(first.rows, second.rows, total_rows - number % 2)
            encoder = max(first.rows, second.rows, total_rows - number % 5)
            config = EngineConfig(
                budget, encoder, cache, num_kv_blocks=40, scheduler_lookahead=shift
            )
            expected = run_pair(
                first, second, prompt, budget, Room(cache, encoder), shifts, reserves
            )
            assert reference_run(first, second, prompt, config, switches) == expected


@pytest.mark.parametrize(("rows", "fits"), [(3, True), (4, False)])
def test_an_item_above_the_room_never_fits(rows, fits) -> None:
    """Wrong: an item that fits is called too large, or one that does not is let pass."""
    assert item_never_fits(rows, Room(3, 8)) == (not fits)
    assert item_never_fits(rows, Room(8, 3)) == (not fits)


@pytest.mark.parametrize(("threshold", "breaks"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_padded_decode_breaks_up_to_the_number_of_drafts(threshold, breaks) -> None:
    """Wrong: the threshold that stops the engine by an assertion is off by one."""
    assert padded_decode_breaks(2, threshold) == breaks
