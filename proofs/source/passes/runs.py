"""Whole runs of a release's scheduler on symbolic integers: a bounded model check of its source.

``schedule()`` and ``update_from_output()`` run unchanged for a request that has the engine for
itself, from its arrival and an empty book. Every counterexample is a scenario of the loop: it is
run again on plain integers, further than the proof went, and judged by the loop's own monitor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import z3

from proofs.source.ask.piece import Piece, Question, settle, unmodelled
from proofs.source.code.encoder_passes import has_reservation
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_passes import run_alone
from proofs.source.code.run_setup import RunCode, RunInput
from proofs.source.code.source_target import feature_input
from proofs.source.passes.run_claims import RULES, Conditions
from proofs.source.passes.run_scenario import FEW_PASSES, RunScenario, RunShape, run_shapes
from proofs.symbolic.integers import NotModelled
from spec.functions.findings import Finding, finding
from spec.monitor.monitor import LoopMonitor
from spec.record.scenario import Scenario
from spec.record.steps import Step

CLAIMS = tuple(RULES)
"""Every claim on runs, in the order in which they are reported."""

_ASSUMPTIONS = (
    "features-sorted-disjoint",
    "features-not-empty",
    "features-in-prompt",
    "hash-is-content",
    "everything-fits-alone",
    "budgets-fixed",
    "sampling-yields",
)

_MOST_PASSES = 60
"""Passes of a replay: a request that stands still is seen to do so for dozens of them."""


def shapes_of_runs(
    release: ReleaseSource, max_features: int, num_passes: int
) -> Iterator[RunShape]:
    """Every configuration of runs that the release can come to, of few passes and of as many."""
    shifts = (0, 1, 2) if has_reservation(release) else (0, 1)
    for count in range(FEW_PASSES, num_passes + 1):
        yield from run_shapes(max_features, count, shifts)


def run_questions(shape: RunShape) -> list[Question]:
    """Every claim on the runs of one shape."""
    return [
        Question(claim_id, shape.part, shape.describe(), _ASSUMPTIONS)
        for claim_id in claims_of(shape)
    ]


def run_pieces(release: ReleaseSource, name: str, shape: RunShape) -> list[Piece]:
    """What :func:`run_questions` asks, on every path."""
    questions = run_questions(shape)
    try:
        code = RunCode(release)
        scenario = RunScenario(code, shape)
    except NotModelled as reason:
        return [unmodelled(question, reason) for question in questions]

    conditions = Conditions(scenario)

    def replay(model: z3.ModelRef, claim_id: str) -> tuple[Scenario, Sequence[Finding]]:
        case = scenario.in_model(model)
        return case, judged(case, run_plain(code, case), f"{name} {shape.part}", claim_id)

    return settle(
        [(question, partial(conditions.holds, question.claim)) for question in questions],
        scenario.exploration,
        scenario.tree,
        sizes=scenario.sizes,
        replay=replay,
    )


def claims_of(shape: RunShape) -> tuple[str, ...]:
    """Claims that are asked on a shape: those whose premise can happen in it."""
    left_out = set()
    if not shape.shift or shape.dense:
        # What the target misses counts there alone; all else that a drafter reads of a dense
        # feature lies at the boundary.
        left_out.add("drafter-resident-or-boundary")
    if not shape.whole_items:
        left_out.add("item-whole")
    return tuple(claim for claim in CLAIMS if claim not in left_out)


def run_plain(code: RunCode, case: Scenario) -> Iterator[Step]:
    """The steps of a lone request's scenario on plain integers, up to the most passes of a replay.

    Raises:
        NotModelled: the code uses something that is not modelled.
    """
    (request,) = case.requests
    config = case.config
    steps = run_alone(
        code,
        RunInput(
            tuple(feature_input(i, f) for i, f in enumerate(request.features)),
            request.num_prompt_tokens,
            request.max_tokens,
            config.max_num_batched_tokens,
            config.encoder_compute_budget,
            config.encoder_cache_size,
            config.long_prefill_token_threshold,
            config.scheduler_lookahead,
            config.num_speculative_tokens,
            request.accepted_drafts,
            config.whole_items,
        ),
    )
    num_passes = 0
    for step in steps:
        yield step
        num_passes += step.kind == "pass"
        if num_passes > _MOST_PASSES:
            return


def judged(
    case: Scenario, steps: Iterable[Step], target: str, claim_id: str
) -> tuple[Finding, ...]:
    """What the loop's monitor says of a claim on a run of a scenario on plain integers."""
    case.validate()
    monitor = LoopMonitor(case, "V1")
    for step in steps:
        for found in monitor.observe(step):
            if found.claim == claim_id:
                return (
                    finding(
                        claim_id,
                        case,
                        observed=f"pass {found.pass_index}: {found.observed}",
                        expected=found.expected,
                        target=target,
                        mechanism=found.mechanism,
                    ),
                )
    return ()
