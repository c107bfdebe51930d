"""The reference implementation as a target of the loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from impl.faults.switches import faulty_parts
from impl.reference.engine import Engine
from impl.target import Runner
from impl.tensors import TensorSettings
from spec.record.scenario import Scenario
from spec.record.steps import Step


class ReferenceLoop:
    """The reference implementation as a :class:`impl.target.LoopTarget`.

    Args:
        faults: names of switches of :mod:`impl.faults.switches`, all active together.

    Raises:
        InputError: an unknown fault; the message lists those that exist.
    """

    def __init__(self, faults: Iterable[str] = ()) -> None:
        self.faults = frozenset(faults)
        self.parts = faulty_parts(self.faults)

    @property
    def name(self) -> str:
        """``reference``, with the faults that are switched on."""
        return " ".join(["reference", *(f"+{name}" for name in sorted(self.faults))])

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
