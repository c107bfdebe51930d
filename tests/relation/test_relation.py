"""Runs of the reference lie in the relation; what does not is reported, with the right conjunct."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import assume, example, given

from impl.faults.switches import FAULTS, Fault
from impl.target import RUNNERS
from impl.targets.runs import ReferenceLoop
from proofs.commands.main import main
from proofs.recorded import FOLDER
from proofs.run.record import record
from proofs.search.runs.scenarios import scenarios
from spec.history.history import History
from spec.record import document
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import Call, Trace
from spec.relation.cross_attention import ITEM_INVARIANTS, ItemScope
from spec.relation.invariants import INVARIANTS
from spec.relation.moves import ITEM_TRANSITIONS, TRANSITIONS
from spec.relation.runs.book_ledger import Ledger
from spec.relation.runs.outside import outside_the_proof, project, why_not_covered
from spec.relation.runs.run import Run
from tests.support.mutated_scenarios import SCENARIOS
from tests.support.relation_runs import fixed_scenarios
from tests.support.trace_mutations import mutations

RECORDED = FOLDER

SEEN: dict[str, set[tuple[str, str]]] = {
    "deferred-free-margin": {("keep", "keeps-only-what-is-needed")},
    "dropped-at-first-occurrence": {
        ("observe", "state.others"),
        ("observe", "state.held"),
        ("observe", "state.freeable"),
    },
    "encoder-decoder-credit": {("observe", "state.free")},
    "encoder-decoder-notices-late": {
        ("apply", "announces-the-pass-before"),
        ("observe", "state.resident"),
        ("observe", "state.resident_others"),
    },
    "stale-eviction-notice": {("apply", "announces-what-left")},
    "finish-keeps-references": {("observe", "state.others"), ("observe", "state.freeable")},
    "no-scheduler-shift": {("advance", "looks-through-the-window")},
    "boundary-never-encoded": {("advance", "looks-through-the-window")},
    "masked-leading-gap": {("advance", "looks-through-the-window")},
    "waiting-keeps-references": {
        ("apply", "tries-come-to-an-end"),
        ("end-pass", "ends-what-was-applied"),
    },
    "free-before-execution": {
        ("let-go", "lets-go-in-an-update"),
        ("let-go", "lets-go-while-it-runs"),
        ("let-go", "lets-go-what-progress-passed"),
        ("apply", "encodes-what-was-chosen"),
        ("observe", "state.entry"),
        ("observe", "state.free"),
    },
    "same-step-duplicate-unreferenced": {("advance", "looks-through-the-window")},
    "item-split-at-start": {("advance", "keeps-items-whole")},
    "warm-item-split": {("advance", "keeps-items-whole")},
    "cut-ends-late": {("advance", "ends-before-what-was-refused")},
    "finished-drops-tensors": {("observe", "state.resident"), ("observe", "state.fresh")},
    "notices-lost": {("apply", "announces-what-left")},
    "freed-one-token-early": {("let-go", "lets-go-what-progress-passed")},
    "v2-reset-keeps-tensors": {("observe", "state.fresh")},
    "resumed-without-payload": {
        ("apply", "starts-with-raw-data"),
        ("observe", "state.resident"),
        ("observe", "state.fresh"),
    },
    "ended-keeps-references": {("observe", "state.others"), ("observe", "state.freeable")},
}
"""For each switch what its own scenario shows outside the relation, with either runner."""

_GATHERS = "what a gather returns is no part of the state; groups of proofs are about it"
_TEXT = "its scenario has no feature, so nothing to project onto"
_STALLS = "the relation is about safety: a chunk may end anywhere before what was refused"

UNSEEN: dict[str, str] = {
    "no-boundary-tolerance": _GATHERS,
    "interior-miss-swallowed": _GATHERS,
    "clamped-drafter-window": _GATHERS,
    "rows-by-position": _GATHERS,
    "mask-fills-span": _GATHERS,
    "v2-splits-rows": _GATHERS,
    "window-search-late": _GATHERS,
    "own-size-free": "its scenario breaks hash-is-content",
    "finish-needs-references": "a step that raises is not looked at",
    "shifted-cut": _STALLS,
    "align-after-cut": _STALLS,
    "whole-item-cut-short": _STALLS,
    "threshold-below-whole-item": _STALLS,
    "reservation-after-cut": _STALLS,
    "stalled-head-ends-pass": "who runs is havocked",
    "admission-preempts": "who is preempted is havocked",
    "victim-budget-kept": "who runs how many tokens is havocked",
    "victim-budget-charged-twice": "who runs how many tokens is havocked",
    "skips-behind-victim": "who runs is havocked",
    "admits-one-a-pass": "who runs is havocked",
    "threshold-exceeded-by-one": _TEXT,
    "resumed-not-reserved": _TEXT,
    "not-reserved-before-others": _TEXT,
    "rejected-drafts-kept": _TEXT,
}
"""Switches of which their own scenario shows nothing outside the relation, and why."""


def outside(trace: Trace) -> list[str]:
    return [difference.describe() for difference in outside_the_proof(trace)]


@given(scenario=scenarios())
def test_runs_of_the_reference_lie_in_the_relation(scenario: Scenario) -> None:
    """Wrong: theorems about another engine than the one that runs, or of states that never are."""
    assume(why_not_covered(scenario) is None)
    falls = any(request.failed_loads for request in scenario.requests)
    for _, _, _, _, _, taken in project(record(ReferenceLoop(), scenario, "V2").trace):
        for move in taken:
            assert move.differs == (), move
            kept = ITEM_INVARIANTS if isinstance(move.scope, ItemScope) else INVARIANTS
            for name, holds in kept.items():
                if not (falls and name == "passed-stays-passed"):
                    assert holds(move.scope, move.after), (name, move)


_NO_ROW_LEFT = Scenario(
    EngineConfig(
        max_num_batched_tokens=2,
        encoder_compute_budget=3,
        encoder_cache_size=3,
        num_kv_blocks=16,
        max_num_seqs=8,
        scheduler_lookahead=1,
        gather_lookahead=1,
        num_speculative_tokens=1,
        prefix_caching=True,
    ),
    (
        ScenarioRequest(
            7,
            (
                Feature(0, 3, "C", (True, True, False)),
                Feature(3, 3, "C", (True, True, False)),
                Feature(6, 1, "A"),
            ),
            prefix_hits=(2,),
        ),
    ),
)
"""The request finds what it needs of the first C computed, and allocates the second."""


@given(scenario=scenarios())
@example(scenario=_NO_ROW_LEFT)
def test_what_counts_as_taken_is_what_the_claims_say(scenario: Scenario) -> None:
    """Wrong: held-until-last-use proved of occurrences that the claim does not mean."""
    assume(why_not_covered(scenario) is None and not scenario.config.is_encoder_decoder)
    history, run = History(scenario), Run(scenario)
    for step in record(ReferenceLoop(), scenario, "V2").trace.steps:
        history.observe(step)
        assert run.observe(step)
        for (request, feature), projection in run.projections.items():
            if feature in history.requests[request].taken:
                assert projection.state.taken, (step, projection.own)


def test_fixed_runs_take_every_transition() -> None:
    """Wrong: a transition that nothing ever takes, of which anything could be proved."""
    seen: dict[str, set[str]] = defaultdict(set)
    for scenario in fixed_scenarios():
        trace = record(ReferenceLoop(), scenario, "V2").trace
        assert outside(trace) == []
        for _, _, _, _, _, taken in project(trace):
            for move in taken:
                seen[type(move.scope).__name__].add(move.transition)
    assert seen["Scope"] == {*TRANSITIONS, "observe"}
    assert seen["ItemScope"] == {*ITEM_TRANSITIONS, "observe"}


def test_recorded_scenarios_lie_in_the_relation() -> None:
    """Wrong: what breaks releases would also take the reference out of the relation."""
    covered = 0
    for path in sorted(RECORDED.glob("*/*.json")):
        if path.name == "index.json":
            continue
        loaded = document.loads(path.read_text(encoding="utf-8"), str(path))
        if why_not_covered(loaded.scenario) is None:
            covered += 1
            assert outside(record(ReferenceLoop(), loaded.scenario, "V1").trace) == [], path
    assert covered > 30


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_faults_are_outside_with_their_conjunct(fault: Fault) -> None:
    """Wrong: a faulty engine to which the theorems seem to apply, or a misleading conjunct."""
    assert (fault.name in SEEN) != (fault.name in UNSEEN) or fault.scenario is None
    if fault.scenario is None:
        return
    shown = set()
    for runner in RUNNERS:
        target = ReferenceLoop([fault.name])
        trace = record(target, fault.scenario, runner, max_passes=40).trace
        for difference in outside_the_proof(trace):
            shown.add((difference.taken.transition, difference.conjunct))
    assert shown == SEEN.get(fault.name, set())


@pytest.mark.parametrize("fault", ["no-scheduler-shift", "boundary-never-encoded"])
def test_whole_items_excuse_only_what_would_be_split(fault: str) -> None:
    """Wrong: with chunking of items off, whoever never looks ahead lies in the relation."""
    config = EngineConfig(
        4,
        8,
        8,
        64,
        scheduler_lookahead=3,
        gather_lookahead=1,
        num_speculative_tokens=3,
        whole_items=True,
    )
    scenario = Scenario(config, (ScenarioRequest(9, (Feature(4, 4, "A"),)),))
    assert outside(record(ReferenceLoop(), scenario, "V2").trace) == []
    found = outside_the_proof(record(ReferenceLoop([fault]), scenario, "V2").trace)
    assert {difference.conjunct for difference in found} == {"looks-through-the-window"}


MUTATED: dict[tuple[str, str, str], set[str]] = {
    ("LoopBookState", "num_free_slots", "+1"): {"state.free"},
    ("LoopBookState", "num_freeable_slots", "+1"): {"state.freeable"},
    ("LoopBookState", "num_freeable_slots", "-1"): {"state.freeable"},
    ("LoopBookState", "references", "second +1"): {"state.held"},
    ("LoopBookState", "references", "drop"): {"state.entry", "state.idle_rows"},
    ("RequestOutcome", "num_accepted", "+1"): {"rejects-drafts-of-the-pass", "state.computed"},
    ("PassSeen", "encoder_inputs", "drop"): {"encodes-what-was-chosen"},
    ("PassSeen", "notices", "drop"): {"announces-what-left"},
    ("PassSeen", "notices", "element to unknown"): {"announces-what-left"},
    ("ScheduledRequest", "num_scheduled_tokens", "+1"): {
        "state.computed",
        "ends-before-what-was-refused",
    },
    ("ScheduledRequest", "num_scheduled_tokens", "-1"): {"state.computed", "step-not-empty"},
    ("ScheduledRequest", "started", "flip"): {"schedules-who-runs", "tries-who-waits"},
    ("WorkerSeen", "contents", "drop"): {"state.resident"},
    ("WorkerSeen", "received", "drop"): {"starts-with-raw-data"},
}
"""Changes to a trace that the relation refuses wherever they are made, and the first conjunct."""


MUTATED_ITEMS: dict[tuple[str, str, str], set[str]] = {
    ("LoopBookState", "num_free_slots", "+1"): {"state.free"},
    ("LoopBookState", "num_free_slots", "-1"): {"state.free"},
    ("PassSeen", "encoder_inputs", "drop"): {"encodes-what-was-chosen"},
    ("ScheduledRequest", "num_scheduled_tokens", "+1"): {"state.computed"},
    ("WorkerSeen", "contents", "drop"): {"state.resident", "state.resident_others"},
}
"""The same for encoder-decoder models."""


@pytest.mark.parametrize(
    ("refused", "is_encoder_decoder"),
    [(MUTATED, False), (MUTATED_ITEMS, True)],
    ids=["decoder-only", "encoder-decoder"],
)
def test_changed_traces_are_outside_with_their_conjunct(
    refused: dict[tuple[str, str, str], set[str]], is_encoder_decoder: bool
) -> None:
    """Wrong: a check that lets a record of no engine pass, or blames something else."""
    shown: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for scenario in SCENARIOS.values():
        is_other = scenario.config.is_encoder_decoder != is_encoder_decoder
        if is_other or why_not_covered(scenario) is not None:
            continue
        for mutation in mutations(record(ReferenceLoop(), scenario, "V2").trace, 2):
            key = (mutation.owner, mutation.field, mutation.kind)
            if key in refused:
                found = outside_the_proof(mutation.value)
                assert found, key
                shown[key].add(found[0].conjunct)
    assert shown.keys() == refused.keys()
    for key, conjuncts in shown.items():
        assert conjuncts <= refused[key], key


def test_replay_says_what_is_outside(tmp_path: Path) -> None:
    """Wrong: a user who asks whether the proofs speak of a run gets no answer, or a wrong one."""
    file = str(RECORDED / "scenarios" / "switch-cut-ends-late.json")
    arguments = ["replay", file, "--device", "none", "--runner", "V2", "--relation"]
    clean = CliRunner().invoke(main, arguments)
    assert clean.exit_code == 0
    assert "V2: every completed step lies in the relation" in clean.stdout
    output = tmp_path / "replayed.json"
    faulty = CliRunner().invoke(
        main, [*arguments, "--fault", "cut-ends-late", "--json", str(output)]
    )
    assert faulty.exit_code == 1
    assert "V2: outside the proof: 2 differences" in faulty.stdout
    assert "differs in ends-before-what-was-refused" in faulty.stdout
    assert '"conjunct": "ends-before-what-was-refused"' in output.read_text(encoding="utf-8")
    scenario = str(RECORDED / "scenarios" / "own-size-free.json")
    result = CliRunner().invoke(main, ["replay", scenario, *arguments[2:]])
    assert "say nothing of this run: the scenario breaks the assumption hash" in result.stdout


def test_ledgers_stand_apart_where_an_entry_is_kept_for_others_or_goes_in_another_order() -> None:
    """Wrong: two ways to a state are called alike although the next eviction differs."""
    ledger = Ledger(4)
    for name, feature in (("A", 0), ("B", 1)):
        for call in (
            Call("can_allocate", 0, feature, True, 8, 0),
            Call("allocate", 0, feature),
        ):
            assert list(ledger.asks(call, name, 1))
    forward, backward = ledger.fork(), ledger.fork()
    assert forward.stands_like(ledger)
    assert list(forward.lets_go((0, 0), "A"))
    assert not forward.stands_like(ledger)
    assert list(forward.lets_go((0, 1), "B"))
    assert [*backward.lets_go((0, 1), "B"), *backward.lets_go((0, 0), "A")]
    assert not forward.stands_like(backward)
