"""Search whole runs of a target for violated claims.

Each scenario is drawn by its number, run on every chosen runner, and judged. Violations with the
same claim and mechanism are one, of which the smallest run is looked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from impl.target import RUNNERS, LoopTarget, Runner
from proofs.describe.scenarios import describe_scenario
from proofs.describe.shape import shape, tags
from proofs.jobs.progress import ReportProgress
from proofs.results.outcome import Outcome
from proofs.run.judge import Judged, run_and_judge
from proofs.search.functions.parts import CheckedPart
from proofs.search.runs.draws import Drawn, draw
from proofs.search.runs.frame import SMALL
from proofs.search.runs.reduce import reduce_scenario, size
from proofs.search.runs.results import (
    BOTH_RUNNERS_CLAIMS,
    PROGRESS_CLAIMS,
    RUNNER_CLAIMS,
    LoopCheckSettings,
    LoopCounterexample,
    LoopReport,
)
from proofs.search.runs.scenarios import families
from proofs.search.two_phases import Limits, Search
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario
from spec.record.steps import Trace
from spec.verdict import Verdict

_MAX_STARTS = 4


@dataclass
class Group:
    """All findings with one claim and one mechanism.

    Attributes:
        finding: that of the smallest run so far.
        trace: the smallest run so far.
        starts: the smallest scenarios of different kinds. Reducing more than one makes it likelier
            that every search ends with the same.
        runners: runners on which it was seen.
    """

    finding: LoopFinding
    trace: Trace
    starts: dict[tuple[str, ...], Scenario] = field(default_factory=dict)
    runners: set[Runner] = field(default_factory=set)

    def add(self, finding: LoopFinding, trace: Trace) -> None:
        """Take another run with such a finding, unless another runner made it.

        All runs that are kept come from one runner, which can then show each of them.
        """
        if trace.runner != self.trace.runner:
            return
        scenario = trace.scenario
        if size(scenario) < size(self.trace.scenario):
            self.finding, self.trace = finding, trace
        kind = tags(scenario)
        smallest = self.starts.get(kind)
        if smallest is None or size(scenario) < size(smallest):
            self.starts[kind] = scenario
            if len(self.starts) > _MAX_STARTS:
                del self.starts[max(self.starts, key=lambda kind: size(self.starts[kind]))]

    def best_starts(self) -> list[Scenario]:
        """What to reduce: the smallest, and further ones where that does not take long."""
        first, *later = sorted(self.starts.values(), key=size)
        return [first, *(s for s in later if len(s.requests) <= SMALL.many_requests[1])]

    def counterexample(self) -> LoopCounterexample:
        """What is reported of the group."""
        seen = tuple(runner for runner in RUNNERS if runner in self.runners)
        return LoopCounterexample(self.finding, self.trace, seen)


def find_again(judged: Judged, key: tuple[str, str]) -> tuple[LoopFinding, Trace] | None:
    """The first finding with the claim and mechanism, and the run that it was made on."""
    for runner, findings in judged.findings.items():
        for finding in findings:
            if (finding.claim, finding.mechanism) == key:
                return finding, judged.traces[runner]
    for finding in judged.differences:
        if (finding.claim, finding.mechanism) == key:
            return finding, judged.traces["V1"]
    return None


_BOTH: CheckedPart = "V1 with V2"
_STEPS_BETWEEN_REPORTS = 50

Key: TypeAlias = tuple[str, str]
"""Claim and mechanism: findings with the same two are one."""

Observe: TypeAlias = Callable[[int, Drawn, Judged], None]
"""Is given every scenario: its number, what was drawn, and what became of it."""


def run_loop_check(
    target: LoopTarget,
    settings: LoopCheckSettings,
    report_progress: ReportProgress | None = None,
    should_stop: Callable[[], bool] | None = None,
    observe: Observe | None = None,
    began: float | None = None,
) -> LoopReport:
    """Search a target.

    Args:
        settings: for what, and how hard.
        should_stop: asked before every run. When it says yes, or Ctrl-C comes, the search ends
            early, and the report holds what was found so far.
        began: when the minutes of the settings began (``time.monotonic``); now by default.

    Raises:
        InputError: the settings ask for nothing that can be done.
    """
    settings.validate()
    limits = Limits(settings.examples, settings.minutes, should_stop, began)
    search: Search[Key, Group] = Search(limits, report_progress, "run")
    runs = _Runs(target, settings, search, observe or (lambda *_: None))
    ending = search.run(runs.collect, runs.shrink, lambda key: key[0])
    return LoopReport(
        target.name,
        settings,
        runs.results(),
        tuple(group.counterexample() for group in search.found.values()),
        runs.num_scenarios,
        runs.families,
        tuple(runs.failures.values()),
        ending.interrupted,
        runs.not_given,
        ending.not_shrunk,
    )


class _Runs:
    """What is drawn and how it is judged: counts, and findings by claim and mechanism."""

    def __init__(
        self,
        target: LoopTarget,
        settings: LoopCheckSettings,
        search: Search[Key, Group],
        observe: Observe,
    ) -> None:
        self._target = target
        self._settings = settings
        self._search = search
        self._observe = observe
        self._runs: Counter[CheckedPart] = Counter()
        self._premises: Counter[tuple[CheckedPart, str]] = Counter()
        self._given_up: Counter[CheckedPart] = Counter()
        self._num_failed: Counter[CheckedPart] = Counter()
        self._is_complete = False
        self._is_endless = False
        self.not_given: dict[Runner, Counter[str]] = {}
        self.failures: dict[Runner, str] = {}
        self.num_scenarios = 0
        self.families: Counter[str] = Counter()

    def collect(self) -> None:
        """Draw scenarios and note every violation."""
        limits = self._search.limits
        unit = "seconds of runs" if limits.counts_seconds else "runs"
        while limits.may_draw(self.num_scenarios, has_found=bool(self._search.found)):
            if self.num_scenarios % _STEPS_BETWEEN_REPORTS == 0:
                self._search.report_progress(unit, *limits.progress(self.num_scenarios))
            limits.stop_if_asked()
            drawn = draw(self._settings, self.num_scenarios)
            judged = self._judge(drawn.scenario)
            self._observe(self.num_scenarios, drawn, judged)
            self._note(drawn, judged)
            if judged.is_endless:
                # Each further scenario could take as long, and the code under test may be left in
                # any state.
                self._is_endless = True
                return
        self._search.report_progress(unit, *limits.progress(self.num_scenarios))
        self._is_complete = True

    def shrink(self, key: Key, group: Group, may_try: Callable[[], bool]) -> Group:
        """The violation in the smallest run that the reducer finds.

        A run that is not reduced to the end has no shape: what is left of it need not be what the
        violation needs.
        """
        if self._is_endless:
            return group
        runners = self._runners_for(group)
        found: dict[Scenario, tuple[LoopFinding, Trace]] = {}

        def shows(scenario: Scenario) -> bool:
            self._search.limits.stop_if_asked()
            judged = run_and_judge(self._target, scenario, runners, self._settings.tensors)
            shown = find_again(judged, key)
            if shown is not None:
                found[scenario] = shown
            return shown is not None

        reduced = [reduce_scenario(s, shows, may_try=may_try) for s in group.best_starts()]
        smallest = min(reduced, key=size)
        finding, trace = found.get(smallest, (group.finding, group.trace))
        finding = replace(finding, shape=shape(smallest) if may_try() else "")
        return replace(group, finding=finding, trace=trace)

    def results(self) -> tuple[Outcome, ...]:
        """One result for each claim and runner, in the order of the settings."""
        wanted: list[tuple[str, CheckedPart]] = [
            (claim, runner) for runner in self._settings.runners for claim in RUNNER_CLAIMS
        ]
        if len(self._settings.runners) == len(RUNNERS):
            wanted += [(claim, _BOTH) for claim in BOTH_RUNNERS_CLAIMS]
        return tuple(
            self._result(claim, part) for claim, part in wanted if self._settings.reports(claim)
        )

    def _judge(self, scenario: Scenario) -> Judged:
        should_compare = any(self._settings.reports(claim) for claim in BOTH_RUNNERS_CLAIMS)
        return run_and_judge(
            self._target,
            scenario,
            self._settings.runners,
            self._settings.tensors,
            should_compare,
        )

    def _note(self, drawn: Drawn, judged: Judged) -> None:
        self.num_scenarios += 1
        self.families.update(families(drawn.scenario))
        for runner, reason in judged.missing.items():
            self.not_given.setdefault(runner, Counter())[reason] += 1
        for runner, reason in judged.failed.items():
            self._num_failed[runner] += 1
            failure = f"{runner}: {reason}, on {describe_scenario(drawn.scenario)}"
            self.failures.setdefault(runner, failure)
        for runner, trace in judged.traces.items():
            self._runs[runner] += 1
            self._given_up[runner] += trace.ending == "limit"
            for claim, times in judged.premises[runner].items():
                self._premises[runner, claim] += times > 0 and drawn.judges(claim)
            for finding in judged.findings[runner]:
                if drawn.judges(finding.claim):
                    self._add(finding, trace, {runner})
        if len(judged.traces) == len(RUNNERS) and drawn.judges("runners-agree"):
            self._runs[_BOTH] += 1
            read = any(
                step.kind == "pass" and step.worker is not None and step.worker.target.rows
                for step in judged.traces["V1"].steps
            )
            for claim in BOTH_RUNNERS_CLAIMS:
                self._premises[_BOTH, claim] += read
            for finding in judged.differences:
                self._add(finding, judged.traces["V1"], set(RUNNERS))

    def _add(self, finding: LoopFinding, trace: Trace, runners: set[Runner]) -> None:
        if not self._settings.reports(finding.claim):
            return
        key = finding.claim, finding.mechanism
        group = self._search.found.setdefault(key, Group(finding, trace))
        group.runners |= runners
        group.add(finding, trace)

    def _runners_for(self, group: Group) -> tuple[Runner, ...]:
        """The runners needed to show the group again: one, unless it is about both."""
        if group.finding.claim in BOTH_RUNNERS_CLAIMS:
            return RUNNERS
        return (group.trace.runner,)

    def _why_not_given(self, part: CheckedPart) -> str | None:
        """The usual reason why a part, or either runner of both, got nothing to run."""
        if part == _BOTH and any(self._num_failed.values()):
            return None
        for runner in RUNNERS:
            if part in (runner, _BOTH) and not self._runs[runner] and runner in self.not_given:
                return self.not_given[runner].most_common(1)[0][0]
        return None

    def _result(self, claim: str, part: CheckedPart) -> Outcome:
        runs, premises = self._runs[part], self._premises[part, claim]
        fingerprints = tuple(
            group.finding.fingerprint
            for group in self._search.found.values()
            if group.finding.claim == claim and (part == _BOTH or part in group.runners)
        )
        reason: str | None = None
        verdict: Verdict | None
        if fingerprints:
            verdict = Verdict.REFUTED
        elif self._num_failed[part]:
            verdict, reason = Verdict.ERROR, f"{self._num_failed[part]} runs failed"
        elif not runs and (why := self._why_not_given(part)) is not None:
            verdict, reason = None, why
        elif not self._is_complete:
            verdict = Verdict.UNKNOWN
            reason = "the search ended with an endless run" if self._is_endless else "interrupted"
        elif not runs:
            verdict, reason = Verdict.ERROR, "nothing was run"
        elif claim in PROGRESS_CLAIMS and self._given_up[part]:
            verdict = Verdict.UNKNOWN
            reason = f"{self._given_up[part]} of {runs} runs did not end in time"
        elif not premises:
            verdict, reason = Verdict.VACUOUS, "the premise never happened"
        else:
            verdict = Verdict.HELD
        return Outcome(claim, part, verdict, runs, premises, fingerprints, reason)
