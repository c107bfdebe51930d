"""Run scenarios on one target for claims that they are to break, and make the runs small.

What a proof refutes, what a sweep has seen before, and what settings are said to lead to are
scenarios in which a claim is expected to be broken. Whether it is, the engine itself has to show. A
vLLM runs in a process of its own, all scenarios in one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from impl.target import RUNNERS, LoopTarget, Runner
from impl.tensors import TensorSettings
from proofs.drive.examples import examples_of
from proofs.drive.jobs import make_target, names_of, warm_up_of
from proofs.drive.replay import Replayed, replay_on_loop
from proofs.jobs.processes import ShouldStop, run_jobs
from proofs.jobs.progress import ReportProgress
from proofs.run.judge import run_and_judge
from proofs.run.record import MAX_PASSES
from proofs.run.targets import VllmName
from proofs.search.runs.reduce import reduce_scenario
from proofs.search.runs.results import LoopCounterexample
from proofs.search.runs.search import find_again
from spec.record.document import ScenarioDocument
from spec.record.scenario import Scenario

MOST_TRIES = 300
"""Runs that making one scenario smaller may take: they are small already."""


@dataclass(frozen=True)
class Wanted:
    """A claim that is expected to be broken.

    Attributes:
        mechanism: how, where that is known; another one does where this one does not show.
        scenarios: legal scenarios, the likeliest first.
        shrinks: whether to look for the smallest run that breaks it in the same way.
        signs: a regular expression that the mechanism has to contain; a violation by another one
            does not count. ``None`` takes any.
    """

    claim: str
    mechanism: str | None
    scenarios: tuple[Scenario, ...]
    shrinks: bool = False
    signs: str | None = None


@dataclass(frozen=True)
class Shown:
    """What became of it.

    Attributes:
        example: the run; ``None`` where no scenario breaks the claim.
        index: which of the scenarios it began with.
        num_run: scenarios that the target ran.
        reasons: why it did not run others.
        seen: claim and mechanism of every violation in the runs, wanted or not.
        is_done: whether all scenarios had their turn, unless one was enough.
    """

    example: LoopCounterexample | None = None
    index: int = 0
    num_run: int = 0
    reasons: tuple[str, ...] = ()
    seen: tuple[tuple[str, str], ...] = ()
    is_done: bool = True


@dataclass(frozen=True)
class DriveJob:
    """What is wanted of one vLLM.

    Attributes:
        runners: whose order and gathers run.
        tensors: device, dtype and hidden size; ``None`` runs on rows alone.
    """

    vllm: VllmName
    wanted: tuple[Wanted, ...]
    runners: tuple[Runner, ...] = RUNNERS
    tensors: TensorSettings | None = None


def drive(
    job: DriveJob, report_progress: ReportProgress, should_stop: ShouldStop
) -> tuple[Shown, ...]:
    """Run what a job asks for; fewer of it when it is asked to stop.

    Raises:
        InputError: the vLLM cannot be loaded, or its scheduler cannot be made.
    """
    report_progress(f"starting {job.vllm.source.name}", 0, 1)
    target = make_target(job.vllm)
    done: list[Shown] = []
    for wanted in job.wanted:
        if should_stop():
            break
        report_progress("runs of the engine", len(done), len(job.wanted))
        done.append(shown_on(target, wanted, job.runners, job.tensors, should_stop))
    return tuple(done)


def driven(
    job: DriveJob,
    report_progress: ReportProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> tuple[Shown, ...]:
    """What became of each, in their order, with the reason where the vLLM could not be run.

    Args:
        should_stop: asked whether to stop early; what was not run then is not done.
    """
    done: tuple[Shown, ...] = ()
    reason = "it was not run"
    if job.wanted:
        names = names_of([job.vllm])
        for answer in run_jobs(
            drive, [job], names, report_progress, should_stop, warm_up_of=warm_up_of
        ):
            done = answer.value or ()
            reason = answer.refused or answer.failed or reason
    missing = len(job.wanted) - len(done)
    return (*done, *([Shown(reasons=(reason,), is_done=False)] * missing))


def shown_on(
    target: LoopTarget,
    wanted: Wanted,
    runners: Sequence[Runner] = RUNNERS,
    tensors: TensorSettings | None = None,
    should_stop: ShouldStop = lambda: False,
) -> Shown:
    """The first scenario in which the claim is broken, as the target runs it.

    Args:
        wanted: the claim and its scenarios.
        runners: whose order and gathers run.
        tensors: device, dtype and hidden size; ``None`` runs on rows alone.
        should_stop: asked before each run whether to leave it at what there is.
    """
    num_run = 0
    reasons: dict[str, None] = {}
    seen: dict[tuple[str, str], None] = {}
    for index, scenario in enumerate(wanted.scenarios):
        if should_stop():
            return Shown(None, 0, num_run, tuple(reasons), tuple(seen), is_done=False)
        replayed = _replayed(target, scenario, runners, tensors)
        num_run += any(result.trace is not None for result in replayed)
        reasons |= {str(r.reason): None for r in replayed if r.trace is None and r.reason}
        examples = examples_of(tuple(replayed))
        seen |= {(example.finding.claim, example.finding.mechanism): None for example in examples}
        example = _example(examples, wanted)
        if example is not None:
            if wanted.shrinks:
                example = _smallest(target, example, runners, tensors, should_stop)
            return Shown(example, index, num_run, tuple(reasons), tuple(seen))
    return Shown(None, 0, num_run, tuple(reasons), tuple(seen))


def _replayed(
    target: LoopTarget,
    scenario: Scenario,
    runners: Sequence[Runner],
    tensors: TensorSettings | None,
) -> list[Replayed]:
    document = ScenarioDocument(1, "scenario", scenario)
    return replay_on_loop(document, target, runners, tensors, MAX_PASSES)


def _example(examples: Sequence[LoopCounterexample], wanted: Wanted) -> LoopCounterexample | None:
    """The violation of the claim, by the mechanism where it shows."""
    found = [
        example
        for example in examples
        if example.finding.claim == wanted.claim
        and (wanted.signs is None or re.search(wanted.signs, example.finding.mechanism))
    ]
    return min(
        found, key=lambda example: example.finding.mechanism != wanted.mechanism, default=None
    )


def _smallest(
    target: LoopTarget,
    example: LoopCounterexample,
    runners: Sequence[Runner],
    tensors: TensorSettings | None,
    should_stop: ShouldStop,
) -> LoopCounterexample:
    """The same violation in the smallest run that leaving parts out comes to in time."""
    key = example.finding.claim, example.finding.mechanism
    alone = (example.trace.runner,)

    def shows(scenario: Scenario) -> bool:
        if should_stop():
            return False  # Nothing smaller is looked for any more.
        return find_again(run_and_judge(target, scenario, alone, tensors), key) is not None

    smallest = reduce_scenario(example.trace.scenario, shows, MOST_TRIES)
    found = examples_of(tuple(_replayed(target, smallest, runners, tensors)))
    same = (
        candidate
        for candidate in found
        if (candidate.finding.claim, candidate.finding.mechanism) == key
    )
    return next(same, example)
