"""Findings that are one: the same claim and the same mechanism, whatever the run."""

from __future__ import annotations

from dataclasses import dataclass, field

from impl.target import RUNNERS, Runner
from proofs.describe.shape import tags
from proofs.run.judge import Judged
from proofs.search.runs.frame import SMALL
from proofs.search.runs.results import LoopCounterexample
from proofs.search.runs.size import size
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario
from spec.record.steps import Trace

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
        """Take another run with such a finding; all of one runner, which can then show them."""
        if trace.runner != self.trace.runner:
            return
        scenario = trace.scenario
        if size(scenario) < size(self.trace.scenario):
            self.finding, self.trace = finding, trace
        kind = tags(scenario)
        known = self.starts.get(kind)
        if known is None or size(scenario) < size(known):
            self.starts[kind] = scenario
            if len(self.starts) > _MAX_STARTS:
                del self.starts[max(self.starts, key=lambda kind: size(self.starts[kind]))]

    def best_starts(self) -> list[Scenario]:
        """What to reduce: the smallest, and further ones where that does not take long."""
        first, *others = sorted(self.starts.values(), key=size)
        return [first, *(s for s in others if len(s.requests) <= SMALL.many_requests[1])]

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
