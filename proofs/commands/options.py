"""Options that several commands share, so that each means the same wherever it stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click

from proofs.run.record import MAX_PASSES

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

SOURCE_HELP = "Folder of a vLLM checkout or of an installed vLLM, instead of --release."

source_option: Decorator = click.option(
    "--source", type=click.Path(path_type=Path), help=SOURCE_HELP
)
scheduler_class_option: Decorator = click.option(
    "--scheduler-class",
    metavar="PACKAGE.MODULE:CLASS",
    help="Scheduler to run in place of vLLM's own, of a fork for instance.",
)
runner_option: Decorator = click.option(
    "--runner",
    type=click.Choice(["V1", "V2", "both"], case_sensitive=False),
    default="both",
    show_default=True,
    help="Which runner gathers.",
)
replayed_runner_option: Decorator = click.option(
    "--runner",
    type=click.Choice(["V1", "V2", "both"], case_sensitive=False),
    help="Which runner gathers: both, or of a trace the recorded one, when not given.",
)
replayed_device_option: Decorator = click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="cpu or cuda; none runs a scenario without tensors.",
)
max_passes_option: Decorator = click.option(
    "--max-passes",
    type=click.IntRange(min=1),
    default=MAX_PASSES,
    show_default=True,
    help="Passes after which a run is given up.",
)
faults_option: Decorator = click.option(
    "--fault",
    "faults",
    multiple=True,
    help="Break the reference with this named fault; may be repeated.",
)
json_option: Decorator = click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the results to this file.",
)
