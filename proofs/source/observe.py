"""A case of a function or of the scheduling, run on a release's source on plain integers."""

from __future__ import annotations

from impl.target import RUNNERS
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import SourceTarget
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
