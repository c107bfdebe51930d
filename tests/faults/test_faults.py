"""Each fault switch breaks exactly the claims it names; each claim is broken by its faults."""

from __future__ import annotations

import pytest

from impl.faults.switches import BY_NAME, FAULTS, Fault, fault
from impl.targets.functions import ReferenceTarget
from spec.claims.assumptions import ASSUMPTIONS, Assumption
from spec.claims.texts import FUNCTION_CLAIMS, FunctionClaim

LOOP_CLAIMS = {"target-resident", "drafter-resident-or-boundary"}
"""What is resident is given in a case: these say something about the loop that made it so."""


@pytest.mark.parametrize("switch", FAULTS, ids=lambda switch: switch.name)
def test_fault_breaks_the_claims_it_names_and_no_others(switch: Fault, case_pool, findings_of):
    """Otherwise a claim is blind to its fault, or one effect counts twice."""
    target = ReferenceTarget([switch.name])
    broken = {finding.claim for case in case_pool for finding in findings_of(target, case)}
    assert broken == set(switch.breaks)
    assert broken or switch.breaks_in_loop, "it shows at no level"


def test_fault_breaks_known_claims():
    """Otherwise a fault names a claim that was renamed."""
    assert {claim for switch in FAULTS for claim in switch.breaks} <= set(FUNCTION_CLAIMS)


def test_fault_names_are_unique():
    """Otherwise one switch hides another."""
    assert len(BY_NAME) == len(FAULTS)


@pytest.mark.parametrize("claim", FUNCTION_CLAIMS.values(), ids=lambda claim: claim.id)
def test_claim_names_faults_that_break_it(claim: FunctionClaim):
    """Otherwise nothing shows that the claim can fail."""
    for name in claim.faults:
        assert claim.id in fault(name).breaks
    assert bool(claim.faults) != (claim.id in LOOP_CLAIMS)


@pytest.mark.parametrize("claim", FUNCTION_CLAIMS.values(), ids=lambda claim: claim.id)
def test_witness_holds_on_the_reference(claim: FunctionClaim, reference, findings_of):
    """Otherwise the reference breaks the protocol in the plainest case."""
    claim.witness.validate()
    assert findings_of(reference, claim.witness) == ()


def test_reference_holds_on_the_whole_pool(case_pool, reference, findings_of):
    """Otherwise a fault's findings need not come from the fault."""
    assert [f for case in case_pool for f in findings_of(reference, case)] == []


@pytest.mark.parametrize(
    "assumption", [a for a in ASSUMPTIONS.values() if a.on_functions], ids=lambda a: a.id
)
def test_assumption_trace_breaks_its_claim(assumption: Assumption, findings_of):
    """Otherwise the assumption is not needed, or its trace does not show it."""
    breaking = assumption.on_functions
    assert breaking is not None
    target = ReferenceTarget([] if breaking.with_fault is None else [breaking.with_fault])
    assert breaking.claim in {f.claim for f in findings_of(target, breaking.case)}


def test_faults_combine(case_pool, findings_of):
    """Otherwise a switch undoes another."""
    together = ["no-boundary-tolerance", "window-search-late", "stale-eviction-notice"]
    target = ReferenceTarget(together)
    broken = {finding.claim for case in case_pool for finding in findings_of(target, case)}
    assert {"boundary-miss-tolerated", "window-exact", "evicted-not-live"} <= broken
    assert target.name == f"reference +{' +'.join(sorted(together))}"
