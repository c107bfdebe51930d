"""Each claim on the loop has a witness, faults and known assumptions; each assumption a use."""

from __future__ import annotations

import pytest

from impl.faults.switches import FAULTS
from impl.faults.worlds import WORLDS, world
from impl.target import RUNNERS
from impl.targets.runs import ReferenceLoop
from proofs.ledger.witnesses import break_loop_assumption
from proofs.run.record import record
from spec.claims.assumptions import ASSUMPTIONS, TABLE, Assumption
from spec.claims.texts import ALL_TEXTS, CLAIMS, LOOP_CLAIMS, LoopClaim, loop_claim
from spec.errors import InputError
from spec.monitor.monitor import LoopMonitor
from spec.monitor.residency.runners import compare_runners

ACROSS_RUNNERS = {"runners-agree"}
"""Compared over two runs, so that no single monitor counts its premise."""


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("claim", LOOP_CLAIMS.values(), ids=lambda claim: claim.id)
def test_witness_meets_its_premise_on_a_clean_run(claim: LoopClaim, runner) -> None:
    """Wrong: a claim that holds for want of anything to check, or a false alarm."""
    claim.witness.validate()
    monitor = LoopMonitor(claim.witness, runner)
    recording = record(ReferenceLoop(), claim.witness, runner, monitor=monitor)
    judged = {f.claim for f in recording.findings} - _resting_on(claim.witness_without)
    assert judged == set()
    assert recording.trace.ending == "idle"
    if claim.id not in ACROSS_RUNNERS:
        assert monitor.premises[claim.id] > 0


def _resting_on(assumption: str) -> set[str]:
    """Claims that a scenario which breaks the assumption says nothing about."""
    return {claim.id for claim in LOOP_CLAIMS.values() if assumption in claim.assumptions}


def test_witness_of_equal_runners_reads_rows() -> None:
    """Wrong: two runs that agree since neither reads anything."""
    witness = loop_claim("runners-agree").witness
    first, second = (record(ReferenceLoop(), witness, runner).trace for runner in RUNNERS)
    assert compare_runners(first, second) == ()
    assert any(s.kind == "pass" and s.worker and s.worker.target.rows for s in first.steps)


@pytest.mark.parametrize("claim", LOOP_CLAIMS.values(), ids=lambda claim: claim.id)
def test_claim_names_exactly_the_faults_that_break_it(claim: LoopClaim) -> None:
    """Wrong: a claim that nothing can break, or a table that strayed from the switches."""
    assert set(claim.faults) == {f.name for f in FAULTS if claim.id in f.breaks_in_loop}
    assert claim.faults


def test_claim_ids_are_unique() -> None:
    """Wrong: one claim hides another."""
    assert len(ALL_TEXTS) == len(CLAIMS)


def test_assumptions_of_claims_are_known() -> None:
    """Wrong: a claim leans on an assumption that nobody wrote down."""
    named = {name for claim in ALL_TEXTS.values() for name in claim.assumptions}
    assert named == set(ASSUMPTIONS)
    assert len(ASSUMPTIONS) == len(TABLE)


IN_RUNS = tuple(assumption for assumption in TABLE if assumption.on_runs is not None)
"""Assumptions whose need shows in runs."""


@pytest.mark.parametrize("assumption", IN_RUNS, ids=lambda assumption: assumption.id)
def test_something_breaks_without_the_assumption(assumption: Assumption) -> None:
    """Wrong: an assumption that is not needed, or whose case does not show what it is for."""
    breaking = break_loop_assumption(assumption)
    assert breaking is not None
    assert breaking.shown
    assert assumption.id in loop_claim(breaking.claim).assumptions


def test_every_world_breaks_an_assumption() -> None:
    """Wrong: a world that nobody enters, or a name that leads to none."""
    assert set(WORLDS) == {
        assumption.on_runs.world for assumption in IN_RUNS if assumption.on_runs
    } - {""}
    with pytest.raises(InputError, match="unknown world 'the-moon'; known worlds: arrivals-go-on"):
        world("the-moon")
