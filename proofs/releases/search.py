"""Search several vLLMs side by side, and compare each with another or with an earlier search."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from impl.target import RUNNERS, Runner
from proofs.drive.jobs import (
    Ran,
    RunsJob,
    Searched,
    SearchJob,
    names_of,
    run_scenarios,
    search_vllm,
    warm_up_of,
)
from proofs.jobs.processes import Answer, ShouldStop, run_jobs
from proofs.jobs.progress import ReportProgress
from proofs.releases.against import (
    Compared,
    Earlier,
    Parting,
    compare_findings,
    difference_of,
    draws_of,
    earlier_of,
    first_parting,
    load_earlier,
)
from proofs.run.targets import VllmName
from proofs.search.runs.draws import draw
from proofs.search.runs.results import BOTH_RUNNERS_CLAIMS, LoopCheckSettings, LoopCounterexample
from spec.record.scenario import Scenario
from spec.record.steps import Trace


@dataclass(frozen=True)
class VllmReport:
    """What became of one vLLM.

    Attributes:
        searched: what was found; ``None`` where it could not be searched.
        compared: how that relates to what it was compared with, if anything.
        refused: why it could not be searched: wrong input.
        failed: why it could not be searched: something broke down.
    """

    vllm: VllmName
    searched: Searched | None
    compared: Compared | None = None
    refused: str | None = None
    failed: str | None = None


@dataclass
class _Round:
    """Scenarios to run on each vLLM in the second round, and what they showed."""

    wanted: dict[VllmName, dict[tuple[Scenario, tuple[Runner, ...]], None]] = field(
        default_factory=dict
    )
    shown: dict[tuple[VllmName, Scenario, tuple[Runner, ...]], Ran] = field(default_factory=dict)

    def want(self, vllm: VllmName, scenario: Scenario, runners: tuple[Runner, ...]) -> None:
        self.wanted.setdefault(vllm, {})[scenario, runners] = None

    def run(
        self, settings: LoopCheckSettings, progress: ReportProgress | None, stop: ShouldStop
    ) -> None:
        vllms = list(self.wanted)
        jobs = [RunsJob(v, tuple(self.wanted[v]), settings.tensors) for v in vllms]
        for answer in run_jobs(
            run_scenarios, jobs, names_of(vllms), progress, stop, warm_up_of=warm_up_of
        ):
            vllm = vllms[answer.index]
            done = answer.require(vllm.source.name)
            for (scenario, runners), ran in zip(self.wanted[vllm], done, strict=False):
                self.shown[vllm, scenario, runners] = ran


def check_vllms(
    vllms: Sequence[VllmName],
    settings: LoopCheckSettings,
    against: VllmName | Path | None,
    keeps_behaviour: bool,
    progress: ReportProgress | None,
    should_stop: ShouldStop,
) -> list[VllmReport]:
    """Search each vLLM, and compare it where there is something to compare it with.

    Args:
        vllms: what to search, each once.
        settings: for what, and how hard.
        against: another vLLM, on which the same scenarios run, or the file of an earlier search.
        keeps_behaviour: note what each run looked like, to be compared later.
        should_stop: asked whether to stop early.

    Raises:
        InputError: what to compare with cannot be read or searched.
    """
    began = time.monotonic()
    earlier = load_earlier(against) if isinstance(against, Path) else None
    keeps = keeps_behaviour or against is not None
    first, turns = list(vllms), _turns(len(vllms))
    if isinstance(against, VllmName):
        if settings.minutes is None:
            first.append(against)
        else:
            turns += 1  # It runs afterwards, on as many scenarios.
    # What has no core of its own waits for its turn, and the minutes are shared by the turns.
    timed = settings
    if settings.minutes is not None:
        timed = replace(settings, minutes=settings.minutes / turns)
    answers = _search(first, timed, keeps, progress, should_stop, began if turns == 1 else None)
    reports = [_report(v, answer) for v, answer in zip(vllms, answers, strict=False)]
    if against is None:
        return reports
    by_vllm: dict[VllmName, tuple[LoopCounterexample, ...]] = {}
    if isinstance(against, VllmName):
        if settings.minutes is not None:
            done = [r.searched.report.num_scenarios for r in reports if r.searched is not None]
            if not any(done):
                return reports
            same = replace(settings, examples=max(done))
            answers = _search([against], same, keeps, progress, should_stop, began)
        answer = answers[-1]
        if answer is None:
            return reports  # It was stopped before it began.
        searched = answer.require(against.source.name)
        earlier = earlier_of(searched.report, searched.behaviour)
        by_vllm[against] = searched.report.counterexamples
    assert earlier is not None
    other_vllm = against if isinstance(against, VllmName) else None
    return _compare(reports, earlier, other_vllm, by_vllm, settings, progress, should_stop)


def _turns(num_jobs: int) -> int:
    """How often each core runs one of so many jobs."""
    return -(-num_jobs // (os.cpu_count() or 1))


def _search(
    vllms: Sequence[VllmName],
    settings: LoopCheckSettings,
    keeps_behaviour: bool,
    progress: ReportProgress | None,
    should_stop: ShouldStop,
    began: float | None,
) -> list[Answer[Searched] | None]:
    """The answers in the order of the vLLMs; ``None`` where the search was stopped before."""
    jobs = [SearchJob(vllm, settings, keeps_behaviour, began) for vllm in vllms]
    answers: list[Answer[Searched] | None] = [None] * len(jobs)
    for answer in run_jobs(
        search_vllm, jobs, names_of(vllms), progress, should_stop, warm_up_of=warm_up_of
    ):
        answers[answer.index] = answer
    return answers


def _report(vllm: VllmName, answer: Answer[Searched] | None) -> VllmReport:
    if answer is None:
        return VllmReport(vllm, None, failed="interrupted before it began")
    return VllmReport(vllm, answer.value, refused=answer.refused, failed=answer.failed)


def _compare(
    reports: Sequence[VllmReport],
    earlier: Earlier,
    against: VllmName | None,
    examples_of: dict[VllmName, tuple[LoopCounterexample, ...]],
    settings: LoopCheckSettings,
    progress: ReportProgress | None,
    should_stop: ShouldStop,
) -> list[VllmReport]:
    """Compare; an earlier vLLM at hand is asked about what only one found, and so is this one."""
    fingerprints = {finding.fingerprint for finding in earlier.findings}
    second = _Round()
    for report in reports:
        if report.searched is None or against is None:
            continue
        found = report.searched.report.counterexamples
        found_here = {example.finding.fingerprint for example in found}
        for example in found:
            if example.finding.fingerprint not in fingerprints:
                second.want(against, example.trace.scenario, _runners(example))
        for example in examples_of[against]:
            if example.finding.fingerprint not in found_here:
                second.want(report.vllm, example.trace.scenario, _runners(example))
        parting = _first(report.searched, earlier)[2]
        if parting is not None:
            scenario = draw(settings, parting.number).scenario
            for vllm in (against, report.vllm):
                second.want(vllm, scenario, (parting.runner,))
    second.run(settings, progress, should_stop)
    compared = []
    for report in reports:
        if report.searched is None:
            compared.append(report)
            continue
        found = report.searched.report.counterexamples
        result = compare_findings(
            report.searched.report,
            earlier,
            {} if against is None else _shown(second, against, found),
            {} if against is None else _shown(second, report.vllm, examples_of[against]),
        )
        num_compared, num_differing, parting = _first(report.searched, earlier)
        result = replace(
            result, num_compared=num_compared, num_differing=num_differing, parting=parting
        )
        if parting is not None and against is not None:
            scenario = draw(settings, parting.number).scenario
            key = scenario, (parting.runner,)
            runs = [second.shown.get((vllm, *key)) for vllm in (against, report.vllm)]
            traces = [run.traces.get(parting.runner) for run in runs if run is not None]
            match traces:
                case [Trace() as before, Trace() as after]:
                    difference = difference_of(before, after)
                    result = replace(result, difference=difference, traces=(before, after))
        compared.append(replace(report, compared=result))
    return compared


def _first(searched: Searched, earlier: Earlier) -> tuple[int, int, Parting | None]:
    """As :func:`first_parting`, where both searches drew the same scenarios."""
    if (
        searched.behaviour is None
        or earlier.behaviour is None
        or draws_of(searched.report) != earlier.draws
    ):
        return 0, 0, None
    return first_parting(searched.behaviour, earlier.behaviour)


def _runners(example: LoopCounterexample) -> tuple[Runner, ...]:
    """The runners that show the example."""
    if example.finding.claim in BOTH_RUNNERS_CLAIMS:
        return RUNNERS
    return (example.trace.runner,)


def _shown(
    second: _Round, vllm: VllmName, examples: Sequence[LoopCounterexample]
) -> dict[str, bool]:
    """By fingerprint, whether the vLLM shows the examples that it was asked about."""
    shown: dict[str, bool] = {}
    for example in examples:
        ran = second.shown.get((vllm, example.trace.scenario, _runners(example)))
        if ran is not None:
            finding = example.finding
            shown[finding.fingerprint] = ran.shows((finding.claim, finding.mechanism))
    return shown
