"""What healthy engines may do is answered at every claim on runs."""

from __future__ import annotations

from spec.claims.healthy import HEALTHY
from spec.claims.texts import LOOP_CLAIMS


def test_every_claim_on_runs_says_which_healthy_engine_could_break_it() -> None:
    """Wrong: a claim is stated by the reference's habits, and nobody asked who else is right."""
    assert HEALTHY.keys() == LOOP_CLAIMS.keys()
    assert all(HEALTHY.values())
