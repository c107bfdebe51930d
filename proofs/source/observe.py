"""A case of any kind, run on a release's source on plain integers."""

from __future__ import annotations

from collections.abc import Iterator

from impl.target import RUNNERS
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_setup import RunCode
from proofs.source.code.source_target import SourceTarget
from proofs.source.passes.runs import REPLAYED_PASSES, run_plain
from spec.functions.cases import (
    BookCase,
    Case,
    FreeCase,
    GatherCase,
    RowRangeCase,
    SchedulingCase,
    WindowCase,
)
from spec.functions.observations import Observation
from spec.record.scenario import Scenario
from spec.record.steps import Step


def observed(
    release: ReleaseSource, name: str, case: Case | SchedulingCase, part: str
) -> Observation:
    """What a function, or the scheduling, does with a case.

    Args:
        name: what the release is called.
        part: of a gather, whose it is.

    Raises:
        NotModelled: the code uses something that is not modelled.
    """
    target = SourceTarget(release, name)
    match case:
        case GatherCase():
            (runner,) = (runner for runner in RUNNERS if runner == part)
            return target.gather(case, runner)
        case FreeCase():
            return target.free(case)
        case BookCase():
            return target.book(case)
        case WindowCase():
            return target.window(case)
        case RowRangeCase():
            return target.row_range(case)
        case SchedulingCase():
            return target.scheduling(case)


def steps_of(release: ReleaseSource, case: Scenario) -> Iterator[Step]:
    """The steps of a whole run, to its end or to as many passes as a replay has.

    Raises:
        NotModelled: the code uses something that is not modelled.
    """
    num_passes = 0
    for step in run_plain(RunCode(release), case):
        yield step
        num_passes += step.kind == "pass"
        if num_passes > REPLAYED_PASSES:
            return
