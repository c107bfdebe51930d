"""How the matrix is shown: a line for each choice of rules, a column for shift and look-ahead."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from proofs.ablate.cells import LOOK_AHEADS, SHIFTS, Cell
from proofs.ablate.decide import Decided, Proof, Shown
from proofs.describe.scenarios import describe_scenario
from proofs.describe.visible import print_lines
from proofs.describe.words import counted

SIGNS = {
    ".": "safe and getting on",
    "m": "with a miss",
    "s": "stopping",
    "#": "with both",
}
"""What each sign counts."""

LEGEND = """Columns are ks:kg, the scheduler's shift and how far the drafter reads ahead (tokens).
. safe, and requests get on; m a gather reads what is not there; s two items can stop a request for
ever; # both."""


def sign(decided: Decided) -> str:
    """The cell in one sign."""
    is_safe = isinstance(decided.safety, Proof)
    gets_on = isinstance(decided.progress, Proof)
    if is_safe:
        return "." if gets_on else "s"
    return "m" if gets_on else "#"


def print_matrix(decided: Sequence[Decided]) -> None:
    """Print the table, then how many cells are what."""
    for line in matrix_lines(decided):
        print_lines(line)
    print_lines(f"\n{LEGEND}")
    signs = [sign(answer) for answer in decided]
    counts = ", ".join(f"{signs.count(name)} {meaning}" for name, meaning in SIGNS.items())
    print_lines(
        f"{counted(len(decided), 'cell')}: {counts}. Each answer has its proof or a smallest"
    )
    print_lines("counterexample, which the reference with the same guards repeats.")


def matrix_lines(decided: Sequence[Decided]) -> list[str]:
    """The table in fixed columns; columns are ks:kg."""
    found = {answer.cell: sign(answer) for answer in decided}
    columns = [
        pair
        for pair in product(SHIFTS, LOOK_AHEADS)
        if any(_column(cell) == pair for cell in found)
    ]
    rows: dict[tuple[str, ...], dict[tuple[int, int], str]] = {}
    for cell, word in found.items():
        rows.setdefault(row_of(cell), {})[_column(cell)] = word
    names = _line("margin", "cut", "reservation", "tolerance")
    lines = [names + " ".join(f"{shift}:{look_ahead}" for shift, look_ahead in columns)]
    for row, words in rows.items():
        cells = " ".join(words.get(column, "").center(3) for column in columns)
        lines.append((_line(*row) + cells).rstrip())
    return lines


def _line(margin: str, cut: str, reservation: str, tolerance: str) -> str:
    return f"{margin:<7}{cut:<8}{reservation:<12}{tolerance:<10}"


def print_details(decided: Sequence[Decided]) -> None:
    """Print each cell's proofs and counterexamples."""
    for answer in decided:
        shift, look_ahead = _column(answer.cell)
        named = zip(("margin", "cut", "reservation", "tolerance"), row_of(answer.cell), strict=True)
        guards = ", ".join(f"{name} {value}" for name, value in named)
        print_lines(f"\nks {shift}, kg {look_ahead}, {guards}: {SIGNS[sign(answer)]}")
        print_lines(f"  reads: {_answer(answer.safety)}")
        if answer.dense_only:
            print_lines(f"         without masks safe by {', '.join(answer.dense_only)}")
        print_lines(f"  progress: {_answer(answer.progress)}")


def _answer(answer: Proof | Shown) -> str:
    if isinstance(answer, Proof):
        return f"proved by {', '.join(answer.theorems)}"
    return f"{answer.claim} broken by {describe_scenario(answer.scenario)}"


def _column(cell: Cell) -> tuple[int, int]:
    return cell.scheduling.scheduler_lookahead, cell.gather_lookahead


def row_of(cell: Cell) -> tuple[str, str, str, str]:
    """The cell's row of the matrix: margin, cut, reservation and tolerance."""
    scheduling = cell.scheduling
    tolerance = "on" if cell.tolerates_boundary else "off"
    return str(scheduling.rules.margin), scheduling.cut, scheduling.rules.reservation, tolerance
