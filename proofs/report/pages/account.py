"""All that is told of one violation, however it is then written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofs.describe.scenarios import describe_scenario, run_legend
from proofs.describe.words import counted
from proofs.drive.origin import Origin
from proofs.report.near.deciders import Tried, deciders, neighbours
from proofs.report.near.rerun import Rerun
from proofs.report.ready.reach import Reach, reach_of_scenario
from proofs.report.story.conditions import Condition, conditions_of, since
from proofs.report.story.headline import headline
from proofs.report.story.telling import Sentence, story_of
from proofs.report.story.timeline import Timeline
from proofs.report.story.timeline_build import timeline
from proofs.search.runs.results import LoopCounterexample
from spec.claims.texts import LoopClaim, loop_claim
from spec.record.config import EngineConfig
from spec.record.scenario import Scenario


@dataclass(frozen=True)
class Evidence:
    """What is known of a violation beside the run that shows it; sentences without a full stop.

    Attributes:
        shown: what else was shown.
        not_shown: what else was not.
    """

    shown: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()


NO_EVIDENCE = Evidence()
"""Nothing but the run."""


@dataclass(frozen=True)
class Account:
    """Everything about one violation.

    Attributes:
        example: the violation, with its run.
        origin: what was run.
        claim: the claim that is violated.
        headline: the verdict in one sentence, without a full stop.
        mode: synchronous or asynchronous.
        run: the scenario on one line.
        run_legend: what its letters stand for, without a full stop.
        reach: whether default settings reach it, and what it takes.
        timeline: the picture.
        story: the sentences.
        conditions: the parts of the claim with their numbers; the last one is false.
        since: since when it is.
        deciders: the same scenario with other guards.
        neighbours: other scenarios with the same guards; empty where none were run.
        shown: what was shown.
        not_shown: what was not.
    """

    example: LoopCounterexample
    origin: Origin
    claim: LoopClaim
    headline: str
    mode: str
    run: str
    run_legend: str
    reach: Reach
    timeline: Timeline
    story: tuple[Sentence, ...]
    conditions: tuple[Condition, ...]
    since: str
    deciders: tuple[Tried, ...]
    neighbours: tuple[Tried, ...]
    shown: tuple[str, ...]
    not_shown: tuple[str, ...]


def account_of(
    example: LoopCounterexample,
    origin: Origin,
    rerun: Rerun | None = None,
    others: Sequence[Tried] = (),
    evidence: Evidence = NO_EVIDENCE,
) -> Account:
    """Put together what there is to tell; runs the reference, and the target where it can.

    Args:
        example: the violation, with its run.
        origin: what was run.
        rerun: runs scenarios on the target; ``None`` where it is not at hand.
        others: what the same scenario did on other releases.
        evidence: what is known of it beside this run.
    """
    finding, trace = example.finding, example.trace
    picture = timeline(trace, finding)
    conditions = conditions_of(finding, picture)
    ran: list[Scenario] = []
    around = () if rerun is None else neighbours(example, _noting(rerun, ran))
    has_async = any(scenario.config.async_depth for scenario in (trace.scenario, *ran))
    return Account(
        example,
        origin,
        loop_claim(finding.claim),
        headline(finding, picture),
        mode_of(trace.scenario.config),
        describe_scenario(trace.scenario),
        run_legend(trace.scenario),
        reach_of_scenario(trace.scenario, example.runners),
        picture,
        story_of(finding, trace.scenario, picture, conditions),
        conditions,
        since(finding, picture),
        (*others, *deciders(example, origin.faults)),
        around,
        (*evidence.shown, *_shown(example, origin, rerun is not None)),
        (*evidence.not_shown, *_not_shown(example, origin, bool(around), has_async)),
    )


def _noting(rerun: Rerun, ran: list[Scenario]) -> Rerun:
    """The same, adding what could be run to a list."""

    def noted(scenarios: Sequence[Scenario]) -> Sequence[bool | None]:
        outcomes = rerun(scenarios)
        ran.extend(
            scenario for scenario, seen in zip(scenarios, outcomes, strict=True) if seen is not None
        )
        return outcomes

    return noted


def mode_of(config: EngineConfig) -> str:
    """Whether passes are scheduled ahead."""
    if not config.async_depth:
        return "synchronous"
    return f"asynchronous, {counted(config.async_depth, 'pass', 'passes')} ahead"


def _shown(example: LoopCounterexample, origin: Origin, ran_again: bool) -> tuple[str, ...]:
    trace = example.trace
    if origin.is_vllm:
        what = (
            "The real scheduler, its encoder cache manager and its KV cache manager ran this "
            "scenario on CPU, with the gathers of the release's own runner"
        )
    elif origin.by_source_proof:
        what = (
            "The release's own scheduling code ran this scenario on plain integers, called by the "
            "source proof, which stands for the engine, the worker and the KV blocks"
        )
    elif origin.recorded:
        what = "The run is as it was recorded; nothing was run again"
    else:
        what = "Our reference implementation ran this scenario, with the switches that are named"
    shown = [
        what,
        f"A monitor that is no part of the target judged each of its {len(trace.steps)} steps",
    ]
    if ran_again:
        shown.append("Each line of the two tables above is a run of its own")
    return tuple(shown)


def _not_shown(
    example: LoopCounterexample, origin: Origin, has_neighbours: bool, has_async: bool
) -> tuple[str, ...]:
    trace = example.trace
    scenario = trace.scenario
    config = scenario.config
    reasons = []
    on_worker = any(step.kind == "pass" and step.worker for step in trace.steps)
    if origin.is_vllm and on_worker:
        reasons.append(
            "The worker around the scheduler is a stand-in that keeps the order of the release's "
            "runner: no model ran, and nothing ran on a GPU"
        )
    elif not origin.is_vllm and not origin.by_source_proof:
        reasons.append(
            "That a release of vLLM does the same: a switch is a model of a fault, and only a run "
            "of the release shows it there"
        )
    if not has_async:
        reasons.append("Asynchronous scheduling was not tried with this run")
    if config.scheduler_lookahead and origin.is_vllm:
        reasons.append(
            "The drafter was configured as ngram and renamed, since a real one needs weights; the "
            "scheduler sees no difference"
        )
    if any(request.prefix_hits or request.failed_loads for request in scenario.requests):
        reasons.append(
            "What is found computed comes from a KV connector of the test, not from the local "
            "prefix cache"
        )
    if origin.is_vllm:
        reasons.append(
            "Cache size and encoder budget were set on the scheduler as a model would have made "
            "them; that a model and its start-up checks lead to these numbers was not shown"
        )
    if not has_neighbours:
        reasons.append("No neighbouring scenario was run, so that the edge is not known")
    by = "proof" if origin.by_source_proof else "search"
    reasons.append(
        f"The run is the smallest that the {by} came to; how often larger ones meet it was not "
        "measured"
    )
    if origin.is_vllm:
        reasons.append("Nobody looked for an open issue or pull request on it")
    return tuple(reasons)
