"""Ask whether a fault in the protocol code of a release is found, and at which draw.

The release is loaded once; each fault is put into a fork of the process. The whole runs that are
drawn are those of ``residency check --level loop``, and what the release itself shows on them is
taken out, as ``--against`` does. A draw on which the release never comes to the changed lines
cannot differ, and is not run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from random import Random
from types import FrameType
from typing import Any, Literal, TypeAlias

from hypothesis import HealthCheck, Phase, Verbosity, find, settings
from hypothesis.errors import NoSuchExample

from impl.target import RUNNERS
from impl.tensors import TensorSettings
from impl.vllm.functions.target import VllmTarget
from impl.vllm.launch.load import load
from impl.vllm.runs.target import VllmLoop
from proofs.run.digest import digest
from proofs.run.judge import Judged, run_and_judge
from proofs.search.functions.parts import FAMILIES, findings_on
from proofs.search.runs.draws import Drawn, draw
from proofs.search.runs.results import LoopCheckSettings
from spec.errors import InputError
from spec.functions.cases import Case
from tests.support.protocol_faults import PLACES, Fault, patch

Outcome: TypeAlias = Literal["found", "error", "hangs", "hidden", "differs", "same", "not reached"]
"""What the whole runs say of a fault. ``found``: a violation that the release shows on no draw.
``error``: the run could not be made. ``hangs``: a pass does not end. ``hidden``: a violation that
the release shows too, but on other draws. ``differs``: the runs differ, and no claim says so.
``same``: no run differs. ``not reached``: no draw comes to the changed lines."""

SEED = 0
NUM_DRAWS = 60
"""Of the search's own draws, from the first."""
MAX_RUN = 10
"""Draws that are run of each fault at most, of those that come to the changed lines."""
NUM_CASES = 60
"""Cases drawn for each part of the function level."""

_SETTINGS = LoopCheckSettings(seed=SEED)
_SECONDS = 4.0
"""Of processor time for one draw; a healthy one takes less than a tenth of a second."""


class DoesNotEndError(BaseException):
    """A run takes so long that it does not end."""


@dataclass(frozen=True)
class Seen:
    """What one draw shows.

    Attributes:
        keys: claim and mechanism of each violation.
        digests: of the runs, by runner.
        failed: how the runs that could not be made ended.
    """

    keys: frozenset[tuple[str, str]]
    digests: tuple[str, ...]
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoopResult:
    """What the whole runs say of a fault.

    Attributes:
        outcome: see :data:`Outcome`.
        draw: number of the first draw that shows it.
        claim: the violated claim.
        mechanism: how it is violated.
        num_run: draws that were run.
    """

    outcome: Outcome
    draw: int | None = None
    claim: str | None = None
    mechanism: str | None = None
    num_run: int = 0


@dataclass(frozen=True)
class FunctionResult:
    """The first violation at function level that the release does not show.

    Attributes:
        part: what was called.
        case: number of the first case that shows it, from 1; 0 without a claim.
        claim: what is violated; ``None`` where the part cannot be judged any more: an error.
    """

    part: str
    case: int
    claim: str | None


@dataclass(frozen=True)
class Result:
    """What became of one fault; ``functions`` is ``None`` where nothing was found."""

    loop: LoopResult
    functions: FunctionResult | None


