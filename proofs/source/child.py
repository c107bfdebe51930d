"""The process that runs a release's source: symbolically to prove, on plain integers to observe.

What the code prints goes where standard output and errors go, which is never where answers do.
"""

from __future__ import annotations

import os
import resource
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import z3

from impl.vllm.remote.messages import BookSeen, FreeSeen, GatherSeen, RangeSeen
from impl.vllm.remote.pipes import write_all
from proofs.jobs.workers import limit_memory
from proofs.source.answers import Job, ask
from proofs.source.code.reads import Reads
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_setup import RunCode
from proofs.source.jobs import jobs_by_part
from proofs.source.messages import (
    Answer,
    Came,
    Done,
    Failed,
    NotKnown,
    Observe,
    Open,
    OutOfMemory,
    Question,
    Refused,
    Rules,
    RunSeen,
    SchedulingSeen,
    Seen,
    Settle,
    WasRead,
    Watch,
    WhatWasRead,
    WhichRules,
    answer_line,
    read_question,
)
from proofs.source.observe import observed
from proofs.source.passes.release_rules import rules_of_source
from proofs.source.passes.runs import run_plain
from proofs.symbolic.integers import NotModelled
from spec.errors import InputError, described, message_of
from spec.functions.cases import AnyCase
from spec.functions.observations import (
    BookObservation,
    FreeObservation,
    GatherObservation,
    RangeObservation,
    SchedulingObservation,
)
from spec.record.scenario import Scenario
from spec.record.steps import Step


def serve(questions: int, answers: int) -> NoReturn:
    """Answer until there are no more questions, and end.

    Args:
        questions: descriptor of the pipe to read from.
        answers: descriptor of the pipe to write to.
    """
    try:
        child = _Child()
        with os.fdopen(questions, "rb") as lines:
            for line in lines:
                asked = read_question(line)
                answer = child.answer(asked.question)
                write_all(answers, answer_line(asked.number, answer))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


class _Child:
    """A release, and what was read of it since it is watched."""

    def __init__(self) -> None:
        self._release: ReleaseSource | None = None
        self._name = ""
        self._jobs: Mapping[str, list[Job]] = {}
        self._reads = Reads()

    def answer(self, question: Question) -> Answer:
        """What becomes of a question."""
        try:
            return self._answer(question)
        except InputError as error:
            return Refused(message_of(error))
        except NotModelled as error:
            return NotKnown(message_of(error))
        except MemoryError:
            return OutOfMemory()
        except Exception as error:
            if isinstance(error, z3.Z3Exception) and "out of memory" in message_of(error):
                return OutOfMemory()
            return Failed(described(error))

    def _answer(self, question: Question) -> Answer:
        match question:
            case Open():
                self._open(question)
                return Done()
            case Settle(place=place):
                _limit_time(question.seconds)
                return Came(ask(self._jobs[place.part][place.number], self._of_release))
            case Watch():
                self._reads = Reads()
                self._release = self._of_release.watched(self._reads)
                return Done()
            case Observe():
                _limit_time(question.seconds)
                return self._seen(question.case, question.part)
            case WhatWasRead():
                return WasRead(self._reads.listed)
            case WhichRules():
                _limit_time(question.seconds)
                return Rules(rules_of_source(self._of_release))

    def _open(self, wanted: Open) -> None:
        limit_memory(wanted.num_bytes)
        self._release = ReleaseSource(Path(wanted.package), OVERRIDES)
        self._name = wanted.name
        self._jobs = jobs_by_part(self._release, self._name, wanted.scope)

    @property
    def _of_release(self) -> ReleaseSource:
        assert self._release is not None
        return self._release

    def _seen(self, case: AnyCase, part: str) -> Seen:
        if isinstance(case, Scenario):
            return self._run(case)
        match observed(self._of_release, self._name, case, part):
            case GatherObservation() as seen:
                return GatherSeen(seen)
            case FreeObservation() as seen:
                return FreeSeen(seen)
            case BookObservation() as seen:
                return BookSeen(seen)
            case RangeObservation() as seen:
                return RangeSeen(seen)
            case SchedulingObservation() as seen:
                return SchedulingSeen(seen)

    def _run(self, case: Scenario) -> RunSeen:
        steps: list[Step] = []
        try:
            for step in run_plain(RunCode(self._of_release), case):
                steps.append(step)
        except NotModelled as error:
            return RunSeen(tuple(steps), message_of(error))
        return RunSeen(tuple(steps), None)


def _limit_time(seconds: int) -> None:
    """Have this process ended after so many more seconds of computing, in a solver too."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = int(used.ru_utime + used.ru_stime) + 1 + seconds
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
