"""Options that several commands share, so that each means the same wherever it stands."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import click

from impl.target import RUNNERS, Runner
from impl.tensors import TensorSettings
from proofs.commands.files import Decorator, with_options
from proofs.run.record import MAX_PASSES
from proofs.run.targets import NamedTargets, TargetName
from spec.errors import InputError

_TARGETS = {
    "reference": "our reference implementation",
    "vllm": "a real vLLM",
    "recorded": "nothing: a trace is judged as it was recorded",
}


def target_options(
    *names: TargetName, default: TargetName | None = "reference", note: str = ""
) -> Decorator:
    """Add the options that name targets; the command gets one ``targets``, a ``NamedTargets``.

    Args:
        names: what may be given as ``--target``; all when not given.
        default: the target when ``--target`` is not given; ``None`` lets the command choose.
        note: what else the help of ``--target`` says.
    """
    allowed = names or get_args(TargetName)
    what = ", ".join(f"{name}: {_TARGETS[name].removeprefix('nothing: ')}" for name in allowed)
    options = (
        click.option(
            "--target",
            "target_name",
            type=click.Choice(allowed),
            default=default,
            show_default=default is not None,
            help=f"What to run ({what}).{note}",
        ),
        click.option(
            "--release",
            "releases",
            multiple=True,
            help="Release of vLLM, such as 0.33.0; fetched when it is not cached. May be repeated "
            "where a command takes several.",
        ),
        click.option(
            "--source",
            "sources",
            multiple=True,
            type=click.Path(path_type=Path),
            help="Folder of a vLLM checkout or of an installed vLLM, instead of --release. Its "
            "code runs with your rights.",
        ),
        click.option(
            "--scheduler-class",
            metavar="PACKAGE.MODULE:CLASS",
            help="Scheduler to run in place of vLLM's own, of a fork for instance.",
        ),
        click.option(
            "--fault",
            "faults",
            multiple=True,
            help="Break the reference with this named fault; may be repeated. An unknown name "
            "lists them all.",
        ),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def packed(
            *,
            target_name: TargetName | None,
            releases: tuple[str, ...],
            sources: tuple[Path, ...],
            scheduler_class: str | None,
            faults: tuple[str, ...],
            **others: Any,
        ) -> Any:
            targets = NamedTargets(target_name, releases, sources, scheduler_class, faults)
            return command(targets=targets, **others)

        return with_options(packed, options)

    return decorate


runner_option: Decorator = click.option(
    "--runner",
    type=click.Choice([*RUNNERS, "both"], case_sensitive=False),
    default="both",
    show_default=True,
    help="vLLM's model runner to imitate, or both.",
)
replayed_runner_option: Decorator = click.option(
    "--runner",
    type=click.Choice([*RUNNERS, "both"], case_sensitive=False),
    help="vLLM's model runner to imitate, or both. When not given: both; for a trace, the one that "
    "it was recorded with.",
)
device_option: Decorator = click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="cpu or cuda; none runs whole scenarios without tensors.",
)
max_passes_option: Decorator = click.option(
    "--max-passes",
    type=click.IntRange(min=1),
    default=MAX_PASSES,
    show_default=True,
    help="Passes after which a run is given up.",
)
claims_option: Decorator = click.option(
    "--claims", help="Ids of claims, separated by commas; all when not given."
)


def chosen_runners(runner: str) -> tuple[Runner, ...]:
    """The runners that ``--runner`` names."""
    return tuple(name for name in RUNNERS if runner in (name, "both"))


def tensors_on(device: str) -> TensorSettings | None:
    """The tensors that ``--device`` asks for; ``None`` for none.

    Raises:
        InputError: there is no such device here.
    """
    if device == "none":
        return None
    settings = TensorSettings(device=device)
    settings.require_device()
    return settings


def claim_ids(claims: str | None) -> tuple[str, ...] | None:
    """The ids that ``--claims`` names, each once; ``None`` where it was not given.

    Raises:
        InputError: it is empty.
    """
    if claims is None:
        return None
    names = tuple(dict.fromkeys(name.strip() for name in claims.split(",") if name.strip()))
    if not names:
        raise InputError("--claims is empty; give ids separated by commas")
    return names
