"""What everything under test implements: its functions one at a time, and its whole loop.

Cases or a scenario go in, and what was seen comes out: raw observations or steps, errors included.
Nothing here judges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol, TypeAlias

from impl.tensors import TensorSettings
from spec.errors import class_of, message_of
from spec.functions.cases import BookCase, FreeCase, GatherCase, RowRangeCase, WindowCase
from spec.functions.observations import (
    BookObservation,
    FreeObservation,
    GatherObservation,
    RangeObservation,
)
from spec.record.scenario import Scenario
from spec.record.steps import ErrorSeen, Step

Runner: TypeAlias = Literal["V1", "V2"]
"""Which worker gathers: ``GPUModelRunner`` (V1) or ``EncoderRunner`` (V2)."""

RUNNERS: tuple[Runner, ...] = ("V1", "V2")

Part: TypeAlias = Literal["V1", "V2", "free", "book", "encoder_decoder_book", "window", "row_range"]
"""A part of a target that claims are checked on."""


class AdapterError(Exception):
    """What stands between us and the code under test does not fit it, so that nothing was seen.

    It is no observation: a check that meets it ends with ``ERROR`` and its message.
    """


def error_seen(error: Exception) -> ErrorSeen:
    """An exception of the code under test as an observation.

    Raises:
        AdapterError: the exception is one, and so none of the code under test.
    """
    if isinstance(error, AdapterError):
        raise error
    return ErrorSeen(class_of(error), message_of(error))


class FunctionTarget(Protocol):
    """A target whose functions are called one at a time.

    Every method returns what was seen, an error included; none raises for what the code under test
    does. A method raises :class:`spec.errors.InputError` for a case it cannot be given.
    """

    @property
    def name(self) -> str:
        """Name for reports, such as ``reference`` or ``vllm 0.24.0``."""
        ...

    def missing(self, part: Part) -> str | None:
        """Why the target has no such part, or ``None`` when it has."""
        ...

    def gather(
        self, case: GatherCase, runner: Runner, tensors: TensorSettings
    ) -> GatherObservation:
        """Gather for the case's batch with one of the runners.

        The rows are identified only after every entry was evicted and its room was filled with
        other values, so that a view that does not outlive its entry shows as a wrong row.
        """
        ...

    def free(self, case: FreeCase) -> FreeObservation:
        """Take every feature, then run *free* at each moment of the case."""
        ...

    def book(self, case: BookCase) -> BookObservation:
        """Carry out the case's operations on a fresh book."""
        ...

    def window(self, case: WindowCase) -> RangeObservation:
        """Search the features that meet the window."""
        ...

    def row_range(self, case: RowRangeCase) -> RangeObservation:
        """Count the rows of a range of positions."""
        ...


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
            runner: the worker's order and gathers.
            tensors: device, dtype and hidden size; ``None`` runs without tensors, on rows alone.
        """
        ...
