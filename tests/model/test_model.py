"""The model takes the same steps as the reference, and its claims are those of the monitor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, zip_longest
from typing import Any

import pytest
from hypothesis import assume, given

from impl.faults.switches import FAULTS, fault
from impl.target import Runner
from impl.targets.runs import ReferenceLoop
from proofs.explore.unseen import UNSEEN
from proofs.search.runs.scenarios import scenarios
from spec.errors import InputError
from spec.model import batch, choose, update
from spec.model.agreement import disagreement
from spec.model.calls import CallLog
from spec.model.claims import CLAIMS, claim_names
from spec.model.judge import Judge
from spec.model.layout import Layout, not_covered
from spec.model.rules import FAULTY_RULES, REFERENCE, ModelRules, faulty_rules
from spec.model.run import ModelPass, ModelUpdate, run_layout, run_model
from spec.model.update import initial_state
from spec.model.working import Working
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Continuation, Scenario, ScenarioRequest

_STEPS = 150
"""Steps after which a run is looked at no further: some variants stand still for ever."""

_ON_GRAPHS = {"no-stall", "no-thrash"}
"""Claims that are judged where whole graphs are."""

_GATHER_ALONE = {"no-boundary-tolerance", "interior-miss-swallowed", "clamped-drafter-window"}
"""Switches that change what a gather does, and no schedule."""


def _runner(name: str | None) -> Runner:
    return "V1" if name is None else fault(name).runner or "V1"


def _differs(scenario: Scenario, rules: ModelRules, name: str | None) -> str | None:
    """Where the model and the reference part, each with the same departure."""
    layout = Layout(scenario.config, scenario.requests, rules)
    seen_steps = ReferenceLoop(() if name is None else (name,)).run(scenario, _runner(name))
    for model, seen in islice(
        zip_longest(run_layout(scenario, layout, CallLog(layout)), seen_steps), _STEPS
    ):
        if model is None or seen is None:
            return "one of the two ends"
        reason = disagreement(layout, model, seen)
        if reason is not None:
            return reason
    return None


@given(scenario=scenarios())
def test_the_model_takes_the_steps_of_the_reference(scenario: Scenario) -> None:
    """Wrong: what is explored or proved on the model is not what runs."""
    assume(not_covered(scenario.config, scenario.requests) is None)
    assert _differs(scenario, REFERENCE, None) is None


WITHDRAWN = Scenario(
    EngineConfig(2, 2, 2, num_kv_blocks=4, long_prefill_token_threshold=1, policy="priority"),
    (
        ScenarioRequest(3, (Feature(2, 1, "A"),), priority=2),
        ScenarioRequest(3, arrival=1, priority=1),
    ),
)
"""The first request chooses its item and is preempted in the same pass."""


@pytest.fixture(scope="module")
def large_pool(drawn: Callable[[Any, int], list[Any]]) -> list[Scenario]:
    """Scenarios that the model covers, the recorded ones of the switches first."""
    broken = [f.scenario for f in FAULTS if f.scenario is not None]
    some = [*broken, WITHDRAWN, *drawn(scenarios(), 300)]
    return [s for s in some if not_covered(s.config, s.requests) is None]


@pytest.fixture(scope="module")
def pool(large_pool: list[Scenario]) -> list[Scenario]:
    """The first of them."""
    return large_pool[:70]


@pytest.mark.parametrize("name", sorted(FAULTY_RULES))
def test_a_variant_takes_the_steps_of_its_switch(name: str, pool: list[Scenario]) -> None:
    """Wrong: the explorer shows another fault than the one that it names."""
    for scenario in pool:
        assert _differs(scenario, FAULTY_RULES[name], name) is None


@pytest.mark.parametrize("name", [None, *sorted(FAULTY_RULES)])
def test_the_claims_are_those_of_the_monitor(name: str | None, pool: list[Scenario]) -> None:
    """Wrong: a claim holds on the model and is broken on the trace, or the other way round."""
    for scenario in pool:
        assert list(_claims_of_model(scenario, name)) == list(_claims_of_monitor(scenario, name))


def _claims_of_model(scenario: Scenario, name: str | None) -> Iterator[set[str]]:
    """Claims that each step breaks for the first time."""
    layout = Layout(
        scenario.config, scenario.requests, REFERENCE if name is None else FAULTY_RULES[name]
    )
    judge, before, seen = Judge(layout), initial_state(layout), 0
    for step in islice(run_layout(scenario, layout), _STEPS):
        if isinstance(step, ModelPass):
            broken = judge.judge_pass(before, step.record, step.state)
        elif isinstance(step, ModelUpdate):
            broken = judge.judge_update(before, step.record, step.state)
        else:
            broken = judge.judge_event(step.state, step.error)
        before = step.state
        yield set(claim_names(broken & ~seen))
        seen |= broken


def _claims_of_monitor(scenario: Scenario, name: str | None) -> Iterator[set[str]]:
    runner = _runner(name)
    monitor, seen = LoopMonitor(scenario, runner), set[str]()
    steps = ReferenceLoop(() if name is None else (name,)).run(scenario, runner)
    for step in islice(steps, _STEPS):
        broken = {finding.claim for finding in monitor.observe(step)}
        broken = (broken & set(CLAIMS)) - _ON_GRAPHS
        yield broken - seen
        seen |= broken


@pytest.mark.parametrize("name", sorted(set(FAULTY_RULES) - _GATHER_ALONE - set(UNSEEN)))
def test_a_model_with_other_rules_is_told_from_the_reference(
    name: str, pool: list[Scenario]
) -> None:
    """Wrong: the comparison would pass a model whose rules are not the reference's."""
    runs = (_differs(scenario, FAULTY_RULES[name], None) for scenario in pool)
    assert any(reason is not None for reason in runs)


