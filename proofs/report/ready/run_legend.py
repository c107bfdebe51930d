"""What the letters of a run's line stand for: those that occur in it, and no other."""

from __future__ import annotations

from proofs.describe.shape import all_rows
from spec.record.scenario import Scenario


def run_legend(scenario: Scenario) -> str:
    """The legend of the line by which a scenario is told, without its full stop.

    Args:
        scenario: the scenario.
    """
    config = scenario.config
    told = ["B is the token budget of a pass", "C the rows of the encoder cache"]
    if config.encoder_compute_budget < all_rows(scenario.requests):
        told.append("E those that the encoder computes in a pass")
    if config.scheduler_lookahead or config.num_speculative_tokens:
        told.append("ks and kg how far scheduler and drafter look ahead")
    return ", ".join(told)
