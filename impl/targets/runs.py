"""The reference implementation as a target of the loop."""

from __future__ import annotations

from collections.abc import Iterator

from impl.reference.engine import Engine
from impl.target import Runner
from impl.targets.reference import Reference
from impl.tensors import TensorSettings
from spec.record.scenario import Scenario
from spec.record.steps import Step


class ReferenceLoop(Reference):
    """The reference implementation as a :class:`impl.target.LoopTarget`."""

    def missing(self, scenario: Scenario, runner: Runner) -> str | None:
        """Nothing is missing."""
        return None

    def run(
        self, scenario: Scenario, runner: Runner, tensors: TensorSettings | None = None
    ) -> Iterator[Step]:
        """Run a scenario step by step.

        Raises:
            InputError: the scenario is not valid, or the device does not exist.
        """
        scenario.validate()
        if tensors is not None:
            tensors.require_device()
        yield from Engine(scenario, self.parts, runner, tensors, record=True).steps()
