"""Each claim on the loop has a witness, faults and known assumptions; each assumption a use."""

from __future__ import annotations

import pytest

from impl.faults.switches import FAULTS
from impl.faults.worlds import WORLDS, world
from impl.target import RUNNERS
from impl.targets.runs import ReferenceLoop
from proofs.ledger.witnesses import break_loop_assumption
from proofs.run.record import record
from spec.claims.on_functions_assumptions import BY_ID as FUNCTION_ASSUMPTIONS
from spec.claims.on_runs import BY_ID, LOOP_CLAIMS, LoopClaim, loop_claim
from spec.claims.on_runs_assumptions import BY_ID as ASSUMPTIONS
from spec.claims.on_runs_assumptions import LOOP_ASSUMPTIONS, LoopAssumption, loop_assumption
from spec.errors import InputError
from spec.monitor.monitor import LoopMonitor
from spec.monitor.residency.runners import compare_runners

ACROSS_RUNNERS = {"runners-agree"}
"""Compared over two runs, so that no single monitor counts its premise."""


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("claim", LOOP_CLAIMS, ids=lambda claim: claim.id)
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
    return {claim.id for claim in LOOP_CLAIMS if assumption in claim.assumptions}


def test_witness_of_equal_runners_reads_rows() -> None:
    """Wrong: two runs that agree since neither reads anything."""
    witness = loop_claim("runners-agree").witness
    first, second = (record(ReferenceLoop(), witness, runner).trace for runner in RUNNERS)
    assert compare_runners(first, second) == ()
    assert any(s.kind == "pass" and s.worker and s.worker.target.rows for s in first.steps)


@pytest.mark.parametrize("claim", LOOP_CLAIMS, ids=lambda claim: claim.id)
def test_claim_names_exactly_the_faults_that_break_it(claim: LoopClaim) -> None:
    """Wrong: a claim that nothing can break, or a table that strayed from the switches."""
    assert set(claim.faults) == {f.name for f in FAULTS if claim.id in f.breaks_in_loop}
    assert claim.faults


def test_claim_ids_are_unique() -> None:
    """Wrong: one claim hides another."""
    assert len(BY_ID) == len(LOOP_CLAIMS)


def test_assumptions_of_claims_are_known() -> None:
    """Wrong: a claim leans on an assumption that nobody wrote down."""
    named = {name for claim in LOOP_CLAIMS for name in claim.assumptions}
    assert named <= set(FUNCTION_ASSUMPTIONS) | set(ASSUMPTIONS)
    assert set(ASSUMPTIONS) <= named
    assert len(ASSUMPTIONS) == len(LOOP_ASSUMPTIONS)


@pytest.mark.parametrize("assumption", LOOP_ASSUMPTIONS, ids=lambda assumption: assumption.id)
def test_something_breaks_without_the_assumption(assumption: LoopAssumption) -> None:
    """Wrong: an assumption that is not needed, or whose case does not show what it is for."""
    breaking = break_loop_assumption(assumption)
    assert breaking is not None
    assert breaking.shown
    assert assumption.id in loop_claim(breaking.claim).assumptions
    assert loop_assumption(assumption.id) is assumption


def test_every_world_breaks_an_assumption() -> None:
    """Wrong: a world that nobody enters, or a name that leads to none."""
    assert set(WORLDS) == {assumption.world for assumption in LOOP_ASSUMPTIONS} - {""}
    with pytest.raises(InputError, match="unknown world 'the-moon'; known worlds: arrivals-go-on"):
        world("the-moon")
