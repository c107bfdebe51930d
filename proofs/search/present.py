"""How the results of a check are shown: as a table, as fixed columns, and as JSON."""

from __future__ import annotations

from typing import Any

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from proofs.search.describe import describe_case
from proofs.search.results import CheckReport, Result
from spec.findings import Finding
from spec.trace import finding_to_json
from spec.verdict import Verdict

NOT_AVAILABLE = "NOT AVAILABLE"

_STYLES = {
    Verdict.HELD: "green",
    Verdict.REFUTED: "bold red",
    Verdict.VACUOUS: "yellow",
    Verdict.UNKNOWN: "yellow",
    Verdict.ERROR: "bold red",
}


def print_report(report: CheckReport) -> None:
    """Print the table, and one paragraph for each violation with its smallest case."""
    console = Console(highlight=False, soft_wrap=True)
    title = (
        f"{report.target}: {report.settings.examples} cases a family, seed {report.settings.seed}"
    )
    if console.is_terminal:
        console.print(_rich_table(report, title))
    else:
        click.echo(title)
        for result in report.results:
            click.echo(_plain_line(result))
    for finding in report.findings:
        print_finding(finding)
    if not any(result.cases for result in report.results):
        click.echo("\nNothing was run.")
    if report.interrupted:
        click.echo("\nInterrupted: the results above are incomplete.")


def print_finding(finding: Finding) -> None:
    """Print a violation: its smallest case, what was seen and what the claim asks for."""
    click.echo(f"\nVIOLATED {finding.claim} by {finding.target} [{finding.fingerprint}]")
    click.echo(f"  {finding.mechanism}: {describe_case(finding.case)}")
    click.echo(f"  observed: {finding.observed}")
    click.echo(f"  expected: {finding.expected}")


def _verdict_name(result: Result) -> str:
    return NOT_AVAILABLE if result.verdict is None else result.verdict.name


def _part_name(result: Result) -> str:
    return result.part if result.without is None else f"{result.part} (without {result.without})"


def _remark(result: Result) -> str:
    return result.reason or " ".join(result.fingerprints)


def _plain_line(result: Result) -> str:
    return (
        f"{result.claim:<28} {_part_name(result):<53} {_verdict_name(result):<13} "
        f"{result.cases:>6} cases {result.premises:>6} premises  {_remark(result)}"
    ).rstrip()


def _rich_table(report: CheckReport, title: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE)
    table.add_column("claim", no_wrap=True)
    table.add_column("runner or part", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("cases", justify="right", no_wrap=True)
    table.add_column("premise", justify="right", no_wrap=True)
    has_reasons = any(result.reason is not None for result in report.results)
    if has_reasons:
        table.add_column("reason", overflow="fold")
    for result in report.results:
        style = "dim" if result.verdict is None else _STYLES[result.verdict]
        verdict = f"[{style}]{_verdict_name(result)}[/]"
        numbers = str(result.cases), str(result.premises)
        reason = (escape(result.reason or ""),) if has_reasons else ()
        table.add_row(result.claim, _part_name(result), verdict, *numbers, *reason)
    return table


def report_to_json(report: CheckReport) -> dict[str, Any]:
    """The report as JSON data, schema version 1."""
    return {
        "schema": 1,
        "target": report.target,
        "level": "function",
        "seed": report.settings.seed,
        "examples": report.settings.examples,
        "interrupted": report.interrupted,
        "results": [_result_as_json(result) for result in report.results],
        "findings": [finding_to_json(finding) for finding in report.findings],
    }


def _result_as_json(result: Result) -> dict[str, Any]:
    data: dict[str, Any] = {
        "claim": result.claim,
        "part": result.part,
        "verdict": _verdict_name(result),
        "cases": result.cases,
        "premises": result.premises,
        "fingerprints": list(result.fingerprints),
    }
    if result.without is not None:
        data["without"] = result.without
    if result.reason is not None:
        data["reason"] = result.reason
    return data
