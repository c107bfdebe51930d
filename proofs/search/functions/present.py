"""How the results of a check are shown: as a table, as fixed columns, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from proofs.describe.cases import describe_case
from proofs.describe.visible import print_lines, table_text
from proofs.describe.words import counted, describe_part, describe_target
from proofs.results.outcome import NOT_AVAILABLE, Checked, Outcome
from proofs.results.violation import of_function
from proofs.search.functions.parts import WITHOUT
from proofs.search.functions.results import CheckReport
from spec.functions.findings import Finding
from spec.verdict import Verdict

_NUMBERS = ("cases", "premise met in")
"""Heads of the columns with numbers."""

_FINGERPRINT_WIDTH = 12

_STYLES = {
    Verdict.HELD: "green",
    Verdict.REFUTED: "bold red",
    Verdict.VACUOUS: "yellow",
    Verdict.UNKNOWN: "yellow",
    Verdict.ERROR: "bold red",
}


def print_report(report: CheckReport) -> None:
    """Print the table, one paragraph for each violation with its smallest case, and the sums."""
    title = (
        f"{report.target}: {report.settings.examples} cases a family, seed {report.settings.seed}"
    )
    print_results(report.results, title)
    for finding in report.findings:
        print_finding(finding)
    if not any(result.cases for result in report.results):
        print_lines("\nNothing was run.")
    if report.interrupted:
        print_lines("\nInterrupted: the results above are incomplete.")
    faults = {finding.fingerprint for finding in report.findings}
    print_lines(f"\n{summary(report.results, len(faults))}")


def print_results(
    results: Sequence[Outcome],
    title: str,
    part: str = "part",
    numbers: tuple[str, str] = _NUMBERS,
) -> None:
    """Print one line for each result: a table on a terminal, fixed columns elsewhere.

    Args:
        title: what to print above them.
        part: head of the column that says on what each was checked.
        numbers: heads of the columns with numbers.
    """
    console = Console(highlight=False, soft_wrap=True)
    if console.is_terminal:
        console.print(_rich_table(results, title, part, numbers))
        return
    print_lines(title)
    print_lines(_plain_columns("claim", part, "verdict", *numbers, _remarks_head(results)))
    for result in results:
        print_lines(_plain_line(result))


def print_finding(finding: Finding) -> None:
    """Print a violation: its smallest case, what was seen and what the claim asks for."""
    verdict = _with_assumption(Verdict.REFUTED.name, _broken_by(finding))
    target = describe_target(finding.target)
    print_lines(f"\n{verdict} {finding.claim} by {target} [{finding.fingerprint}]")
    print_lines(f"  {finding.mechanism}: {describe_case(finding.case)}")
    print_lines(f"  observed: {finding.observed}")
    print_lines(f"  expected: {finding.expected}")


def _part_name(result: Outcome) -> str:
    return _with_assumption(describe_part(result.part), result.without)


def _with_assumption(text: str, without: str | None) -> str:
    return text if without is None else f"{text} (without {without})"


def _broken_by(finding: Finding) -> str | None:
    """The assumption that the finding's case breaks on purpose; targets end with the part."""
    return next((a for part, a in WITHOUT.items() if finding.target.endswith(f" {part}")), None)


def summary(results: Sequence[Outcome], num_faults: int) -> str:
    """How many questions there were and what became of them."""
    counts = Counter(result.verdict_name for result in results)
    names = [*(verdict.name for verdict in Verdict), NOT_AVAILABLE]
    answers = []
    for name in (name for name in names if counts[name]):
        answer = f"{counts[name]} {name}"
        if name == Verdict.REFUTED.name:
            answer += f" ({counted(num_faults, 'distinct fault')})"
        answers.append(answer)
    questions = counted(len(results), "question")
    return f"{questions}: {', '.join(answers)}" if answers else questions


def _remark(result: Outcome) -> str:
    return result.reason or " ".join(result.fingerprints)


def _plain_line(result: Outcome) -> str:
    numbers = str(result.cases), str(result.premises)
    return _plain_columns(
        result.claim, _part_name(result), result.verdict_name, *numbers, _remark(result)
    )


def _plain_columns(
    claim: str, part: str, verdict: str, cases: str, premises: str, remark: str
) -> str:
    return (f"{claim:<28} {part:<53} {verdict:<13} {cases:>6} {premises:>14}  {remark}").rstrip()


def _remarks_head(results: Sequence[Outcome]) -> str:
    """What the last column holds."""
    has_reasons = any(result.reason is not None for result in results)
    return "faults or reason" if has_reasons else "faults"


def _rich_table(
    results: Sequence[Outcome],
    title: str,
    part: str = "part",
    numbers: tuple[str, str] = _NUMBERS,
) -> Table:
    # Narrow gaps leave the parts' long names room on a terminal of 80 columns.
    table = Table(
        title=table_text(title),
        title_justify="left",
        box=box.SIMPLE,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    cases, premises = numbers
    table.add_column("claim", no_wrap=True)
    table.add_column(part, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column(cases, justify="right", no_wrap=True)
    table.add_column(premises, justify="right", max_width=len("premise"))
    table.add_column(_remarks_head(results), overflow="fold", min_width=_FINGERPRINT_WIDTH)
    for result in results:
        style = "dim" if result.verdict is None else _STYLES[result.verdict]
        verdict = f"[{style}]{result.verdict_name}[/]"
        table.add_row(
            table_text(result.claim),
            table_text(_part_name(result)),
            verdict,
            str(result.cases),
            str(result.premises),
            table_text(_remark(result)),
        )
    return table


def checked_functions(report: CheckReport, package: Path | None = None, **named: Any) -> Checked:
    """A check of single functions, as files and other tools are told of it.

    Args:
        package: the folder ``vllm`` of what was checked; ``None`` for the reference.
        named: release, source and digest of the vLLM.
    """
    violations = tuple(
        of_function(finding, finding.target.removeprefix(report.target).strip(), package)
        for finding in report.findings
    )
    return Checked(report.target, report.results, violations, **named)
