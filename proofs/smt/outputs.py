"""Results of proofs as JSON, JUnit and SMT-LIB files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from proofs.smt.obligation import Obligation, Result, negated
from proofs.smt.solvers import Z3
from proofs.smt.vocabulary import Assignment, Value
from spec.functions.case_files import write_atomically
from spec.verdict import Verdict

JSON_SCHEMA_VERSION = 1


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


def to_json(results: Sequence[Result]) -> str:
    """The results as JSON text.

    ``solvers`` holds each solver's answer to the negated formula and ``rlimit`` the resource units
    that z3 counted for it.
    """
    document = {
        "schema": JSON_SCHEMA_VERSION,
        "obligations": [
            {
                "claim": result.obligation.claim,
                "name": result.obligation.name,
                "group": result.obligation.group,
                "verdict": result.verdict.value,
                "solvers": dict(result.answers),
                "rlimit": result.resources["z3"],
                "milliseconds": round(result.milliseconds, 1),
                "assumptions": list(result.obligation.assumptions),
                "witness": _data(result.obligation.witness),
                "ablations": [
                    {
                        "name": ablation.name,
                        "verdict": ablation.verdict.value,
                        "model": _data(ablation.model),
                    }
                    for ablation in result.ablations
                ],
            }
            for result in results
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def to_junit(results: Sequence[Result]) -> str:
    """The results as JUnit XML: ERROR is an error, all else but PROVED a failure."""
    suite = TestSuite("proofs")
    for result in results:
        seconds = round(result.milliseconds / 1000, 3)
        case = TestCase(result.obligation.name, result.obligation.claim, seconds)
        if result.verdict is not Verdict.PROVED:
            kind = Error if result.verdict is Verdict.ERROR else Failure
            message = f"{result.verdict.value}: {result.detail}"
            if result.model is not None:
                message += f": {describe(result.model)}"
            case.result = [kind(message, result.verdict.value)]
        suite.add_testcase(case)
    document: Any = JUnitXml("residency proofs")
    document.add_testsuite(suite)
    document.update_statistics()
    text: bytes = document.tostring()
    return text.decode()


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
