"""A vLLM measured in a process of its own, which answers with numbers as a line of JSON."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter
from pydantic_core import to_json

from impl.process_tree import end_with_linux
from impl.target import Runner
from impl.vllm.launch.source import Source
from impl.vllm.remote.messages import Load, Tensors
from impl.vllm.remote.pipes import (
    ClosedError,
    Lines,
    NoAnswerError,
    how_it_ended,
    read_exactly,
    start_interpreter,
    write_all,
)
from proofs.drive.benchmark import PLAIN, Measurement, Target, benchmark_scenario, measure
from proofs.drive.memory import KINDS, Held, held_after
from proofs.run.targets import VllmName
from spec.errors import InputError, described, message_of

_STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True)
class Wanted:
    """What is to be measured of a target.

    Attributes:
        num_requests: of the fixed scenario.
        runners: whose loop.
        tensors: where the tensors of the variant with tensors live; ``None`` leaves it out.
        seconds: for all modes of a runner.
        counts: numbers of drawn scenarios after which to look at what the process holds, ascending.
    """

    num_requests: int
    runners: tuple[Runner, ...]
    tensors: Tensors | None
    seconds: float
    counts: tuple[int, ...]

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Measured:
    """What was measured."""

    loops: tuple[Measurement, ...]
    held: tuple[Held, ...]

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class _Asked:
    """What the process is asked: the vLLM, and what of it."""

    load: Load
    wanted: Wanted

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class _Answered:
    """What it answers: numbers, or why there are none.

    Attributes:
        why: ``refused`` for wrong input, ``failed`` for all else.
    """

    measured: Measured | None
    why: Literal["refused", "failed"] | None
    message: str

    __pydantic_config__ = _STRICT


def measure_vllm(vllm: VllmName, wanted: Wanted) -> Measured:
    """Measure a vLLM, none of whose code runs in this process.

    Raises:
        InputError: it cannot be loaded, or cannot run the scenario.
        NoAnswerError: the process ended, or did not answer as it should.
    """
    source = vllm.source
    asked = _Asked(Load.of(source, vllm.scheduler_class), wanted)
    theirs_in, questions = os.pipe()
    answers, theirs_out = os.pipe()
    with tempfile.TemporaryFile() as log:
        try:
            process = start_interpreter(__name__, (theirs_in, theirs_out), log)
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        try:
            lines = Lines(questions, answers)
            lines.send(to_json(asked) + b"\n")
            answered = read_exactly(lines.receive(), TypeAdapter(_Answered))
        except ClosedError:
            raise _no_answer(source, how_it_ended(process.wait(), log)) from None
        except NoAnswerError as error:
            raise _no_answer(source, str(error)) from None
        finally:
            process.kill()
            process.wait()
            os.close(questions)
            os.close(answers)
    if answered.why == "refused":
        raise InputError(answered.message)
    if answered.measured is None:
        raise _no_answer(source, answered.message)
    why = _misfit(answered.measured, wanted)
    if why is not None:
        raise _no_answer(source, why)
    return answered.measured


def _misfit(measured: Measured, wanted: Wanted) -> str | None:
    """Why these are no numbers of what was to be measured; ``None`` where they can be."""
    plain = [loop.runner for loop in measured.loops if loop.mode == PLAIN]
    if sorted(plain) != sorted(wanted.runners):
        return "it measured other runners"
    for loop in measured.loops:
        seconds = (*loop.cpu_seconds, *loop.wall_seconds)
        if not loop.cpu_seconds or not loop.wall_seconds or not all(0 < s < 1e9 for s in seconds):
            return "no run takes so long"
    if tuple(moment.num_scenarios for moment in measured.held) != wanted.counts:
        return "it ran other scenarios"
    if any(moment.objects.keys() != KINDS.keys() for moment in measured.held):
        return "it counted other objects"
    return None


def _no_answer(source: Source, why: str) -> NoAnswerError:
    return NoAnswerError(f"the process that measures {source.name}: {why}")


def main(questions: int, answers: int, parent: int) -> None:
    """Answer one question, and end.

    Args:
        questions: descriptor of the pipe to read from.
        answers: descriptor of the pipe to write to.
        parent: number of the parent's process.
    """
    end_with_linux(parent)
    with os.fdopen(questions, "rb") as lines:
        asked = TypeAdapter(_Asked).validate_json(lines.readline())
    try:
        answered = _Answered(_measured(asked), None, "")
    except InputError as error:
        answered = _Answered(None, "refused", message_of(error))
    except Exception as error:
        answered = _Answered(None, "failed", described(error))
    write_all(answers, to_json(answered) + b"\n")


def _measured(asked: _Asked) -> Measured:
    from impl.vllm.runs.target import VllmLoop

    load = asked.load
    return measured_of(VllmLoop(load.source, scheduler_class=load.scheduler_class), asked.wanted)


def measured_of(target: Target, wanted: Wanted) -> Measured:
    """Measure a target in this process, on one thread."""
    import torch

    torch.set_num_threads(1)
    scenario = benchmark_scenario(wanted.num_requests)
    tensors = None if wanted.tensors is None else wanted.tensors.settings
    loops = tuple(
        measurement
        for runner in wanted.runners
        for measurement in measure(target, scenario, runner, tensors, wanted.seconds)
    )
    return Measured(loops, tuple(held_after(target, wanted.counts)))
