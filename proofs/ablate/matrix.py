"""The whole matrix, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from proofs.ablate.cells import Cell, Scheduling
from proofs.ablate.confirm import confirm
from proofs.ablate.decide import Decided, Proof, Shown, decide
from proofs.ablate.evidence import Evidence, evidence
from proofs.describe.scenarios import describe_scenario

JSON_SCHEMA_VERSION = 1


def decided_cells(
    cells: Sequence[Cell], report_progress: Callable[[str, int, int], None] = lambda *_: None
) -> Iterator[Decided]:
    """Decide the given cells, each with a proof or a counterexample that the reference repeats.

    Raises:
        DisagreementError: theorems, model and reference do not say the same of a cell.
        UnfinishedRunError: a run of the scope did not end.
    """
    evidences: dict[tuple[Scheduling, int], Evidence] = {}
    for number, cell in enumerate(cells):
        report_progress("cells", number, len(cells))
        key = cell.scheduling, cell.gather_lookahead
        if key not in evidences:
            evidences[key] = evidence(*key)
        decided = decide(cell, evidences[key])
        confirm(decided)
        yield decided
    report_progress("cells", len(cells), len(cells))


def to_json(decided: Sequence[Decided]) -> dict[str, Any]:
    """The matrix as JSON data."""
    return {
        "schema": JSON_SCHEMA_VERSION,
        "level": "ablation",
        "cells": [
            {
                **answer.cell.to_json(),
                "safety": _answer_to_json(answer.safety),
                "progress": _answer_to_json(answer.progress),
                "dense_safety": list(answer.dense_only),
            }
            for answer in decided
        ],
    }


def _answer_to_json(answer: Proof | Shown) -> dict[str, Any]:
    if isinstance(answer, Proof):
        return {"theorems": list(answer.theorems)}
    return {"claim": answer.claim, "scenario": describe_scenario(answer.scenario)}
