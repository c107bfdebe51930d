"""The command line of a group of obligations: each group's module is a script of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from proofs.jobs.ending import PlainCommand
from proofs.results.document import results_of
from proofs.results.publish import MachineFiles, publish
from proofs.smt.obligation import Obligation, Result
from proofs.smt.outputs import checked_rules, write_smt2
from proofs.smt.proving import print_result, print_summary, run_obligations
from proofs.smt.solvers import RESOURCE_LIMIT, require_solvers
from spec.verdict import INTERRUPTED_EXIT_CODE, exit_code

Command = TypeVar("Command", bound=Callable[..., Any])

HELP = {"help_option_names": ["-h", "--help"]}


def prove_options(command: Command) -> Command:
    """Add the options of :func:`prove_and_write` to a click command."""
    file = click.Path(dir_okay=False, path_type=Path)
    folder = click.Path(file_okay=False, path_type=Path)
    for option in reversed(
        (
            click.option("--json", "json_file", type=file, help="Write the results as JSON."),
            click.option("--junit", "junit_file", type=file, help="Write a JUnit file."),
            click.option(
                "--smt2", "smt2_folder", type=folder, help="Write SMT-LIB files to this folder."
            ),
            click.option(
                "--ablations",
                "show_ablations",
                is_flag=True,
                help="Print each ablation with its smallest counterexample.",
            ),
            click.option(
                "--rlimit",
                "resource_limit",
                type=click.IntRange(min=1),
                default=RESOURCE_LIMIT,
                show_default=True,
                help="Resource units for each question to a solver.",
            ),
        )
    ):
        command = option(command)
    return command


def prove_and_write(
    obligations: Sequence[Obligation],
    *,
    json_file: Path | None = None,
    junit_file: Path | None = None,
    smt2_folder: Path | None = None,
    show_ablations: bool = False,
    resource_limit: int = RESOURCE_LIMIT,
    conclude: Callable[[Sequence[Result], Console], None] = lambda results, console: None,
) -> int:
    """Prove obligations, print them, write the files asked for.

    An interrupt prints and writes what was done.

    Args:
        obligations: what to prove, in this order.
        smt2_folder: where each question goes as SMT-LIB.
        show_ablations: whether each ablation is printed with its counterexample.
        resource_limit: resource units for each question to a solver.
        conclude: prints what follows from the results, after the counts.

    Returns:
        The exit code: that of the worst verdict, 5 if there was nothing to do, 130 if interrupted.

    Raises:
        InputError: a missing solver, or a file that cannot be written.
    """
    require_solvers()
    files = MachineFiles(json_file, junit_file)
    files.require_writable(smt2_folder)
    console = Console()
    results = []
    interrupted = False
    try:
        for result in run_obligations(obligations, console, resource_limit):
            results.append(result)
            print_result(result, console, show_ablations)
    except KeyboardInterrupt:
        interrupted = True
        console.print("Interrupted.")
    print_summary(results, len(obligations), console)
    conclude(results, console)
    code = INTERRUPTED_EXIT_CODE if interrupted else exit_code(r.verdict for r in results)
    settings = {"obligations": len(obligations), "rlimit": resource_limit}
    found = results_of("prove-rules", [checked_rules(results)], settings=settings, code=code)
    publish("the rules, for all integers", found, files)
    if smt2_folder is not None:
        write_smt2(smt2_folder, obligations)
    return code


def main_of_group(group: str, obligations: Sequence[Obligation]) -> None:
    """Prove one group; the entry point of the group's module as a script."""

    @click.command(
        cls=PlainCommand,
        context_settings=HELP,
        help=f"Prove the obligations of the group {group}.",
    )
    @prove_options
    def command(**options: Any) -> int:
        return prove_and_write(obligations, **options)

    command()
