"""What is done with one vLLM: search it, or run given scenarios.

Each job is done in a process of its own, which judges. The vLLM itself is in a further one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Protocol

from impl.target import RUNNERS, LoopTarget, Runner
from impl.tensors import TensorSettings
from impl.vllm.remote.process import RemoteProcess
from impl.vllm.remote.targets import RemoteLoop
from proofs.drive.replay import Replayed, replay_case, replay_on_loop
from proofs.jobs.progress import ReportProgress
from proofs.jobs.warm import WarmUp
from proofs.results.outcome import Outcome
from proofs.run.digest import digest
from proofs.run.judge import Judged, run_and_judge
from proofs.run.record import record
from proofs.run.targets import VllmName
from proofs.search.runs.draws import Drawn
from proofs.search.runs.results import LoopCheckSettings, LoopReport
from proofs.search.runs.search import run_loop_check
from spec.claims.witnesses import TWO_ITEMS
from spec.errors import InputError
from spec.functions.case_files import Document
from spec.record.document import LoopDocument
from spec.record.scenario import Scenario
from spec.record.steps import Trace
from spec.verdict import Verdict

if TYPE_CHECKING:
    from proofs.jobs.processes import ShouldStop

_BOTH = "V1 with V2"


@dataclass(frozen=True)
class Behaviour:
    """What the runs of a search looked like, by number of the scenario.

    Attributes:
        digests: of each runner's runs; ``None`` where there was none.
        broken: numbers of the scenarios on which a claim was found violated.
    """

    digests: dict[Runner, list[str | None]] = field(default_factory=dict)
    broken: dict[Runner, list[int]] = field(default_factory=dict)

    def note(self, number: int, drawn: Drawn, judged: Judged) -> None:
        """Take the runs of one more scenario; they come in order."""
        for runner in (*judged.traces, *judged.missing, *judged.failed):
            trace = judged.traces.get(runner)
            self.digests.setdefault(runner, []).append(None if trace is None else digest(trace))
            if any(drawn.judges(finding.claim) for finding in judged.findings.get(runner, ())):
                self.broken.setdefault(runner, []).append(number)


@dataclass(frozen=True)
class SearchJob:
    """A search of one vLLM.

    Attributes:
        settings: for what, and how hard.
        keeps_behaviour: note what the runs look like, to be compared or kept.
        began: when the minutes of the settings began (``time.monotonic``); ``None`` for now.
            Starting a vLLM takes a good part of one.
    """

    vllm: VllmName
    settings: LoopCheckSettings
    keeps_behaviour: bool = False
    began: float | None = None


@dataclass(frozen=True)
class Searched:
    """What a search found, and what the runs looked like where that was asked for."""

    report: LoopReport
    behaviour: Behaviour | None = None


@dataclass(frozen=True)
class RunsJob:
    """Scenarios to run on one vLLM, each with the runners that it needs."""

    vllm: VllmName
    runs: tuple[tuple[Scenario, tuple[Runner, ...]], ...]
    tensors: TensorSettings | None = None


@dataclass(frozen=True)
class Ran:
    """One scenario, run.

    Attributes:
        found: claim and mechanism of each violation, by runner; ``V1 with V2`` for differences.
        premises: claims whose premise happened, by runner.
        missing: why a runner could not be given the scenario.
        failed: how a runner broke down.
    """

    traces: Mapping[Runner, Trace]
    found: Mapping[str, tuple[tuple[str, str], ...]]
    premises: Mapping[Runner, Counter[str]]
    missing: Mapping[Runner, str]
    failed: Mapping[Runner, str]

    def shows(self, key: tuple[str, str]) -> bool:
        """Whether a violation of this claim with this mechanism shows."""
        return any(key in keys for keys in self.found.values())


@dataclass(frozen=True)
class ReplayJob:
    """A file to replay on one vLLM; attributes as of :func:`proofs.drive.replay.replay_loop`."""

    vllm: VllmName
    document: Document | LoopDocument
    runners: tuple[Runner, ...]
    tensors: TensorSettings | None
    max_passes: int


class OnVllm(Protocol):
    """A job on a vLLM."""

    @property
    def vllm(self) -> VllmName:
        """Which one."""


def warm_up_of(job: OnVllm) -> WarmUp:
    """What is made ready for a job on a vLLM, once for all jobs on the same one."""
    return WarmUp(_prepare, job.vllm)


def _prepare(vllm: VllmName) -> bool:
    """Have everything imported that runs import, by running one on each runner.

    Returns:
        That forks can use it: each gets a fork of the process that holds the vLLM.
    """
    target = make_target(vllm)
    for runner in RUNNERS:
        if target.missing(TWO_ITEMS, runner) is None:
            record(target, TWO_ITEMS, runner, tensors=TensorSettings())
    return True


@cache
def make_target(vllm: VllmName) -> RemoteLoop:
    """The target: a process that holds this vLLM and no other, and judges nothing; made once.

    Raises:
        InputError: a dependency is missing, or there is no such class, or it is no scheduler.
        NoAnswerError: the process ended, or did not answer as it should.
    """
    return RemoteLoop(RemoteProcess(vllm.source, vllm.scheduler_class))


def search_vllm(
    job: SearchJob, report_progress: ReportProgress, should_stop: ShouldStop
) -> Searched:
    """Search one vLLM.

    Raises:
        InputError: it cannot be loaded, or its scheduler cannot be made.
    """
    report_progress(f"starting {job.vllm.source.name}", 0, 1)
    target = make_target(job.vllm)
    behaviour = Behaviour() if job.keeps_behaviour else None
    report = run_loop_check(
        target,
        job.settings,
        report_progress,
        should_stop,
        None if behaviour is None else behaviour.note,
        job.began,
    )
    return Searched(with_unrecognised(report, unrecognised(target)), behaviour)


def run_scenarios(
    job: RunsJob, report_progress: ReportProgress, should_stop: ShouldStop
) -> tuple[Ran, ...]:
    """Run given scenarios on one vLLM; fewer of them when it is asked to stop.

    Raises:
        InputError: it cannot be loaded, or its scheduler cannot be made.
    """
    report_progress(f"starting {job.vllm.source.name}", 0, 1)
    return run_on(make_target(job.vllm), job, report_progress, should_stop)


def run_on(
    target: LoopTarget, job: RunsJob, report_progress: ReportProgress, should_stop: ShouldStop
) -> tuple[Ran, ...]:
    """Run the scenarios of a job on a target that is there already."""
    done: list[Ran] = []
    for scenario, runners in job.runs:
        if should_stop():
            break
        report_progress("scenarios", len(done), len(job.runs))
        done.append(_ran(run_and_judge(target, scenario, runners, job.tensors)))
    return tuple(done)


def _ran(judged: Judged) -> Ran:
    found: dict[str, tuple[tuple[str, str], ...]] = {
        runner: tuple((finding.claim, finding.mechanism) for finding in findings)
        for runner, findings in judged.findings.items()
    }
    found[_BOTH] = tuple((finding.claim, finding.mechanism) for finding in judged.differences)
    return Ran(judged.traces, found, judged.premises, judged.missing, judged.failed)


def replay_on_vllm(
    job: ReplayJob, report_progress: ReportProgress, should_stop: ShouldStop
) -> list[Replayed]:
    """Replay a file on one vLLM.

    Raises:
        InputError: it cannot be loaded, or a function-level case was to run without tensors.
    """
    if not isinstance(job.document, Document):
        target = make_target(job.vllm)
        return replay_on_loop(job.document, target, job.runners, job.tensors, job.max_passes)
    if job.tensors is None:
        raise InputError("a function-level case needs tensors; use --device cpu")
    functions = make_target(job.vllm).functions
    return replay_case(job.document, functions, job.runners, job.tensors)


def unrecognised(target: RemoteLoop) -> dict[Runner, str]:
    """Runners that a release has, and the order of whose worker is not recognised; with the reason.

    A runner that the release does not have is none of them.
    """
    found: dict[Runner, str] = {}
    for runner in RUNNERS:
        if target.functions.missing(runner) is None:
            order = target.worker_order(runner)
            if isinstance(order, str):
                found[runner] = f"the order of its worker is not recognised: {order}"
    return found


def with_unrecognised(report: LoopReport, reasons: Mapping[Runner, str]) -> LoopReport:
    """The report, where claims on runners whose order is not recognised are ``UNKNOWN``."""

    def corrected(result: Outcome) -> Outcome:
        for runner, reason in reasons.items():
            if result.part in (runner, _BOTH) and not result.cases:
                return replace(result, verdict=Verdict.UNKNOWN, reason=f"{runner}: {reason}")
        return result

    return replace(report, results=tuple(corrected(result) for result in report.results))


def names_of(vllms: Sequence[VllmName]) -> list[str]:
    """What each is called."""
    return [vllm.source.name for vllm in vllms]