class Experiment:
    """A loaded release, what it shows itself, and which lines it comes to.

    Args:
        target: the release, unchanged; this process runs nothing else.
        numbers: draws to look at.
    """

    def __init__(self, target: VllmLoop, numbers: Sequence[int]) -> None:
        self._target = target
        self._loaded = load(target.source)
        self._drawn = {number: draw(_SETTINGS, number) for number in numbers}
        self._seen: dict[int, Seen] = {}
        self._lines: dict[int, frozenset[tuple[str, int]]] = {}
        # The first run of a target also tries what it is driven with.
        run_and_judge(target, self._drawn[numbers[0]].scenario, RUNNERS, None)
        for number, drawn in self._drawn.items():
            with _lines_of(str(target.source.package)) as lines:
                self._seen[number] = self._run(drawn)
            self._lines[number] = frozenset(lines)
        # A run may depend on what ran before it in the process: such runs tell nothing of a fault.
        again = _in_fork(self._digests)
        self.unsteady = tuple(
            number for number, seen in self._seen.items() if again[str(number)] != [*seen.digests]
        )
        self._keys = {key for seen in self._seen.values() for key in seen.keys}
        self._functions: dict[str, frozenset[tuple[str, str]]] = {}

    def learn_functions(self) -> None:
        """Note what the release shows at function level."""
        for part in sorted({part for place in PLACES for part in place.parts}):
            keys: set[tuple[str, str]] = set()
            self._search_part(part, lambda found, keys=keys: bool(keys.update(found)))  # type: ignore[misc]
            self._functions[part] = frozenset(keys)

    def ask(self, fault: Fault) -> Result:
        """Put the fault into a fork of this process, and look there."""
        return result_of(_in_fork(partial(self._ask, fault)))

    def ask_on(self, fault: Fault, number: int) -> LoopResult:
        """Put the fault into a fork of this process, and run one draw."""
        return LoopResult(**_in_fork(partial(self._ask_on, fault, number)))

    def _ask_on(self, fault: Fault, number: int) -> dict[str, Any]:
        self._patch(fault)
        return asdict(self._look([number], self._seen[number].keys))

    def _digests(self) -> dict[str, Any]:
        return {str(number): [*self._run(drawn).digests] for number, drawn in self._drawn.items()}

    def _ask(self, fault: Fault) -> dict[str, Any]:
        self._patch(fault)
        functions = self._at_functions(fault)
        loop = self._in_loop(fault)
        return {
            "loop": asdict(loop),
            "functions": None if functions is None else asdict(functions),
        }

    def _in_loop(self, fault: Fault) -> LoopResult:
        wanted = range(fault.lines[0], fault.lines[1] + 1)
        path = fault.place.module.replace(".", "/") + ".py"
        numbers = [n for n, seen in self._lines.items() if any((path, i) in seen for i in wanted)]
        return self._look(numbers[:MAX_RUN], self._keys)

    def _patch(self, fault: Fault) -> None:
        """Put the fault in; the target then has to show anew that it can be judged."""
        patch(fault, self._loaded.module)
        self._target._tried.clear()

    def _look(self, numbers: Sequence[int], known: Set[tuple[str, str]]) -> LoopResult:
        """Run draws until one shows what is not known of the release."""
        result = LoopResult("same" if numbers else "not reached")
        for count, number in enumerate(numbers, 1):
            before, result = self._seen[number], replace(result, num_run=count)
            try:
                with _limit():
                    after = self._run(self._drawn[number])
            except DoesNotEndError:
                return replace(result, outcome="hangs", draw=number)
            except Exception as error:
                return replace(result, outcome="error", draw=number, mechanism=str(error)[:200])
            new = sorted(after.keys - known)
            if new:
                return LoopResult("found", number, *new[0], num_run=count)
            if after.failed != before.failed:
                return replace(
                    result, outcome="error", draw=number, mechanism=after.failed[0][:200]
                )
            hidden = sorted(after.keys - before.keys)
            if hidden and result.outcome != "hidden":
                result = LoopResult("hidden", number, *hidden[0])
            elif (
                result.outcome == "same"
                and number not in self.unsteady
                and after.digests != before.digests
            ):
                result = replace(result, outcome="differs", draw=number)
        return result

    def _run(self, drawn: Drawn) -> Seen:
        judged: Judged = run_and_judge(self._target, drawn.scenario, RUNNERS, None)
        found = [finding for findings in judged.findings.values() for finding in findings]
        found += judged.differences
        return Seen(
            frozenset((f.claim, f.mechanism) for f in found if drawn.judges(f.claim)),
            tuple(f"{runner} {digest(trace)}" for runner, trace in judged.traces.items()),
            tuple(judged.failed.values()),
        )

    def _at_functions(self, fault: Fault) -> FunctionResult | None:
        for part in fault.place.parts:
            news: list[tuple[str, str]] = []
            is_new = partial(_collect_new, self._functions[part], news)
            try:
                with _limit(10 * _SECONDS):
                    case = self._search_part(part, is_new)
            except (DoesNotEndError, Exception):
                # The part is not fit to be judged, as the command says of it: an error.
                return FunctionResult(part, 0, None)
            if case is not None:
                return FunctionResult(part, case, news[0][0])
        return None

    def _search_part(
        self, part: str, condition: Callable[[frozenset[tuple[str, str]]], bool]
    ) -> int | None:
        """Number of the first drawn case whose violations meet the condition, from 1."""
        family = next(family for family in FAMILIES if part in family.parts)
        target = VllmTarget(self._target.source)
        count = 0

        def meets(case: Case) -> bool:
            nonlocal count
            count += 1
            try:
                found = findings_on(target, part, case, TensorSettings())  # type: ignore[arg-type]
            except InputError:
                return False
            return condition(frozenset((f.claim, f.mechanism) for f in found))

        try:
            find(
                family.cases(),
                meets,
                settings=settings(
                    max_examples=NUM_CASES,
                    phases=[Phase.generate],
                    database=None,
                    deadline=None,
                    backend="hypothesis",
                    verbosity=Verbosity.quiet,
                    suppress_health_check=list(HealthCheck),
                ),
                random=Random(f"{SEED} {family.name}"),
            )
        except NoSuchExample:
            return None
        return count


def _collect_new(
    known: frozenset[tuple[str, str]],
    news: list[tuple[str, str]],
    found: frozenset[tuple[str, str]],
) -> bool:
    """Whether there is a violation that is not known; such are added to ``news``."""
    news += sorted(found - known)
    return bool(news)


def result_of(data: dict[str, Any]) -> Result:
    """A result as it stands in the record."""
    functions = data["functions"]
    return Result(
        LoopResult(**data["loop"]), None if functions is None else FunctionResult(**functions)
    )


@contextmanager
def _limit(seconds: float = _SECONDS) -> Iterator[None]:
    """Raise :class:`DoesNotEndError` after so much processor time."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise DoesNotEndError

    signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@contextmanager
def _lines_of(package: str) -> Iterator[set[tuple[str, int]]]:
    """Collect the lines of the protocol code that run: path below the package, and number."""
    paths = {f"{package}/{place.module.replace('.', '/')}.py" for place in PLACES}
    lines: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_filename not in paths:
            return None
        path = frame.f_code.co_filename.removeprefix(f"{package}/")

        def trace_line(frame: FrameType, event: str, _argument: object) -> Any:
            if event == "line":
                lines.add((path, frame.f_lineno))
            return trace_line

        return trace_line

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(previous)


def _in_fork(make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a function returns in a fork of this process, as JSON."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            answer = {"value": make()}
        except BaseException:
            answer = {"error": traceback.format_exc()}
        with os.fdopen(writing, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    found = json.loads(text) if text else {"error": "the process ended without an answer"}
    if "error" in found:
        raise RuntimeError(found["error"])
    value: dict[str, Any] = found["value"]
    return value
