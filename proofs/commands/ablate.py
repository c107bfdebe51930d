"""``residency ablate``: which guards are needed, alone and together."""

from __future__ import annotations

from collections.abc import Sequence

import click

from proofs.ablate.cells import CUTS, LOOK_AHEADS, MARGINS, RESERVATIONS, SHIFTS, Cell, cells
from proofs.ablate.decide import Decided, Proof
from proofs.ablate.matrix import decided_cells, to_json
from proofs.ablate.matrix_text import print_details, print_matrix
from proofs.commands.files import file_options
from proofs.describe.visible import print_lines
from proofs.dossiers.ablation import report_cells
from proofs.jobs.ending import PlainCommand
from proofs.jobs.progress import ReportProgress
from proofs.jobs.terminal import progress_bar
from proofs.results.document import dumps, results_of
from proofs.results.outcome import Checked, Outcome
from proofs.results.publish import MachineFiles
from proofs.smt.obligation import prove
from proofs.theorems.groups import all_obligations
from spec.functions.case_files import write_atomically
from spec.verdict import Verdict, exit_code

_FEW = 8
"""Up to so many cells, each is printed with its proofs and counterexamples."""


def _choice(name: str, values: Sequence[object], text: str) -> click.Option:
    return click.Option([name], type=click.Choice([str(v) for v in values]), help=text)


@click.command(
    "ablate",
    cls=PlainCommand,
    params=[
        _choice("--margin", MARGINS, "Tokens past an item's end before its reference goes."),
        _choice("--shift", SHIFTS, "The scheduler's shift ks (tokens)."),
        _choice("--look-ahead", LOOK_AHEADS, "How far the drafter reads ahead, kg (tokens)."),
        _choice(
            "--cut",
            tuple(CUTS),
            "Where a chunk ends before a refused item. plain: at it; shifted: --shift tokens "
            "before it.",
        ),
        _choice(
            "--reservation",
            RESERVATIONS,
            "Tokens that a chunk near the prefill's end leaves for a last chunk. off: none; "
            "yielding: unless the chunk would be empty; insisting: even then.",
        ),
        _choice("--tolerance", ("on", "off"), "Whether a boundary miss is skipped."),
    ],
)
@file_options("json", "report", report="Write a page on each counterexample into this folder.")
def ablate(
    *,
    margin: str | None,
    shift: str | None,
    look_ahead: str | None,
    cut: str | None,
    reservation: str | None,
    tolerance: str | None,
    files: MachineFiles,
) -> int:
    """Decide which choices of guards are safe.

    Safe means that no claim on residency breaks; whether requests make progress is said beside it.

    Each answer is a theorem, proved again here by both solvers, or the smallest counterexample of
    the model, repeated by the reference with the same guards. Each option keeps only
    the choices with its value. Where few are left, each is printed with its proofs and
    counterexamples.

    Exits 0 when all are decided, 3 when a solver gave up on a theorem, 5 when theorems, model and
    reference disagree, 2 for wrong input and 130 after Ctrl-C.
    """
    wanted = {
        "margin": margin,
        "scheduler_lookahead": shift,
        "gather_lookahead": look_ahead,
        "cut": cut,
        "reservation": reservation,
        "tolerates_boundary": None if tolerance is None else str(tolerance == "on"),
    }
    files.require_writable()
    chosen = [cell for cell in cells() if _is_wanted(cell, wanted)]
    with progress_bar() as report_progress:
        decided = list(decided_cells(chosen, report_progress or (lambda *_: None)))
        verdicts = _prove_all(decided, report_progress)
    print_matrix(decided)
    if len(decided) <= _FEW:
        print_details(decided)
    if files.json is not None:
        outcomes = [Outcome("theorem", name, verdict) for name, verdict in verdicts.items()]
        results = results_of(
            "ablate",
            [Checked("the rules", tuple(outcomes))],
            settings={name: value for name, value in wanted.items() if value is not None},
            details={"cells": to_json(decided)["cells"]},
            code=exit_code([*verdicts.values(), Verdict.HELD]),
        )
        write_atomically(files.json, dumps(results))
    if files.folder is not None:
        report_cells(decided, files.folder)
    for name, verdict in verdicts.items():
        if verdict is not Verdict.PROVED:
            print_lines(f"{verdict.name} {name}", err=True)
    return exit_code([*verdicts.values(), Verdict.HELD])


def _is_wanted(cell: Cell, wanted: dict[str, str | None]) -> bool:
    choice = cell.to_json()
    return all(value is None or str(choice[name]) == value for name, value in wanted.items())


def _prove_all(
    decided: Sequence[Decided], report_progress: ReportProgress | None
) -> dict[str, Verdict]:
    """Prove every theorem that an answer names; its verdict by name."""
    named = {
        theorem
        for cell_decided in decided
        for answer in (cell_decided.safety, cell_decided.progress)
        if isinstance(answer, Proof)
        for theorem in answer.theorems
    } | {theorem for cell_decided in decided for theorem in cell_decided.dense_only}
    by_name = {obligation.name: obligation for obligation in all_obligations()}
    verdicts = {}
    for number, name in enumerate(sorted(named)):
        if report_progress is not None:
            report_progress("theorems", number, len(named))
        verdicts[name] = prove(by_name[name]).verdict
    return verdicts
