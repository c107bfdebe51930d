"""Run a counterexample of the matrix on the reference with the same guards, under the monitor."""

from __future__ import annotations

from impl.targets.ablation import ablated_reference
from impl.targets.runs import ReferenceLoop
from proofs.ablate.cells import Cell
from proofs.ablate.decide import Decided, DisagreementError, Shown
from proofs.run.judge import run_and_judge

AS_GOOD = {
    "drafter-resident-or-boundary": frozenset({"drafter-resident-or-boundary"}),
    "boundary-miss-tolerated": frozenset({"boundary-miss-tolerated"}),
    "no-stall": frozenset({"no-stall", "no-thrash"}),
}
"""What the monitor may call each fault."""


def confirm(decided: Decided) -> int:
    """Run both counterexamples of a cell, where it has them; how many that were.

    Raises:
        DisagreementError: the reference does not show what the model showed.
    """
    number = 0
    if isinstance(decided.safety, Shown):
        _confirm(decided.cell, decided.cell.tolerates_boundary, decided.safety)
        number += 1
    if isinstance(decided.progress, Shown):
        # A miss that raises would end the run before it stops.
        _confirm(decided.cell, True, decided.progress)
        number += 1
    return number


def reference_of(cell: Cell, tolerates_boundary: bool) -> ReferenceLoop:
    """The reference with the guards of a cell, but for whether a boundary miss is skipped."""
    return ablated_reference(cell.scheduling.rules, tolerates_boundary=tolerates_boundary)


def _confirm(cell: Cell, tolerates_boundary: bool, shown: Shown) -> None:
    target = reference_of(cell, tolerates_boundary)
    judged = run_and_judge(target, shown.scenario, ("V2",), None, should_compare=False)
    if judged.failed:
        raise DisagreementError(f"{cell}: {judged.failed['V2']} on {shown.scenario}")
    seen = {finding.claim for finding in judged.findings["V2"]}
    if not seen & AS_GOOD[shown.claim]:
        raise DisagreementError(
            f"{cell}: the model breaks {shown.claim} on {shown.scenario}, the reference breaks "
            f"{', '.join(sorted(seen)) or 'nothing'}"
        )
