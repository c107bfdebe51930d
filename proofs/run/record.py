"""Drive a target's loop and keep what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from impl.target import LoopTarget, Runner
from impl.tensors import TensorSettings
from impl.time_limit import SECONDS_OF_A_RUN, time_limit
from spec.errors import InputError, NoVerdictError
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario
from spec.record.steps import Ending, Step, Trace

MAX_PASSES = 5000
"""Passes after which a run is given up, where nobody says otherwise."""

_STEPS_AT_ONCE = 128
"""Steps that a target makes before they are judged. Target and monitor are large programs: taking
turns at each step, they push each other out of the processor's caches, and judging takes half as
long again."""


class Monitor(Protocol):
    """What judges a run while it goes on."""

    @property
    def settled(self) -> bool:
        """Whether nothing that follows can change what was found."""
        ...

    def observe(self, step: Step) -> Iterable[LoopFinding]:
        """Judge one more step."""
        ...

    def finish(self, ending: Ending) -> Iterable[LoopFinding]:
        """Judge the end."""
        ...


@dataclass(frozen=True)
class Recording:
    """A run, and what a monitor found on it; nothing without a monitor."""

    trace: Trace
    findings: tuple[LoopFinding, ...]


def record(
    target: LoopTarget,
    scenario: Scenario,
    runner: Runner,
    *,
    tensors: TensorSettings | None = None,
    max_passes: int = MAX_PASSES,
    monitor: Monitor | None = None,
) -> Recording:
    """Run a scenario on a target until it comes to rest, the monitor settles or the limit is hit.

    Args:
        scenario: a valid scenario that the target can run.
        runner: the worker's order and gathers.
        tensors: device, dtype and hidden size; ``None`` runs without tensors.
        max_passes: passes after which to stop.
        monitor: judges every step as it comes, and the end.

    Raises:
        InputError: fewer than one pass is allowed.
        TimeLimitError: the target computes for far longer than any run takes.
    """
    if max_passes < 1:
        raise InputError(f"{max_passes} passes show nothing; allow at least 1")
    with time_limit(f"{target.name} {runner}", SECONDS_OF_A_RUN):
        return _recorded(target, scenario, runner, tensors, max_passes, monitor)


def _recorded(
    target: LoopTarget,
    scenario: Scenario,
    runner: Runner,
    tensors: TensorSettings | None,
    max_passes: int,
    monitor: Monitor | None,
) -> Recording:
    steps: list[Step] = []
    findings: list[LoopFinding] = []
    running = _Running(target.run(scenario, runner, tensors), max_passes)
    while running.ending is None:
        seen = running.next_steps(_STEPS_AT_ONCE)
        steps += seen
        if monitor is None:
            continue
        for place, step in enumerate(seen, start=len(steps) - len(seen)):
            findings += monitor.observe(step)
            if monitor.settled and step.error is None:
                # What the target did since then is as if it had not been asked.
                del steps[place + 1 :]
                running.stop()
                break
    ending = running.ending
    if running.failure is not None:
        raise running.failure
    if monitor is not None:
        findings += monitor.finish(ending)
    return Recording(Trace(scenario, target.name, runner, tuple(steps), ending), tuple(findings))


class _Running:
    """A run, a few steps at a time.

    Attributes:
        ending: why no more steps come; ``None`` while they do.
        failure: what the target raised outside of a step.
    """

    def __init__(self, steps: Iterator[Step], max_passes: int) -> None:
        self._steps = steps
        self._passes_left = max_passes
        self.ending: Ending | None = None
        self.failure: Exception | None = None

    def next_steps(self, most: int) -> list[Step]:
        """The next steps; fewer than asked for where the run ends."""
        found: list[Step] = []
        try:
            for step in islice(self._steps, most):
                if step.kind == "pass":
                    if not self._passes_left:
                        self.ending = "limit"
                        return found
                    self._passes_left -= 1
                found.append(step)
                if step.error is not None:
                    self.ending = "error"
                    return found
        except NoVerdictError:
            raise
        except Exception as error:
            self.ending, self.failure = "error", error
            return found
        if len(found) < most:
            self.ending = "idle"
        return found

    def stop(self) -> None:
        """Take no more steps, whatever became of those after the last one that counts."""
        self.ending, self.failure = "stopped", None
