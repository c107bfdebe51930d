"""What everything under test implements at loop level: a scenario in, steps out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from impl.target import Runner
from impl.tensors import TensorSettings
from spec.record.scenario import Scenario
from spec.record.steps import Step


class LoopTarget(Protocol):
    """A target whose whole loop is driven: scheduler, book and worker."""

    @property
    def name(self) -> str:
        """Name for reports, such as ``reference`` or ``vllm 0.24.0``."""
        ...

    def missing(self, scenario: Scenario, runner: Runner) -> str | None:
        """Why the target cannot run the scenario, or ``None`` when it can."""
        ...

    def run(
        self, scenario: Scenario, runner: Runner, tensors: TensorSettings | None = None
    ) -> Iterator[Step]:
        """Run the scenario step by step, without end where it never comes to rest.

        The steps end when every request has ended and nothing is in flight or expected, or after
        the first step in which the scheduler raised. An error of a gather is recorded, and the run
        goes on as if the rows had been there.

        Args:
            scenario: a valid scenario.
            runner: the worker's order and gathers.
            tensors: device, dtype and hidden size; ``None`` runs without tensors, on rows alone.
        """
        ...
