"""Counterexamples on a release's source, made as small as those that the search reports."""

from __future__ import annotations

from impl.target import RUNNERS
from proofs.search.functions.reduce import reduce_case
from proofs.source.ask.piece import Piece
from proofs.source.code.source_target import SourceTarget
from proofs.symbolic.integers import NotModelled
from spec.functions.cases import (
    BookCase,
    Case,
    FreeCase,
    GatherCase,
    RowRangeCase,
    SchedulingCase,
    WindowCase,
)
from spec.functions.findings import Finding
from spec.functions.observations import Observation
from spec.monitor.functions.observed import check
from spec.record.scenario import Scenario


def reduced(piece: Piece, target: SourceTarget) -> Finding | None:
    """The piece's finding with the smallest case that leaving parts out comes to.

    A solver makes the numbers of one program or shape small; what that shape holds beyond the fault
    is left out here. Every step is valid and still violates the same claim by the same mechanism.
    It also stays within the piece's assumptions: validity covers layout and contents, and with
    features in the prompt a violation has no placeholders, which no step adds.

    Args:
        piece: a settled question.
        target: the source that it was settled on.
    """
    original = piece.finding
    if original is None or isinstance(original.case, (SchedulingCase, Scenario)):
        return original

    def same_violation(case: Case) -> Finding | None:
        try:
            observation = _observe(case, piece.part, target)
        except NotModelled:
            # Another path of the code, of which nothing is known.
            return None
        for found in check(case, observation, original.target):
            if found.fingerprint == original.fingerprint:
                return found
        return None

    smallest = reduce_case(original.case, lambda case: same_violation(case) is not None)
    return same_violation(smallest) or original


def _observe(case: Case, part: str, target: SourceTarget) -> Observation:
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
