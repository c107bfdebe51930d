"""Drive a target's loop and keep what was seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from impl.loop_target import LoopTarget
from impl.target import Runner
from impl.tensors import TensorSettings
from spec.errors import InputError
from spec.loop.findings import LoopFinding
from spec.loop.scenario import Scenario
from spec.loop.steps import Ending, Step, Trace

MAX_PASSES = 5000
"""Passes after which a run is given up, where nobody says otherwise."""


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
        target: what to drive.
        scenario: a valid scenario that the target can run.
        runner: the worker's order and gathers.
        tensors: device, dtype and hidden size; ``None`` runs without tensors.
        max_passes: passes after which to stop.
        monitor: judges every step as it comes, and the end.

    Raises:
        InputError: fewer than one pass is allowed.
    """
    if max_passes < 1:
        raise InputError(f"{max_passes} passes show nothing; allow at least 1")
    steps: list[Step] = []
    findings: list[LoopFinding] = []
    ending: Ending = "idle"
    num_passes = 0
    for step in target.run(scenario, runner, tensors):
        if step.kind == "pass":
            if num_passes == max_passes:
                ending = "limit"
                break
            num_passes += 1
        steps.append(step)
        if monitor is not None:
            findings += monitor.observe(step)
        if step.error is not None:
            ending = "error"
            break
        if monitor is not None and monitor.settled:
            ending = "stopped"
            break
    if monitor is not None:
        findings += monitor.finish(ending)
    return Recording(Trace(scenario, target.name, runner, tuple(steps), ending), tuple(findings))
