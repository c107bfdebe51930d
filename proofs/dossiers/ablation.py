"""Reports on the counterexamples of the ablation matrix: the reference with a cell's guards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from proofs.ablate.cells import Cell
from proofs.ablate.confirm import AS_GOOD, reference_of
from proofs.ablate.decide import Decided, DisagreementError, Shown
from proofs.ablate.matrix_text import row_of
from proofs.describe.scenarios import describe_scenario
from proofs.describe.shape import shape
from proofs.describe.words import counted
from proofs.dossiers.runs import finish, written_runs
from proofs.drive.origin import Origin
from proofs.report.pages.account import NO_EVIDENCE, Evidence
from proofs.run.judge import run_and_judge
from proofs.search.runs.results import LoopCounterexample

_RESERVATIONS = {
    "off": "no reservation near the prefill's end",
    "yielding": "a reservation that yields",
    "insisting": "a reservation that insists",
}


def report_cells(decided: Sequence[Decided], folder: Path) -> list[str]:
    """Write a report on each smallest run; the texts for a pull request.

    Args:
        decided: the cells with their answers.
        folder: where the reports go.

    Raises:
        InputError: a file cannot be written.
        DisagreementError: the reference does not show what the model showed.
    """
    by_run: dict[Shown, list[tuple[Cell, bool]]] = {}
    for cell, tolerates, shown in _all_shown(decided):
        by_run.setdefault(shown, []).append((cell, tolerates))
    examples: dict[str, LoopCounterexample] = {}
    evidence: dict[str, Evidence] = {}
    for shown, pairs in by_run.items():
        example = _example(*pairs[0], shown)
        # Cells may have runs of their own for one fault; the first is shown.
        key = example.finding.fingerprint
        reported = examples.setdefault(key, example)
        remarks = _remarks(example, [cell for cell, _ in pairs], is_shown=reported is example)
        evidence[key] = Evidence((*evidence.get(key, NO_EVIDENCE).shown, *remarks))
    origin = Origin("the reference with guards of the matrix", recorded=True)
    written = written_runs(list(examples.values()), origin, None, folder, evidence=evidence)
    return finish(written, origin, folder)


def _remarks(
    example: LoopCounterexample, cells: Sequence[Cell], *, is_shown: bool
) -> tuple[str, ...]:
    """In which cells the model found a run, and how the run that is shown is made again."""
    columns: dict[str, dict[str, None]] = {}
    for cell in cells:
        columns.setdefault(" ".join(row_of(cell)), {})[_column(cell)] = None
    rows = "; ".join(f"{row}, {' '.join(names)}" for row, names in columns.items())
    number = counted(sum(map(len, columns.values())), "cell")
    run = "this run" if is_shown else f"the run {describe_scenario(example.trace.scenario)}"
    remarks = (
        f"The model found {run} in {number} of the matrix, and the reference repeats it: {rows} "
        "(margin, cut, reservation and tolerance, then ks:kg)"
    )
    if not is_shown:
        return (remarks,)
    return remarks, (
        "The command below judges the recorded run again; "
        f"`{_command(cells[0])}` looks for it anew and runs it on the reference"
    )


def _command(cell: Cell) -> str:
    """The command that decides the cell."""
    margin, cut, reservation, tolerance = row_of(cell)
    shift, look_ahead = cell.scheduling.scheduler_lookahead, cell.gather_lookahead
    return (
        f"residency ablate --margin {margin} --shift {shift} --look-ahead {look_ahead} "
        f"--cut {cut} --reservation {reservation} --tolerance {tolerance}"
    )


def _column(cell: Cell) -> str:
    """The cell's column of the matrix."""
    return f"{cell.scheduling.scheduler_lookahead}:{cell.gather_lookahead}"


def _all_shown(decided: Sequence[Decided]) -> Iterator[tuple[Cell, bool, Shown]]:
    """Every counterexample, with whether its gather skips a boundary miss."""
    for answer in decided:
        if isinstance(answer.safety, Shown):
            yield answer.cell, answer.cell.tolerates_boundary, answer.safety
        if isinstance(answer.progress, Shown):
            # A miss that raises would end the run before it stops.
            yield answer.cell, True, answer.progress


def _example(cell: Cell, tolerates_boundary: bool, shown: Shown) -> LoopCounterexample:
    judged = run_and_judge(
        reference_of(cell, tolerates_boundary), shown.scenario, ("V2",), None, should_compare=False
    )
    found = judged.findings.get("V2", ())
    finding = next(
        (candidate for candidate in found if candidate.claim in AS_GOOD[shown.claim]), None
    )
    if finding is None:
        raise DisagreementError(f"{cell}: the reference does not break {shown.claim}")
    trace = replace(judged.traces["V2"], target=_name(cell, tolerates_boundary))
    return LoopCounterexample(replace(finding, shape=shape(shown.scenario)), trace, ("V2",))


def _name(cell: Cell, tolerates_boundary: bool) -> str:
    """The cell as the matrix has it, since a table cuts what is long, and the guards in words."""
    scheduling = cell.scheduling
    guards = [
        f"a margin of {counted(1 if scheduling.rules.margin else 0, 'token')}",
        f"a {scheduling.cut} cut",
        _RESERVATIONS[scheduling.rules.reservation],
        "boundary misses skipped" if tolerates_boundary else "boundary misses raised",
    ]
    return f"{' '.join(row_of(cell))}, {_column(cell)}: the reference with {', '.join(guards)}"
