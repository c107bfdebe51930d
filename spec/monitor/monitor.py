"""Check every claim of the loop on a trace, whoever recorded it, step by step.

The monitor recomputes everything from raw observations: ranges, row identities, calls of the book.
It reads no verdict, no miss flag and no slots that the target added up. ``runners-agree`` needs two
traces and has a function of its own, :func:`compare_runners`; ``window-exact``
and ``row-range-exact`` are about functions (:mod:`spec.monitor.functions.observed`).
"""

from __future__ import annotations

from collections import Counter

from spec.history.history import History
from spec.history.log import FindingLog
from spec.monitor.counts.counts import CountsMonitor
from spec.monitor.progress.chunks import ChunksMonitor
from spec.monitor.progress.progress import ProgressMonitor
from spec.monitor.residency.book import BookMonitor
from spec.monitor.residency.lifetime import LifetimeMonitor
from spec.monitor.residency.reads import ResidencyMonitor
from spec.monitor.residency.runners import compare_runners
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario
from spec.record.steps import Ending, Step, Trace

__all__ = ["LoopMonitor", "check_trace", "compare_runners"]


class LoopMonitor:
    """Judge a run while it happens.

    A contradiction that stays is found once, when it begins. The scheduler's shift is taken to
    reach as far as the gather's look-ahead: where a scenario sets it lower, the findings show what
    that assumption is for.

    Args:
        scenario: what was chosen from outside.
        runner: the worker's order and gathers: ``V1`` or ``V2``.

    """

    def __init__(self, scenario: Scenario, runner: str) -> None:
        self._log = FindingLog()
        self._history = History(scenario)
        self._residency = ResidencyMonitor(self._history, self._log, runner)
        self._book = BookMonitor(self._history, self._log)
        self._lifetime = LifetimeMonitor(self._history, self._log)
        self._counts = CountsMonitor(scenario, self._history, self._log)
        self._chunks = ChunksMonitor(scenario.config, self._history, self._log)
        self._progress = ProgressMonitor(scenario)

    @property
    def premises(self) -> Counter[str]:
        """For each claim id, how often its premise happened.

        A claim that is missing was never put to the test. ``item-whole.exempt`` counts ranges that
        start inside an item.
        """
        return self._log.premises + self._progress.premises

    @property
    def settled(self) -> bool:
        """Whether the run was seen to stand still or turn in a circle: nothing new will come."""
        return self._progress.settled

    def observe(self, step: Step) -> tuple[LoopFinding, ...]:
        """Judge the next step of the run.

        Args:
            step: what was seen; steps come in the order in which they happened.

        Returns:
            What it contradicts that no earlier step has shown.
        """
        self._log.begin(step.before if step.kind == "event" else step.index)
        self._history.observe(step)
        self._log.premises["no-error"] += 1
        if step.error is not None or (step.kind == "pass" and step.rejected):
            self._check_error(step)
        if step.error is None:
            # A step that broke off leaves everything half done: it counts as its error alone.
            if step.kind == "pass":
                self._residency.observe(step)
            self._book.observe(step)
            self._lifetime.observe(step)
            self._counts.observe(step)
            self._chunks.observe(step)
        return self._log.take() + self._progress.observe(step)

    def finish(self, ending: Ending) -> tuple[LoopFinding, ...]:
        """Judge the end of the run."""
        self._book.finish(ending)
        return self._log.take() + self._progress.finish(ending)

    def _check_error(self, step: Step) -> None:
        if step.error is not None:
            what = {"pass": "schedule", "update": "update", "event": "an event"}[step.kind]
            self._log.add(
                "no-error",
                f"{what} raises {step.error.type}",
                observed=f"{what}: {step.error.type}: {step.error.message}",
                expected="no error in a legal configuration",
            )
        if step.kind == "pass" and step.rejected and self._history.content_is_hashed:
            self._log.add(
                "no-error",
                "request refused although every hash stands for one content",
                observed=f"requests {list(step.rejected)} were refused for good",
                expected="a refusal only where a hash comes with another number of rows",
                request=step.rejected[0],
            )


def check_trace(trace: Trace) -> tuple[LoopFinding, ...]:
    """All findings of a trace, in the order of its steps."""
    monitor = LoopMonitor(trace.scenario, trace.runner)
    found: list[LoopFinding] = []
    for step in trace.steps:
        found += monitor.observe(step)
    return (*found, *monitor.finish(trace.ending))
