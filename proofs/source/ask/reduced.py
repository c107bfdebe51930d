"""Counterexamples on a release's source, made as small as those that the search reports."""

from __future__ import annotations

from collections.abc import Callable

from proofs.search.functions.reduce import reduce_case
from spec.functions.cases import Case
from spec.functions.findings import Finding
from spec.functions.observations import Observation
from spec.monitor.functions.observed import check


def reduced(
    original: Finding, case: Case, observe: Callable[[Case], Observation | None]
) -> Finding | None:
    """A finding with the smallest case that leaving parts out comes to; ``None`` if none shows it.

    A solver makes the numbers of one program or shape small; what that shape holds beyond the fault
    is left out here. Every step is valid and still violates the same claim by the same mechanism.
    It also stays within the proof's assumptions: validity covers layout and contents, and with
    features in the prompt a violation has no placeholders, which no step adds.

    Args:
        original: what a proof found.
        case: its case.
        observe: runs a case; ``None`` where nothing is known of it, as on another path of the code.
    """

    def same_violation(smaller: Case) -> Finding | None:
        observation = observe(smaller)
        if observation is None:
            return None
        for found in check(smaller, observation, original.target):
            if found.fingerprint == original.fingerprint:
                return found
        return None

    if same_violation(case) is None:
        return None
    smallest = reduce_case(case, lambda smaller: same_violation(smaller) is not None)
    return same_violation(smallest)
