"""Run a scenario, or one like it, once more, and say whether a claim is still violated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from proofs.drive.jobs import RunsJob, names_of, run_scenarios, warm_up_of
from proofs.jobs.processes import ShouldStop, run_jobs
from proofs.report.near.neighbours import variations
from proofs.run.judge import run_and_judge
from proofs.run.targets import VllmName
from proofs.search.runs.results import BOTH_RUNNERS_CLAIMS, LoopCounterexample
from spec.record.scenario import Scenario

Rerun: TypeAlias = Callable[[Sequence[Scenario]], Sequence[bool | None]]
"""For each scenario, whether it violates the claim; ``None`` where it could not be run."""


_MOST_TOKENS = 40_000
"""Tokens that the runs of one report may take together, about."""


def most_runs(example: LoopCounterexample) -> int:
    """How many runs the report on a violation may take: fewer where each is long."""
    tokens = sum(request.most_tokens for request in example.trace.scenario.requests)
    return max(1, _MOST_TOKENS // max(tokens, len(example.trace.steps)))


def runners_for(example: LoopCounterexample) -> tuple[Runner, ...]:
    """The runners that it takes to show a violation."""
    if example.finding.claim in BOTH_RUNNERS_CLAIMS:
        return RUNNERS
    return (example.trace.runner,)


def reference_rerun(example: LoopCounterexample, faults: Iterable[str]) -> Rerun:
    """Runs scenarios on the reference, with the example's runner, for the example's claim.

    Args:
        example: the violation.
        faults: the switches that are on.
    """
    target = ReferenceLoop(faults)
    runners, claim = runners_for(example), example.finding.claim

    def rerun(scenarios: Sequence[Scenario]) -> list[bool | None]:
        outcomes: list[bool | None] = []
        for scenario in scenarios:
            judged = run_and_judge(target, scenario, runners, None)
            if judged.missing or judged.failed:
                outcomes.append(None)
                continue
            found = [*judged.differences, *(f for all_ in judged.findings.values() for f in all_)]
            outcomes.append(any(finding.claim == claim for finding in found))
        return outcomes

    return rerun


def vllm_reruns(
    vllm: VllmName,
    examples: Sequence[LoopCounterexample],
    tensors: TensorSettings | None,
    should_stop: ShouldStop | None = None,
) -> Callable[[LoopCounterexample], Rerun | None]:
    """Runs what the reports on several violations will ask of a vLLM, in one process of its own.

    Args:
        vllm: which one.
        examples: the violations.
        tensors: device, dtype and hidden size; ``None`` runs on rows alone.
        should_stop: asked whether to stop early.

    Returns:
        For each of the examples what answers from these runs; ``None`` where there were none.
    """
    wanted = list(
        dict.fromkeys(
            (variation.scenario, runners_for(example))
            for example in examples
            for variation in variations(example.trace.scenario, 1)[: most_runs(example)]
        )
    )
    claims: dict[tuple[Scenario, tuple[Runner, ...]], frozenset[str] | None] = {}
    if wanted:
        job = RunsJob(vllm, tuple(wanted), tensors)
        for answer in run_jobs(
            run_scenarios, [job], names_of([vllm]), None, should_stop, warm_up_of=warm_up_of
        ):
            for key, ran in zip(wanted, answer.value or (), strict=False):
                broken = frozenset(claim for found in ran.found.values() for claim, _ in found)
                claims[key] = None if ran.missing or ran.failed else broken

    def rerun_for(example: LoopCounterexample) -> Rerun | None:
        runners, claim = runners_for(example), example.finding.claim

        def rerun(scenarios: Sequence[Scenario]) -> list[bool | None]:
            found = [claims.get((scenario, runners)) for scenario in scenarios]
            return [None if broken is None else claim in broken for broken in found]

        return rerun if claims else None

    return rerun_for
