"""A vLLM in another process, as the targets that everything else knows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TypeVar

from impl.target import Part, Runner
from impl.tensors import TensorSettings
from impl.vllm.launch.source import Source
from impl.vllm.launch.worker_order import WorkerOrder, worker_order
from impl.vllm.remote.messages import (
    BookSeen,
    Call,
    FreeSeen,
    GatherSeen,
    GoOn,
    MissingPart,
    MissingRun,
    Question,
    RangeSeen,
    Reason,
    Run,
    Steps,
    Tensors,
)
from impl.vllm.remote.pipes import NoAnswerError
from impl.vllm.remote.process import RemoteProcess
from spec.errors import InputError
from spec.functions.cases import BookCase, Case, FreeCase, GatherCase, RowRangeCase, WindowCase
from spec.functions.observations import (
    BookObservation,
    FreeObservation,
    GatherObservation,
    RangeObservation,
)
from spec.record.consistency import StepChecker
from spec.record.scenario import Scenario
from spec.record.steps import Step

AnswerT = TypeVar("AnswerT")


class _Remote:
    """What both targets share: the process, and an answer of the kind that was asked for."""

    def __init__(self, process: RemoteProcess) -> None:
        self._process = process

    @property
    def name(self) -> str:
        """``vllm`` and the release, or the directory."""
        return self._process.source.name

    @property
    def source(self) -> Source:
        """Where the code under test lies."""
        return self._process.source

    def _ask(self, question: Question, kind: type[AnswerT]) -> AnswerT:
        answer = self._process.ask(question)
        if not isinstance(answer, kind):
            raise NoAnswerError(
                f"the process that runs {self.name} answered {answer.kind!r} to {question.kind!r}"
            )
        return answer


class RemoteFunctions(_Remote):
    """The functions of a vLLM as a :class:`impl.target.FunctionTarget`.

    Every method raises as :meth:`impl.vllm.remote.process.RemoteProcess.ask`.
    """

    def missing(self, part: Part) -> str | None:
        """See :class:`impl.target.FunctionTarget`."""
        return self._ask(MissingPart(part), Reason).reason

    def gather(
        self, case: GatherCase, runner: Runner, tensors: TensorSettings
    ) -> GatherObservation:
        """See :class:`impl.target.FunctionTarget`."""
        return self._ask(Call(case, runner, Tensors.of(tensors)), GatherSeen).seen

    def free(self, case: FreeCase) -> FreeObservation:
        """See :class:`impl.target.FunctionTarget`."""
        return self._ask(Call(case), FreeSeen).seen

    def book(self, case: BookCase) -> BookObservation:
        """See :class:`impl.target.FunctionTarget`."""
        return self._ask(Call(case), BookSeen).seen

    def window(self, case: WindowCase) -> RangeObservation:
        """See :class:`impl.target.FunctionTarget`."""
        return self._range(case)

    def row_range(self, case: RowRangeCase) -> RangeObservation:
        """See :class:`impl.target.FunctionTarget`."""
        return self._range(case)

    def _range(self, case: Case) -> RangeObservation:
        return self._ask(Call(case), RangeSeen).seen


class RemoteLoop(_Remote):
    """The loop of a vLLM as a :class:`impl.target.LoopTarget`.

    Every method raises as :meth:`impl.vllm.remote.process.RemoteProcess.ask`.
    """

    def __init__(self, process: RemoteProcess) -> None:
        super().__init__(process)
        self.functions = RemoteFunctions(process)
        self._num_runs = 0

    def worker_order(self, runner: Runner) -> WorkerOrder | str:
        """What the runner does in a step, or why its source is not recognised."""
        return worker_order(self.source, runner)

    def missing(self, scenario: Scenario, runner: Runner) -> str | None:
        """See :class:`impl.target.LoopTarget`."""
        return self._ask(MissingRun(scenario, runner), Reason).reason

    def run(
        self, scenario: Scenario, runner: Runner, tensors: TensorSettings | None = None
    ) -> Iterator[Step]:
        """See :class:`impl.target.LoopTarget`. Only the run that was begun last can go on.

        Raises:
            NoAnswerError: also for steps that no run can have.
        """
        self._num_runs += 1
        number = self._num_runs
        checker = StepChecker(scenario)
        places = count()
        answer = self._ask(Run(scenario, runner, Tensors.of(tensors)), Steps)
        while True:
            for step, place in zip(answer.steps, places):  # noqa: B905 - places have no end
                try:
                    checker.check(step, f"step {place}")
                except InputError as error:
                    raise NoAnswerError(f"{self.name} cannot have done that: {error}") from None
                yield step
            if answer.is_last:
                return
            if not answer.steps:
                raise NoAnswerError(f"the process that runs {self.name} does not go on")
            if number != self._num_runs:
                raise RuntimeError("another run was begun since")
            answer = self._ask(GoOn(), Steps)