def _unordered(work: Working, request: int) -> None:
    work.waiting.append(request)


def _plenty(work: Working, request: int, num_tokens: int) -> int:
    return work.requests[request][5]


def _nobody(work: Working, request: int) -> bool:
    return False


def _kept(work: Working, occurrence: int) -> None:
    return None


def _unmarked(work: Working, request: int, standing: int) -> None:
    return None


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "skipped requests go to the end": (Working, "put_back", _unordered),
    "priority is not looked at": (Working, "insert", _unordered),
    "KV blocks without end": (Working, "count_blocks", _plenty),
    "resumes before stale outputs came": (Working, "has_in_flight", _nobody),
    "withdrawn inputs stay in the book": (Working, "cancel", _kept),
    "outputs of preempted requests count": (Working, "mark_outputs", _unmarked),
    "a threshold limits nothing": (choose, "limited_by_threshold", lambda wanted, _: wanted),
    "chunks are never aligned": (choose, "aligned_chunk", lambda _, tokens, *__: tokens),
    "an item is not extended": (choose, "extends_over_item", lambda *_: False),
    "items are split": (choose, "splits_item", lambda *_: False),
    "no chunk reserves": (choose, "reserving_chunk", lambda _, tokens, *__: tokens),
    "cut one token later": (choose, "refused_cut", lambda offset, start, *_: offset - start + 1),
    "runs on at the end": (
        batch,
        "tokens_wanted",
        lambda computed, num_known, drafts, placeholders, _: (
            num_known + drafts + placeholders - computed
        ),
    ),
    "emits past the end": (update, "tokens_emitted", lambda sampled, *_: sampled),
}
"""Changes of the model: where, what, and what takes its place."""


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_mutant_of_the_model_is_told_from_the_reference(
    name: str, large_pool: list[Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: a slip in the model would go unseen."""
    owner, attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, mutant)
    assert any(_differs_or_breaks(scenario) for scenario in large_pool)


def _differs_or_breaks(scenario: Scenario) -> bool:
    try:
        return _differs(scenario, REFERENCE, None) is not None
    except (IndexError, ValueError):
        return True


def test_every_switch_is_a_variant_or_said_to_be_unseen() -> None:
    """Wrong: a new switch that nobody looks for here, and no reason why not."""
    names = {fault.name for fault in FAULTS}
    assert names == set(FAULTY_RULES) | set(UNSEEN)
    assert not set(UNSEEN) & {f.name for f in FAULTS if f.breaks_in_loop and f.name in FAULTY_RULES}


@pytest.mark.parametrize(
    ("scenario", "word"),
    [
        (Scenario(EngineConfig(2, 2, 2, 9, is_encoder_decoder=True), (ScenarioRequest(1),)), "enc"),
        (
            Scenario(
                EngineConfig(2, 2, 2, 9),
                (ScenarioRequest(1, continuations=(Continuation(1, 1),)),),
            ),
            "streaming",
        ),
        (
            Scenario(
                EngineConfig(2, 2, 2, 9),
                (
                    ScenarioRequest(1, (Feature(0, 1, "A"),), contents=("cat",)),
                    ScenarioRequest(1, (Feature(0, 1, "A"),), contents=("dog",)),
                ),
            ),
            "several contents",
        ),
    ],
)
def test_what_the_model_does_not_cover_is_refused(scenario: Scenario, word: str) -> None:
    """Wrong: a run of other rules than those that were asked for."""
    with pytest.raises(InputError, match=word):
        list(run_model(scenario))


def test_an_unknown_variant_is_refused_with_those_that_exist() -> None:
    """Wrong: a misspelt switch explores the reference."""
    with pytest.raises(InputError, match="shifted-cut"):
        faulty_rules("shiftedcut")
