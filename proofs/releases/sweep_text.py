"""How a sweep is shown: the table, what the search found, and where the record is not met."""

from __future__ import annotations

from collections.abc import Sequence

from proofs.describe.visible import print_lines
from proofs.describe.words import counted
from proofs.drive.recorded import Recorded
from proofs.releases.sweep import ENGINES, Deviation, cells
from proofs.results.outcome import NOT_AVAILABLE, Checked
from proofs.results.violation import Violation
from proofs.search.runs.results import BOTH_RUNNERS_CLAIMS, RUNNER_CLAIMS
from spec.verdict import Verdict

_SIGNS = {
    Verdict.ERROR.name: "E",
    Verdict.REFUTED.name: "X",
    Verdict.UNKNOWN.name: "?",
    Verdict.HELD.name: ".",
    Verdict.VACUOUS.name: "0",
    NOT_AVAILABLE: "-",
}
"""The sign of each verdict. Where there are several, the first in this order counts."""

_MEANINGS = ". held, X refuted, ? unknown, 0 never put to the test, E error, - not run"


def print_sweep(entries: Sequence[Checked]) -> None:
    """Print the table: a line for each claim, a column for each release, a sign for each engine."""
    if not entries:
        print_lines("Nothing was run.")
        return
    engines = ", ".join(f"{runner} {mode}" for runner, mode in ENGINES)
    print_lines(f"Each column: {engines}. {_MEANINGS}.")
    names = [entry.release or entry.target for entry in entries]
    widths = [max(len(name), len(ENGINES)) for name in names]
    head = [name.ljust(width) for name, width in zip(names, widths, strict=True)]
    print_lines(f"{'claim':<28} {'  '.join(head)}".rstrip())
    found = [cells(entry) for entry in entries]
    for claim in (*RUNNER_CLAIMS, *BOTH_RUNNERS_CLAIMS):
        signs = [
            "".join(_sign(verdicts.get((claim, engine), set())) for engine in ENGINES).ljust(width)
            for verdicts, width in zip(found, widths, strict=True)
        ]
        print_lines(f"{claim:<28} {'  '.join(signs)}".rstrip())


def _sign(verdicts: set[str]) -> str:
    return next((sign for name, sign in _SIGNS.items() if name in verdicts), "-")


def print_findings(entries: Sequence[Checked]) -> None:
    """Print each fault that the search found once, with the releases that show it."""
    where: dict[str, list[str]] = {}
    first: dict[str, Violation] = {}
    for entry in entries:
        name = entry.release or entry.target
        for violation in entry.violations:
            shown = where.setdefault(violation.fingerprint, [])
            if name not in shown:
                shown.append(name)
            first.setdefault(violation.fingerprint, violation)
    if first:
        print_lines("\nFound by the search:")
    for fingerprint, violation in first.items():
        print_lines(f"  {violation.claim} [{fingerprint}] in {', '.join(where[fingerprint])}")
        print_lines(f"    {violation.mechanism}: {violation.smallest}")


def print_deviations(
    recorded: Recorded, entries: Sequence[Checked], found: Sequence[Deviation]
) -> None:
    """Print how many recorded answers were put to the test, and each that was another one."""
    asked = sum(
        fault.expected(entry.release) is not None
        for entry in entries
        for fault in recorded.index.faults
    )
    wrong = len({(deviation.name, deviation.target) for deviation in found})
    print_lines(f"\n{counted(asked, 'recorded answer')} looked at, {wrong} not as recorded.")
    for deviation in found:
        print_lines(
            f"  {deviation.verdict.name} {deviation.name} on {deviation.target}: {deviation.text}"
        )
    for fault in recorded.index.without_scenario:
        print_lines(f"  no scenario for {fault.name}: {fault.reason}")
