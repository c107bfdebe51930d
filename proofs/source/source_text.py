"""Proofs of a release's source in words, and as files and other tools are told of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from proofs.describe.cases import describe_case
from proofs.describe.words import describe_part
from proofs.results.outcome import Checked, Outcome, Proof
from proofs.results.violation import of_function
from proofs.search.functions.parts import WITHOUT
from proofs.smt.proving import print_line
from proofs.source.ask.piece import RULE
from proofs.source.check import SourceReport, SourceResult
from proofs.symbolic.exploration import Counts
from spec.verdict import Verdict

_QUESTIONS = {
    "reference_may_go": "a reference goes iff",
    "miss_tolerated_v1": "a missing feature that is read is skipped iff",
    "miss_tolerated_v2": "a missing feature that is read is skipped iff",
    "selected_by_window_search": "a feature is selected iff",
    "scheduled_inputs": "encoder inputs are scheduled so that",
}


def print_source_report(report: SourceReport, console: Console) -> None:
    """Print the release's exact rules, one line per claim and part, and the counterexamples."""

    def line(text: str, style: str | None = None) -> None:
        print_line(console, text.rstrip(), style)

    line(
        f"{report.release}: its source on symbolic integers, unbounded, up to "
        f"{report.max_features} features, every initial book, whole runs of up to "
        f"{report.num_passes} passes"
    )
    rules = [result for result in report.results if result.is_rule]
    if rules:
        line("\nexact rules")
    for result in rules:
        name = result.claim.removeprefix(RULE)
        formula, _, instance = result.detail.partition("; ")
        if formula:
            line(f"  {describe_part(result.part):9} {_QUESTIONS[name]} {formula}")
        equal = "equals" if result.verdict is Verdict.PROVED else "is not"
        remark = f" ({instance})" if instance else ""
        line(f"  {'':9} {equal} spec rule {name}{remark}: {_answers(result)}", _style(result))
    line("\nclaims")
    for result in (r for r in report.results if not r.is_rule):
        line(f"  {_columns(result)}", _style(result))
        if result.finding is None and result.detail:
            line(f"      {result.detail}", _style(result))
    for part, reason in report.unavailable.items():
        line(f"  {'':28} {describe_part(part):26} NOT AVAILABLE  {reason}")
    findings = [result for result in report.results if result.finding is not None]
    if findings:
        line("\nsmallest counterexamples, replayed on plain integers")
    for result in findings:
        assert result.finding is not None
        broken = WITHOUT.get(result.part)  # type: ignore[call-overload]
        without = f" (without {broken})" if broken else ""
        part = describe_part(result.part)
        line(f"  {result.claim}{without} by {part} [{result.finding.fingerprint}]", "red")
        line(f"      {describe_case(result.finding.case)}")
        line(f"      observed: {result.finding.observed}")
        line(f"      expected: {result.finding.expected}")
    total = _total(report)
    line(
        f"\n{len(report.results)} questions: "
        + ", ".join(
            f"{sum(r.verdict is verdict for r in report.results)} {verdict.name}"
            for verdict in Verdict
            if any(r.verdict is verdict for r in report.results)
        )
        + f"; {total.paths} paths, {total.queries} queries, {total.unfinished} unfinished"
    )


def _answers(result: SourceResult) -> str:
    return f"{result.verdict.name} z3:{result.z3} cvc5:{result.cvc5}"


def _columns(result: SourceResult) -> str:
    return (
        f"{result.claim:28} {describe_part(result.part):26} {result.verdict.name:8} "
        f"z3:{result.z3:7} cvc5:{result.cvc5:7} {result.shapes:4} shapes "
        f"{result.counts.paths:6} paths {result.counts.queries:6} queries"
    )


def _style(result: SourceResult) -> str | None:
    return None if result.verdict is Verdict.PROVED else "red"


def _total(report: SourceReport) -> Counts:
    """Work done, each exploration once although several claims share it."""
    total = Counts()
    seen: set[str] = set()
    for result in report.results:
        if result.part not in seen:
            seen.add(result.part)
            most = max(
                (r.counts for r in report.results if r.part == result.part),
                key=lambda counts: counts.paths,
            )
            total.add(most)
    return total


def checked_source(report: SourceReport, package: Path | None = None, **named: Any) -> Checked:
    """The claims on a source, as files and other tools are told of them.

    Args:
        package: the folder ``vllm`` that was proved.
        named: release, source and digest of the vLLM.
    """
    violations = tuple(
        of_function(result.finding, result.part, package)
        for result in report.results
        if result.finding is not None
    )
    outcomes = [_outcome(result) for result in report.results]
    outcomes += [
        Outcome("every claim", part, None, reason=reason)
        for part, reason in report.unavailable.items()
    ]
    return Checked(report.release, tuple(outcomes), violations, **named)


def _outcome(result: SourceResult) -> Outcome:
    return Outcome(
        result.claim,
        result.part,
        result.verdict,
        fingerprints=() if result.finding is None else (result.finding.fingerprint,),
        reason=result.detail or None,
        assumptions=result.assumptions,
        proof=Proof(
            "source",
            {"z3": result.z3, "cvc5": result.cvc5},
            result.resources,
            round(result.milliseconds, 1),
            shapes=result.shapes,
            paths=result.counts.paths,
            queries=result.counts.queries,
            unfinished=result.counts.unfinished,
        ),
    )
