"""Results of proofs as outcomes, and theorems as SMT-LIB files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proofs.results.outcome import Ablation, Checked, Outcome, Proof
from proofs.smt.obligation import Obligation, Result, negated
from proofs.smt.solvers import Z3
from proofs.smt.vocabulary import Assignment, Value
from spec.functions.case_files import write_atomically
from spec.verdict import Verdict


def _value(value: Value) -> int | bool | list[bool]:
    return list(value) if isinstance(value, tuple) else value


def _data(assignment: Assignment | None) -> dict[str, Any] | None:
    if assignment is None:
        return None
    return {name: _value(value) for name, value in assignment.items()}


def describe(assignment: Assignment) -> str:
    """Concrete data on one line; masks as T and F."""
    return ", ".join(
        f"{name}={''.join('FT'[bit] for bit in value) if isinstance(value, tuple) else value}"
        for name, value in assignment.items()
    )


def checked_rules(results: Sequence[Result]) -> Checked:
    """What became of theorems, as files and other tools are told of them."""
    return Checked("the rules", tuple(map(_outcome, results)))


def _outcome(result: Result) -> Outcome:
    obligation = result.obligation
    reason = None
    if result.verdict is not Verdict.PROVED:
        reason = result.detail
        if result.model is not None:
            reason += f": {describe(result.model)}"
    return Outcome(
        obligation.claim,
        obligation.name,
        result.verdict,
        reason=reason,
        assumptions=tuple(obligation.assumptions),
        proof=Proof(
            obligation.group,
            dict(result.answers),
            result.resources["z3"],
            round(result.milliseconds, 1),
            witness=_data(obligation.witness),
            ablations=tuple(
                Ablation(ablation.name, ablation.verdict, _data(ablation.model))
                for ablation in result.ablations
            ),
        ),
    )


def to_smt2(obligation: Obligation) -> str:
    """The negated obligation as an SMT-LIB script, for a third solver: ``unsat`` is proved."""
    body = Z3().to_smt2(negated(obligation.build)).splitlines()
    kept = [line for line in body if not line.startswith((";", "(set-info"))]
    head = [
        f"; {obligation.name}: {obligation.sentence}.",
        f"; Supports claim {obligation.claim}. Negated: the theorem holds if this is unsat.",
        "(set-info :smt-lib-version 2.6)",
        "(set-info :status unsat)",
        "(set-logic QF_UFLIA)",
    ]
    return "\n".join([*head, *kept, "(exit)", ""])


def write_smt2(folder: Path, obligations: Sequence[Obligation]) -> None:
    """Write every obligation to a file ``group.name.smt2`` of the folder.

    Raises:
        InputError: the folder cannot be written.
    """
    for obligation in obligations:
        write_atomically(folder / f"{obligation.name}.smt2", to_smt2(obligation))
