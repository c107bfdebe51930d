"""Run obligations one by one and tell what became of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from proofs.describe.visible import harmless_lines
from proofs.smt.obligation import Obligation, Result, prove
from proofs.smt.outputs import describe
from proofs.smt.solvers import RESOURCE_LIMIT
from spec.verdict import Verdict


def run_obligations(
    obligations: Sequence[Obligation],
    console: Console,
    resource_limit: int = RESOURCE_LIMIT,
) -> Iterator[Result]:
    """Prove one obligation after the other, with a progress bar on a terminal only."""
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with progress:
        task = progress.add_task("", total=len(obligations))
        for obligation in obligations:
            progress.update(task, description=obligation.name)
            result = prove(obligation, resource_limit)
            progress.advance(task)
            yield result


def line_of(result: Result) -> str:
    """One obligation as one line of fixed columns."""
    solvers = " ".join(f"{name}:{answer}" for name, answer in result.answers.items())
    return (
        f"{result.obligation.claim:28} {result.obligation.name:45} {result.verdict.value:8} "
        f"{solvers:22} {result.resources['z3']:7} rlimit {result.milliseconds:7.1f} ms"
    )


def print_result(result: Result, console: Console, show_ablations: bool = False) -> None:
    """Print an obligation's line, why it is not proved, and on request its ablations."""
    bad = result.verdict is not Verdict.PROVED
    print_line(console, line_of(result), "red" if bad else None)
    if bad:
        print_line(console, f"    {result.detail}", "red")
        if result.model is not None:
            print_line(console, f"    {describe(result.model)}", "red")
    if show_ablations:
        for ablation in result.ablations:
            model = describe(ablation.model) if ablation.model is not None else ablation.detail
            print_line(console, f"    without {ablation.name}: {ablation.verdict.value} {model}")


def print_summary(results: Sequence[Result], selected: int, console: Console) -> None:
    """Print the counts."""
    counts = ", ".join(
        f"{sum(result.verdict is verdict for result in results)} {verdict.value}"
        for verdict in Verdict
        if any(result.verdict is verdict for result in results)
    )
    ablations = [ablation for result in results for ablation in result.ablations]
    refuted = sum(ablation.verdict is Verdict.REFUTED for ablation in ablations)
    of = "" if len(results) == selected else f" of {selected}"
    print_line(
        console,
        f"{len(results)}{of} obligations: {counts or 'none done'}; {refuted} of {len(ablations)} "
        "ablations REFUTED",
    )


def print_line(console: Console, line: str, style: str | None = None) -> None:
    """Print a line as it is, at whatever width."""
    console.print(harmless_lines(line), style=style, markup=False, highlight=False, soft_wrap=True)
