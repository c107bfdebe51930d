"""What a process that holds a vLLM is asked, and what it may answer: one line of JSON each.

An answer is read to the letter (:func:`impl.vllm.remote.pipes.read_exactly`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import Field, TypeAdapter
from pydantic_core import PydanticSerializationError, to_json

from impl.target import Part, Runner
from impl.tensors import TensorSettings
from impl.vllm.launch.source import Source
from impl.vllm.remote.pipes import read_numbered
from spec.errors import message_of
from spec.functions.cases import Case
from spec.functions.observations import (
    BookObservation,
    FreeObservation,
    GatherObservation,
    RangeObservation,
)
from spec.record.scenario import Scenario
from spec.record.steps import Step

MOST_STEPS = 128
"""In one answer: the two processes take turns at each, see :mod:`proofs.run.record`."""

MOST_BYTES_OF_STEPS = 1 << 20
"""After which an answer takes no further step; a single step may be longer."""

_STRICT = {"extra": "forbid", "strict": True}

T = TypeVar("T")


@dataclass(frozen=True)
class Tensors:
    """:class:`impl.tensors.TensorSettings`, the dtype by its name."""

    device: str
    dtype: Literal["float64", "float32", "float16", "bfloat16"]
    hidden_size: int

    __pydantic_config__ = _STRICT

    @classmethod
    def of(cls, settings: TensorSettings | None) -> Tensors | None:
        """The settings to be sent; ``None`` for none."""
        if settings is None:
            return None
        name: Any = str(settings.dtype).removeprefix("torch.")
        return cls(settings.device, name, settings.hidden_size)

    @property
    def settings(self) -> TensorSettings:
        """The settings that were sent."""
        import torch  # Who asks a process for its messages alone waits for no tensors.

        return TensorSettings(self.device, getattr(torch, self.dtype), self.hidden_size)


@dataclass(frozen=True)
class Load:
    """Load a vLLM; the first question, and asked once. Answer: ``Reason`` with ``None``.

    Attributes:
        name: for reports.
        root: the directory to put on ``sys.path``.
        release: the release's number, or ``None`` for a directory.
        digest: of the source.
        scheduler_class: ``package.module:Class`` in place of vLLM's own.
    """

    name: str
    root: str
    package: str
    release: str | None
    digest: str | None
    scheduler_class: str | None
    kind: Literal["load"] = "load"

    __pydantic_config__ = _STRICT

    @classmethod
    def of(cls, source: Source, scheduler_class: str | None) -> Load:
        """What is to be sent of a vLLM."""
        root, package = str(source.root), str(source.package)
        return cls(source.name, root, package, source.release, source.digest, scheduler_class)

    @property
    def source(self) -> Source:
        """The vLLM that was sent."""
        return Source(self.name, Path(self.root), Path(self.package), self.release, self.digest)


@dataclass(frozen=True)
class Begin:
    """Answer what follows in a new fork, which finds what was loaded and nothing of earlier forks.

    Answer: ``Reason`` with ``None``; none where no fork can be made once more.
    """

    kind: Literal["begin"] = "begin"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class MissingRun:
    """Why can a scenario not be run? Answer: ``Reason``."""

    scenario: Scenario
    runner: Runner
    kind: Literal["missing run"] = "missing run"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Run:
    """Begin to run a scenario; a run that was begun before is given up. Answer: ``Steps``."""

    scenario: Scenario
    runner: Runner
    tensors: Tensors | None
    kind: Literal["run"] = "run"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class GoOn:
    """Go on with the run that was begun last. Answer: ``Steps``."""

    kind: Literal["go on"] = "go on"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class MissingPart:
    """Why can a part not be called? Answer: ``Reason``."""

    part: Part
    kind: Literal["missing part"] = "missing part"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Call:
    """Give a part a case. Answer: ``Seen`` with the observation of such a case.

    ``runner`` and ``tensors`` are for a gather.
    """

    case: Annotated[Case, Field(discriminator="kind")]
    runner: Runner | None = None
    tensors: Tensors | None = None
    kind: Literal["call"] = "call"

    __pydantic_config__ = _STRICT


Question: TypeAlias = Load | Begin | MissingRun | Run | GoOn | MissingPart | Call


@dataclass(frozen=True)
class Asked:
    """A question; its number is that of the answer."""

    number: int
    question: Annotated[Question, Field(discriminator="kind")]

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Reason:
    """Why something is missing; ``None`` where it is there."""

    reason: str | None
    kind: Literal["reason"] = "reason"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Steps:
    """The next steps of a run, and whether they were the last."""

    steps: tuple[Annotated[Step, Field(discriminator="kind")], ...]
    is_last: bool
    kind: Literal["steps"] = "steps"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class GatherSeen:
    """What a gather was seen to do."""

    seen: GatherObservation
    kind: Literal["gather"] = "gather"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class FreeSeen:
    """What *free* was seen to do."""

    seen: FreeObservation
    kind: Literal["free"] = "free"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class BookSeen:
    """What a book was seen to do."""

    seen: BookObservation
    kind: Literal["book"] = "book"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class RangeSeen:
    """What a search or a count of rows was seen to do."""

    seen: RangeObservation
    kind: Literal["range"] = "range"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Refused:
    """The question cannot be put to this vLLM: an :class:`spec.errors.InputError`."""

    message: str
    kind: Literal["refused"] = "refused"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Failed:
    """Something was raised that is no observation.

    Attributes:
        type: name of what was raised.
        message: its text.
        why: ``unfit``: an :class:`impl.target.AdapterError`; ``endless``: a
            :class:`impl.time_limit.TimeLimitError`; or what the vLLM itself raised.
    """

    type: str
    message: str
    why: Literal["unfit", "endless", "raised"]
    kind: Literal["failed"] = "failed"

    __pydantic_config__ = _STRICT


Seen: TypeAlias = GatherSeen | FreeSeen | BookSeen | RangeSeen
Answer: TypeAlias = Reason | Steps | Seen | Refused | Failed


@dataclass(frozen=True)
class Answered:
    """An answer, with the number of the question that it is for."""

    number: int
    answer: Annotated[Answer, Field(discriminator="kind")]

    __pydantic_config__ = _STRICT


@cache
def _adapter(kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)


def question_line(asked: Asked) -> bytes:
    """A question as a line."""
    return to_json(asked) + b"\n"


def read_question(line: bytes) -> Asked:
    """The question in a line that :func:`question_line` wrote."""
    asked: Asked = _adapter(Asked).validate_json(line)
    return asked


def answer_line(number: int, answer: Answer) -> bytes:
    """An answer as a line; a failure where what was seen cannot be written."""
    try:
        return to_json(Answered(number, answer)) + b"\n"
    except (PydanticSerializationError, UnicodeError) as error:
        what = f"what was seen cannot be written: {message_of(error)}"
        return to_json(Answered(number, Failed("AdapterError", what, "unfit"))) + b"\n"


def read_answer(line: bytes, number: int) -> Answer:
    """The answer in a line.

    Args:
        line: without its end.
        number: of the question.

    Raises:
        NoAnswerError: it is none, or an answer to another question.
    """
    answer: Answer = read_numbered(line, _adapter(Answered), number).answer
    return answer
