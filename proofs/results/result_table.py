"""Results on a terminal: a table, or fixed columns where it is none, and their sums in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table

from proofs.describe.tables import name, number, terminal_table, words
from proofs.describe.visible import print_lines, table_text
from proofs.describe.words import counted, describe_part
from proofs.results.outcome import NOT_AVAILABLE, Outcome
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
        console.print(result_table(results, title, part, numbers))
        return
    print_lines(title)
    print_lines(_plain_columns("claim", part, "verdict", *numbers, _remarks_head(results)))
    for result in results:
        print_lines(_plain_line(result))


def _part_name(result: Outcome) -> str:
    return with_assumption(describe_part(result.part), result.without)


def with_assumption(text: str, without: str | None) -> str:
    """The text, with the assumption that a case breaks on purpose, if any."""
    return text if without is None else f"{text} (without {without})"


def summary(results: Sequence[Outcome], num_faults: int) -> str:
    """How many questions there were and what became of them."""
    counts = Counter(result.verdict_name for result in results)
    names = [*(verdict.name for verdict in Verdict), NOT_AVAILABLE]
    answers = []
    for verdict in (verdict for verdict in names if counts[verdict]):
        answer = f"{counts[verdict]} {verdict}"
        if verdict == Verdict.REFUTED.name:
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


def result_table(
    results: Sequence[Outcome],
    title: str,
    part: str = "part",
    numbers: tuple[str, str] = _NUMBERS,
) -> Table:
    """The results as a table for a terminal; arguments are those of :func:`print_results`."""
    cases, premises = numbers
    table = terminal_table(
        name("claim"),
        words(part),
        name("verdict"),
        number(cases),
        Column(premises, justify="right", max_width=len("premise")),
        Column(_remarks_head(results), overflow="fold", min_width=_FINGERPRINT_WIDTH),
        title=title,
    )
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
