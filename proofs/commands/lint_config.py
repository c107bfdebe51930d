"""``residency lint-config``: whether an engine's settings let it stand still for ever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import click

from proofs.commands.files import FILE, file_options
from proofs.describe.visible import print_lines
from proofs.dossiers.settings import publish_judgement, require_release
from proofs.results.publish import MachineFiles
from proofs.run.targets import named_vllms
from proofs.settings.flags.arguments import read_config, setup_of
from proofs.settings.flags.command_line import META, Pasted, PastedCommand
from proofs.settings.flags.facts import table
from proofs.settings.flags.known import ARGUMENTS
from proofs.settings.judge import changes, judge
from proofs.settings.stuck.layouts import as_scenario
from proofs.settings.verdict_text import document, lines_of
from spec.errors import InputError
from spec.functions.case_files import write_atomically
from spec.record.document import dumps_scenario
from spec.rules.releases import ReadRules

_Command: TypeAlias = Callable[..., None]


_METAVARS = {"count": "COUNT", "table": "JSON"}


def _arguments(command: _Command) -> _Command:
    """An option for each argument that bears on the verdict."""
    for argument in reversed(ARGUMENTS):
        command = click.option(
            *argument.all_flags,
            argument.name,
            default=None,
            metavar=_METAVARS.get(argument.kind),
            type=click.Choice(argument.choices) if argument.choices else None,
            help=argument.help or None,
            hidden=not argument.help,
        )(command)
    return command


@click.command("lint-config", cls=PastedCommand)
@click.option(
    "--source",
    "source_folder",
    type=click.Path(path_type=Path),
    help="Prove which rules this vLLM checkout follows, instead of taking those of a release.",
)
@_arguments
@click.option(
    "--config",
    "config_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML or JSON file with arguments, as vLLM reads it; those of the command line win.",
)
@click.option(
    "--margin",
    type=click.IntRange(min=0),
    help="Instead of the release's: tokens that a reference is held past its item's end.",
)
@click.option(
    "--cut-shift",
    type=click.IntRange(min=0),
    help="Instead of the release's: tokens that a chunk ends before a refused item.",
)
@click.option(
    "--whole-cut-shift",
    type=click.IntRange(min=0),
    help="Instead of the release's: tokens that "
    "a chunk ends before an item that must not be split.",
)
@click.option(
    "--reserves/--no-reserves",
    default=None,
    help="Instead of the release's: whether the "
    "reservation near the prefill's end may leave a chunk empty.",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="Write the smallest prompt that stalls as a scenario, for `residency replay`.",
)
@file_options(
    report="Run each prompt that stalls on the release's own engine, and write a page on it into "
    "this folder.",
)
def lint_config(
    *,
    source_folder: Path | None,
    config_file: Path | None,
    margin: int | None,
    cut_shift: int | None,
    whole_cut_shift: int | None,
    reserves: bool | None,
    output: Path | None,
    files: MachineFiles,
    **given: Any,
) -> int:
    """Prove whether these settings can stall an engine.

    Takes a `vllm serve` line as it is, and tells which flags it did not look at. Prints the
    smallest prompt that stalls, the theorems that say so and what to change.

    Exits 0 when no prompt stalls, 1 when one does, 2 for wrong input or a missing fact, 3 when the
    theorems do not settle it, 5 when an engine that --report runs does not stop as they say, and
    130 after Ctrl-C.
    """
    files.require_writable(output)
    arguments, others = read_config(config_file) if config_file else ({}, [])
    arguments.update({name: value for name, value in given.items() if value is not None})
    pasted: Pasted = click.get_current_context().meta[META]
    for name, entries in pasted.entries.items():
        arguments[name] = {**(table(arguments, name) or {}), **entries}
    others += pasted.ignored
    rules = {
        "margin": margin,
        "cut_shift": cut_shift,
        "whole_cut_shift": whole_cut_shift,
        "reservation": None if reserves is None else "insisting" if reserves else "yielding",
    }
    chosen = {name: value for name, value in rules.items() if value is not None}
    setup = setup_of(arguments, chosen, _read_rules(source_folder, arguments))
    if files.folder is not None:
        require_release(setup)
    judgement = judge(setup)
    found = changes(setup) if judgement.stops else ()
    for line in lines_of(setup, judgement, found):
        print_lines(line)
    if others:
        print_lines("not looked at: " + ", ".join(others))
    if output is not None and judgement.stops:
        scenario = as_scenario(judgement.stops[0].layout, setup.settings)
        write_atomically(output, dumps_scenario(scenario))
    data = document(setup, judgement, found) | {"not_looked_at": others}
    return publish_judgement(setup, judgement, files, data)


def _read_rules(folder: Path | None, arguments: Mapping[str, Any]) -> ReadRules | None:
    """The rules of a source; ``None`` where none is given.

    Raises:
        InputError: there is no vLLM in the folder, or a release is given besides.
    """
    if folder is None:
        return None
    if arguments.get("release") is not None:
        raise InputError("--release and --source name two vLLMs; give one of them")
    # The symbolic runs take seconds to import.
    from proofs.source.elsewhere import Elsewhere
    from proofs.source.jobs import Scope
    from proofs.source.passes.run_scenario import FEW_PASSES

    (vllm,) = named_vllms((), folder)
    with closing(Elsewhere(vllm.source.package, vllm.source.name, Scope(1, FEW_PASSES))) as code:
        return code.rules()
