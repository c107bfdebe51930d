"""The order of a batch is its worker's; the order of admission is the scheduler's."""

from __future__ import annotations

from dataclasses import replace

from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from spec.monitor.monitor import check_trace
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import PassSeen, Trace

TWO_PROMPTS = Scenario(
    EngineConfig(8, 8, 8, num_kv_blocks=40), (ScenarioRequest(3), ScenarioRequest(2))
)
"""Two requests that start in one pass, the longer one first."""

CUT_BEFORE_ITEM = Scenario(
    EngineConfig(
        6,
        8,
        8,
        num_kv_blocks=40,
        whole_items=True,
        scheduler_lookahead=1,
        gather_lookahead=1,
        num_speculative_tokens=1,
    ),
    (ScenarioRequest(9, (Feature(2, 5, "A"),)), ScenarioRequest(5)),
)
"""The first request is cut before an item that it could not finish, and leaves tokens for another.
"""


def _first_pass(trace: Trace) -> int:
    return next(place for place, step in enumerate(trace.steps) if step.kind == "pass")


def _batch_turned_round(scenario: Scenario) -> Trace:
    """A run of the reference whose first batch has its second request first."""
    trace = record(ReferenceLoop(), scenario, "V2").trace
    steps = list(trace.steps)
    place = _first_pass(trace)
    seen = steps[place]
    assert isinstance(seen, PassSeen)
    assert [entry.request for entry in seen.scheduled] == [0, 1]
    steps[place] = replace(seen, scheduled=seen.scheduled[::-1])
    return replace(trace, steps=tuple(steps))


def test_a_worker_may_order_its_batch_by_the_length_of_ranges() -> None:
    """Wrong: a healthy V2 is blamed for admitting requests out of turn."""
    assert check_trace(_batch_turned_round(TWO_PROMPTS)) == ()


def test_a_cut_before_a_whole_item_is_judged_by_the_tokens_left_at_admission() -> None:
    """Wrong: tokens that a later request got are missing from those of the one before it."""
    assert check_trace(_batch_turned_round(CUT_BEFORE_ITEM)) == ()


def test_requests_admitted_out_of_turn_are_found() -> None:
    """Wrong: the order of the batch hides who was let in first."""
    trace = _batch_turned_round(TWO_PROMPTS)
    steps = list(trace.steps)
    place = _first_pass(trace)
    steps[place] = replace(
        steps[place],
        calls=steps[place].calls[::-1],
        state=replace(steps[place].state, running=steps[place].state.running[::-1]),
    )
    found = check_trace(replace(trace, steps=tuple(steps)))
    assert "requests start out of turn" in {finding.mechanism for finding in found}
