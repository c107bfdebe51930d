"""The process that holds a vLLM: it reads questions and writes answers, and judges nothing.

What the vLLM prints goes where standard output and errors go, which is never where answers do.
"""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Callable, Iterator
from typing import Literal, NoReturn

import torch
from pydantic_core import to_json

from impl.process_tree import end_with, end_with_linux, has_threads
from impl.target import AdapterError, FunctionTarget
from impl.time_limit import SECONDS_OF_A_RUN, TimeLimitError, time_limit
from impl.vllm.functions.target import VllmTarget
from impl.vllm.remote.messages import (
    MOST_BYTES_OF_STEPS,
    MOST_STEPS,
    Answer,
    Asked,
    Begin,
    BookSeen,
    Call,
    Failed,
    FreeSeen,
    GatherSeen,
    GoOn,
    Load,
    MissingPart,
    MissingRun,
    Question,
    RangeSeen,
    Reason,
    Refused,
    Run,
    Seen,
    Steps,
    answer_line,
    read_question,
)
from impl.vllm.remote.pipes import write_all
from impl.vllm.runs.target import VllmLoop, require_scheduler
from spec.errors import InputError, class_of, message_of
from spec.functions.cases import BookCase, FreeCase, GatherCase, RowRangeCase, WindowCase
from spec.record.steps import Step

_USED = 71
"""Exit code of a process that can make no forks, once it is to begin anew."""


class _Child:
    """What was loaded, and the run that was begun last."""

    def __init__(self) -> None:
        self._loop: VllmLoop | None = None
        self._functions: VllmTarget | None = None
        self._run: Iterator[Step] = iter(())
        self._running = ""
        self._failure: Exception | None = None

    def answer(self, question: Question) -> Answer:
        """What becomes of a question."""
        try:
            return self._answer(question)
        except InputError as error:
            return Refused(message_of(error))
        except TimeLimitError as error:
            return Failed(class_of(error), message_of(error), "endless")
        except Exception as error:
            is_unfit = isinstance(error, AdapterError)
            why: Literal["unfit", "raised"] = "unfit" if is_unfit else "raised"
            return Failed(class_of(error), message_of(error), why)

    def _answer(self, question: Question) -> Answer:
        match question:
            case Load():
                self._load(question)
                return Reason(None)
            case Begin():
                return Reason(None)
            case MissingRun():
                return Reason(self._of_runs.missing(question.scenario, question.runner))
            case Run():
                tensors = None if question.tensors is None else question.tensors.settings
                self._run = self._of_runs.run(question.scenario, question.runner, tensors)
                self._failure = None
                self._running = f"{self._of_runs.name} {question.runner}"
                return self._go_on()
            case GoOn():
                return self._go_on()
            case MissingPart():
                return Reason(self._of_functions.missing(question.part))
            case Call():
                part = question.runner or question.case.kind
                with time_limit(f"{self._of_functions.name} {part}", SECONDS_OF_A_RUN):
                    return _seen(self._of_functions, question)

    def _load(self, wanted: Load) -> None:
        source = wanted.source
        self._functions = VllmTarget(source)
        self._loop = VllmLoop(source, scheduler_class=wanted.scheduler_class)
        if wanted.scheduler_class is not None:
            require_scheduler(source, wanted.scheduler_class)

    @property
    def _of_runs(self) -> VllmLoop:
        assert self._loop is not None
        return self._loop

    @property
    def _of_functions(self) -> VllmTarget:
        assert self._functions is not None
        return self._functions

    def _go_on(self) -> Steps:
        with time_limit(self._running, SECONDS_OF_A_RUN):
            return self._next_steps()

    def _next_steps(self) -> Steps:
        """Steps up to the end of the run, or to as many as one answer takes.

        What breaks the run down is told after the steps before it, which may settle everything.
        """
        if self._failure is not None:
            raise self._failure
        steps: list[Step] = []
        num_bytes = 0
        while len(steps) < MOST_STEPS and num_bytes < MOST_BYTES_OF_STEPS:
            try:
                step = next(self._run, None)
            except Exception as error:
                if not steps:
                    raise
                self._failure = error
                break
            if step is None:
                return Steps(tuple(steps), is_last=True)
            steps.append(step)
            num_bytes += len(to_json(step))
            if step.error is not None:
                return Steps(tuple(steps), is_last=True)
        return Steps(tuple(steps), is_last=False)


def _seen(target: FunctionTarget, call: Call) -> Seen:
    match call.case:
        case GatherCase() as case:
            assert call.runner is not None
            assert call.tensors is not None
            return GatherSeen(target.gather(case, call.runner, call.tensors.settings))
        case FreeCase() as case:
            return FreeSeen(target.free(case))
        case BookCase() as case:
            return BookSeen(target.book(case))
        case WindowCase() as case:
            return RangeSeen(target.window(case))
        case RowRangeCase() as case:
            return RangeSeen(target.row_range(case))


def main(questions: int, answers: int, alive: int, parent: int) -> None:
    """Answer until there are no more questions.

    Args:
        questions: descriptor of the pipe to read from.
        answers: descriptor of the pipe to write to.
        alive: descriptor of a pipe whose other end the parent holds as long as it lives.
        parent: number of the parent's process.
    """
    end_with_linux(parent)
    for descriptor in (questions, answers, alive):
        os.set_inheritable(descriptor, False)
    torch.set_num_threads(1)  # A fork has only the thread that forks.
    # The collector would look at all that is imported, again and again.
    gc.disable()
    host = _Host(questions, answers, alive)
    with os.fdopen(questions, "rb") as lines:
        for line in lines:
            host.take(line)


class _Host:
    """Answers questions itself, up to the first that wants a fork for what follows."""

    def __init__(self, questions: int, answers: int, alive: int) -> None:
        self._questions = questions
        self._answers = answers
        self._alive = alive
        self._child = _Child()
        self._has_begun = False

    def take(self, line: bytes) -> None:
        """Answer a question, or have it and all that follow answered by forks."""
        asked = read_question(line)
        if isinstance(asked.question, Begin):
            if not has_threads() and not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
                _forks(line, self._fork)
            if self._has_begun:
                os._exit(_USED)
            self._has_begun = True
        self._answer(asked)

    def _answer(self, asked: Asked) -> None:
        write_all(self._answers, answer_line(asked.number, self._child.answer(asked.question)))
        if isinstance(asked.question, Load):
            gc.freeze()
            gc.enable()

    def _fork(self, line: bytes, next_line: int) -> NoReturn:
        """Answer as a fork, until another fork is wanted: its line is written for it."""
        end_with(os.getppid(), self._alive)
        try:
            self._answer(read_question(line))
            # Not what the host reads from: what that one has read is no longer in the pipe.
            with os.fdopen(os.dup(self._questions), "rb") as lines:
                for following in lines:
                    asked = read_question(following)
                    if isinstance(asked.question, Begin):
                        write_all(next_line, following)
                        break
                    self._answer(asked)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)


def _forks(line: bytes, serve: Callable[[bytes, int], NoReturn]) -> NoReturn:
    """Fork again and again, each time for a line that the fork before has read; then end.

    Args:
        line: that of the first fork.
        serve: what a fork does with its line; it writes the next one to a descriptor.
    """
    gc.freeze()  # The collector would write to the pages that forks share.
    while line:
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            serve(line, write_end)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as lines:
            line = lines.read()
        _, status = os.waitpid(child, 0)
    os._exit(max(0, os.waitstatus_to_exitcode(status)))
