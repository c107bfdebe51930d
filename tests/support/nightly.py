"""What only the nightly run asks: a test with more to ask than every run can pay for says so here.

Under every other profile than ``nightly`` such a test takes a fixed sample that holds each kind at
least once. The summary of a run says what was left; ``make nightly`` leaves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import settings

NIGHTLY = "nightly"

CaseT = TypeVar("CaseT")


@dataclass(frozen=True)
class Left:
    """What one file leaves to the nightly run.

    Attributes:
        file: it stands in.
        every_run: what is asked in every run.
        nightly: what is asked in a nightly run besides.
        why: a sample will do in between.
    """

    file: str
    every_run: str
    nightly: str
    why: str


LEFT: dict[str, Left] = {
    "mutants of a release's guards": Left(
        "tests/source/test_source_releases.py",
        "one mutant of each expression of each guard of 0.33.0",
        "every mutant, and that those which change nothing stay green on every question",
        "mutants of one expression are seen by the same questions; green takes all questions",
    ),
    "mutants of a release's scheduling": Left(
        "tests/source/test_source_mutants.py",
        "one mutant of each expression that schedules, against the rule and against a claim",
        "every mutant",
        "the record says of each mutant what shows it; one an expression shows that it is read",
    ),
    "proofs made again": Left(
        "tests/theorems/test_proofs.py",
        "one proof of each group made twice: the same answer, resources and counterexample",
        "every proof made twice",
        "solvers repeat themselves or do not; it hangs on no single theorem",
    ),
    "seeds that find a fault": Left(
        "tests/search/test_loop_search.py",
        "two seeds find a fault under one fingerprint",
        "six seeds do",
        "a fingerprint that hangs on the draw differs between any two seeds",
    ),
    "runs laid against their schema": Left(
        "tests/record/test_loop_document.py",
        "the files of 50 drawn runs fit the schema",
        "those of as many runs as other properties draw",
        "to check one takes a tenth of a second; all drawn runs are written and read back",
    ),
    "shapes that show a mutant": Left(
        "tests/source/test_source_mutants.py",
        "a mutant on the shape that is recorded to show it",
        "each mutant on every shape",
        "the recorded shape is the first that shows it",
    ),
}
"""What is left, by the name under which a test asks for it."""


def is_nightly() -> bool:
    """Whether this run leaves nothing."""
    return settings.get_current_profile_name() == NIGHTLY


def asks_all(name: str) -> bool:
    """Whether this run asks all that is listed under a name.

    Raises:
        KeyError: nothing is.
    """
    LEFT[name]
    return is_nightly()


def sampled(
    name: str, cases: Iterable[CaseT], kind: Callable[[CaseT], Hashable]
) -> Sequence[CaseT]:
    """The cases that this run asks about: the first of each kind, or all of them.

    Args:
        name: under which the others are listed.
        cases: in the order of which the first are taken.
        kind: what a case stands for.

    Raises:
        KeyError: nothing is listed under the name.
    """
    if asks_all(name):
        return list(cases)
    first: dict[Hashable, CaseT] = {}
    for case in cases:
        first.setdefault(kind(case), case)
    return list(first.values())


def fewer(name: str) -> int:
    """How many examples this run draws where each is dear: a quarter of its profile's, or all.

    Raises:
        KeyError: nothing is listed under the name.
    """
    drawn: int = settings.default.max_examples
    return drawn if asks_all(name) else drawn // 4


def summary() -> str | None:
    """One line on what this run left, for the end of it."""
    if is_nightly():
        return None
    return f"LEFT TO THE NIGHTLY RUN (make nightly; tests/support/nightly.py): {', '.join(LEFT)}"


def table() -> str:
    """What is left and why, as a table in Markdown."""
    rows = [
        ("file", "in every run", "in a nightly run", "why"),
        ("---",) * 4,
        *((f"`{left.file}`", left.every_run, left.nightly, left.why) for left in LEFT.values()),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
