"""The command that proves the rules; ``python -m proofs`` and ``residency prove`` share it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from rich.console import Console

from proofs.jobs.ending import PlainCommand
from proofs.smt.main import HELP, prove_and_write
from proofs.smt.main import prove_options as output_options
from proofs.smt.obligation import Result
from proofs.smt.proving import print_line
from proofs.theorems.answers import answers
from proofs.theorems.groups import select

Command = TypeVar("Command", bound=Callable[..., Any])


def prove_options(command: Command) -> Command:
    """Add the options that :func:`run` takes to a click command."""
    command = output_options(command)
    for name, field, what in (("--claim", "claims", "claim"), ("--group", "groups", "group")):
        option = click.option(name, field, multiple=True, help=f"Only this {what} (repeatable).")
        command = option(command)
    return command


def run(groups: tuple[str, ...] = (), claims: tuple[str, ...] = (), **options: Any) -> int:
    """Prove the selected obligations, print them and what they answer, write the files asked for.

    Args:
        groups: names of groups; none means all.
        claims: ids of claims that the obligations support; none means all.
        options: as of :func:`proofs.smt.main.prove_and_write`.

    Returns:
        The exit code: that of the worst verdict, 5 if there was nothing to do, 130 if interrupted.

    Raises:
        InputError: an unknown group or claim, a missing solver, or a file that cannot be written.
    """
    return prove_and_write(select(groups, claims), conclude=print_answers, **options)


def print_answers(results: Sequence[Result], console: Console) -> None:
    """Print what the theorems of this run answer."""
    for line in answers({result.obligation.name: result.verdict for result in results}):
        print_line(console, line)


@click.command(cls=PlainCommand, context_settings=HELP)
@prove_options
def prove(**options: Any) -> int:
    """Prove the rules of spec/ for all integers, with z3 and again with cvc5.

    Exits 0 when all are proved, 1 when one is refuted, 3 for unknown, 4 for vacuous, 5 for errors
    or when nothing was done, 2 for wrong input and 130 after Ctrl-C.
    """
    return run(**options)
