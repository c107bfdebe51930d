"""The command that proves the rules; ``python -m proofs`` and ``residency prove`` share it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from proofs.groups import select
from proofs.outputs import to_json, to_junit, write_smt2
from proofs.runner import print_result, print_summary, run_obligations
from proofs.solvers import RESOURCE_LIMIT, require_solvers
from spec.errors import InputError
from spec.trace import require_writable, write_atomically
from spec.verdict import INTERRUPTED_EXIT_CODE, USAGE_EXIT_CODE, exit_code

Command = TypeVar("Command", bound=Callable[..., Any])


def prove_options(command: Command) -> Command:
    """Add the options that :func:`run` takes to a click command."""
    file = click.Path(dir_okay=False, path_type=Path)
    folder = click.Path(file_okay=False, path_type=Path)
    for option in reversed(
        (
            click.option("--group", "groups", multiple=True, help="Only this group (repeatable)."),
            click.option("--claim", "claims", multiple=True, help="Only this claim (repeatable)."),
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


def run(
    groups: tuple[str, ...] = (),
    claims: tuple[str, ...] = (),
    json_file: Path | None = None,
    junit_file: Path | None = None,
    smt2_folder: Path | None = None,
    show_ablations: bool = False,
    resource_limit: int = RESOURCE_LIMIT,
) -> int:
    """Prove the selected obligations, print them, write the files asked for.

    An interrupt prints and writes what was done.

    Returns:
        The exit code: that of the worst verdict, 5 if there was nothing to do, 130 if interrupted.

    Raises:
        InputError: an unknown group or claim, a missing solver, or a file that cannot be written.
    """
    require_solvers()
    for output in (json_file, junit_file, smt2_folder):
        if output is not None:
            require_writable(output)
    console = Console()
    obligations = select(groups, claims)
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
    if json_file is not None:
        write_atomically(json_file, to_json(results))
    if junit_file is not None:
        write_atomically(junit_file, to_junit(results))
    if smt2_folder is not None:
        write_smt2(smt2_folder, obligations)
    if interrupted:
        return INTERRUPTED_EXIT_CODE
    return exit_code(result.verdict for result in results)


def run_or_usage_error(**options: Any) -> int:
    """:func:`run`, with wrong input reported on one line (exit code 2, no traceback)."""
    try:
        return run(**options)
    except InputError as error:
        click.echo(f"Error: {error}", err=True)
        return USAGE_EXIT_CODE


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@prove_options
@click.pass_context
def prove(context: click.Context, /, **options: Any) -> None:
    """Prove the rules of spec/ for all integers, with z3 and again with cvc5.

    Exits 0 when all are proved, 1 when one is refuted, 3 for unknown, 4 for vacuous, 5 for errors
    or when nothing was done, 2 for wrong input and 130 after Ctrl-C.
    """
    context.exit(run_or_usage_error(**options))


def main_of_group(group: str) -> None:
    """Prove one group; the entry point of the group's module as a script.

    Takes the options of :func:`prove`.
    """
    prove.main(prog_name=f"python -m proofs.{group}", default_map={"groups": [group]})
