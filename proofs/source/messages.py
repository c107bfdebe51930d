"""What a process that runs a release's source is asked, and what it may answer, as lines of JSON.

It is the process that explores the code and asks the solvers, since each comparison of the code
does. So what it says of a proof is believed where it fits the question
(:func:`proofs.source.jobs.misfit`); a violation is believed where its case is observed once more,
and judged by whoever asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter
from pydantic_core import PydanticSerializationError, to_json

from impl.vllm.remote.messages import BookSeen, FreeSeen, GatherSeen, RangeSeen
from impl.vllm.remote.pipes import read_numbered
from proofs.source.answers import Settled
from proofs.source.code.reads import Read
from proofs.source.jobs import Place, Scope
from spec.errors import message_of
from spec.functions.cases import AnyCase
from spec.functions.observations import SchedulingObservation
from spec.record.steps import Step
from spec.rules.releases import ReadRules

_STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True)
class Open:
    """Read a release; the first question, and asked once. Answer: ``Done``.

    Attributes:
        package: its folder.
        name: for reports.
        scope: what is asked of it.
        num_bytes: memory of its own that the process may have.
    """

    package: str
    name: str
    scope: Scope
    num_bytes: int
    kind: Literal["open"] = "open"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Settle:
    """Settle a question, within some seconds of computing. Answer: ``Came``."""

    place: Place
    seconds: int
    kind: Literal["settle"] = "settle"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Watch:
    """From here on note what is read of the release. Answer: ``Done``."""

    kind: Literal["watch"] = "watch"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Observe:
    """Run a case on plain integers. Answer: what was seen, or ``NotKnown``."""

    case: Annotated[AnyCase, Field(discriminator="kind")]
    part: str
    seconds: int
    kind: Literal["observe"] = "observe"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class WhatWasRead:
    """What was read since ``Watch``? Answer: ``WasRead``."""

    kind: Literal["what was read"] = "what was read"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class WhichRules:
    """By what rules does the release schedule, as far as they can be proved? Answer: ``Rules``."""

    seconds: int
    kind: Literal["which rules"] = "which rules"

    __pydantic_config__ = _STRICT


Question: TypeAlias = Open | Settle | Watch | Observe | WhatWasRead | WhichRules


@dataclass(frozen=True)
class Asked:
    """A question; its number is that of the answer."""

    number: int
    question: Annotated[Question, Field(discriminator="kind")]

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Done:
    """It was done."""

    kind: Literal["done"] = "done"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Came:
    """What became of a question."""

    settled: Settled
    kind: Literal["came"] = "came"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class SchedulingSeen:
    """What the scheduling of encoder inputs was seen to do."""

    seen: SchedulingObservation
    kind: Literal["scheduling"] = "scheduling"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class RunSeen:
    """What a whole run was seen to do.

    Attributes:
        steps: up to its end, to as many passes as are asked for, or to what is not modelled.
        not_modelled: what it met behind them; ``None`` for nothing.
    """

    steps: tuple[Annotated[Step, Field(discriminator="kind")], ...]
    not_modelled: str | None
    kind: Literal["run"] = "run"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class NotKnown:
    """The code does something that is not modelled."""

    message: str
    kind: Literal["not known"] = "not known"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class WasRead:
    """What was read of the release."""

    reads: tuple[Read, ...]
    kind: Literal["was read"] = "was read"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Rules:
    """The rules that were proved of it."""

    rules: ReadRules
    kind: Literal["rules"] = "rules"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class OutOfMemory:
    """It would take more memory than it may."""

    kind: Literal["out of memory"] = "out of memory"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Refused:
    """The release cannot be asked: an :class:`spec.errors.InputError`."""

    message: str
    kind: Literal["refused"] = "refused"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Failed:
    """Something was raised that nobody expected: its class, and what it says."""

    message: str
    kind: Literal["failed"] = "failed"

    __pydantic_config__ = _STRICT


Seen: TypeAlias = GatherSeen | FreeSeen | BookSeen | RangeSeen | SchedulingSeen | RunSeen
Answer: TypeAlias = Done | Came | Seen | NotKnown | WasRead | Rules | OutOfMemory | Refused | Failed


@dataclass(frozen=True)
class Answered:
    """An answer, with the number of the question that it is for."""

    number: int
    answer: Annotated[Answer, Field(discriminator="kind")]

    __pydantic_config__ = _STRICT


@cache
def _asked() -> TypeAdapter[Asked]:
    return TypeAdapter(Asked)


@cache
def _answered() -> TypeAdapter[Answered]:
    return TypeAdapter(Answered)


def question_line(asked: Asked) -> bytes:
    """A question as a line."""
    return to_json(asked) + b"\n"


def read_question(line: bytes) -> Asked:
    """The question in a line that :func:`question_line` wrote."""
    return _asked().validate_json(line)


def answer_line(number: int, answer: Answer) -> bytes:
    """An answer as a line; a failure where it cannot be written."""
    try:
        return to_json(Answered(number, answer)) + b"\n"
    except (PydanticSerializationError, UnicodeError) as error:
        what = f"what came of it cannot be written: {message_of(error)}"
        return to_json(Answered(number, Failed(what))) + b"\n"


def read_answer(line: bytes, number: int) -> Answer:
    """The answer in a line.

    Raises:
        NoAnswerError: it is none, or an answer to another question.
    """
    return read_numbered(line, _answered(), number).answer
