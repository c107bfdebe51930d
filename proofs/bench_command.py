"""``residency bench``: how fast the reference is."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import torch
from rich import box
from rich.console import Console
from rich.table import Table

from impl.target import RUNNERS
from impl.tensors import TensorSettings
from proofs.loop.benchmark import Measurement, benchmark_scenario, measure
from spec.errors import InputError
from spec.trace import require_writable, write_atomically
from spec.verdict import INTERRUPTED_EXIT_CODE, USAGE_EXIT_CODE

JSON_SCHEMA_VERSION = 1


@click.group("bench")
def bench() -> None:
    """Measure how fast the reference is. Nothing passes or fails here."""


@bench.command("loop")
@click.option(
    "--requests",
    "num_requests",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Requests of the fixed scenario.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=2.0,
    show_default=True,
    help="Time for each row; three repetitions are made all the same.",
)
@click.option(
    "--runner",
    type=click.Choice(["V1", "V2", "both"], case_sensitive=False),
    default="both",
    show_default=True,
    help="Which runner gathers.",
)
@click.option(
    "--device", default="cpu", show_default=True, help="cpu or cuda; none leaves tensors out."
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the results to this file.",
)
def loop(
    *, num_requests: int, seconds: float, runner: str, device: str, json_file: Path | None
) -> None:
    """Passes per second of the closed loop on a fixed scenario, on one core.

    A pass counts with its worker step and its update. Passes/s is the median over several runs of
    the scenario in this process, after one that is not counted.

    Exits 0 when everything was measured, 2 for wrong input and 130 after Ctrl-C.
    """
    try:
        if json_file is not None:
            require_writable(json_file)
        tensors = None if device == "none" else TensorSettings(device=device)
        if tensors is not None:
            tensors.require_device()
        torch.set_num_threads(1)
        runners = [name for name in RUNNERS if runner in (name, "both")]
        scenario = benchmark_scenario(num_requests)
        measured = [
            measurement
            for name in runners
            for measurement in measure(scenario, name, tensors, seconds)
        ]
        machine = _machine(tensors)
        Console(highlight=False).print(_table(measured, num_requests, machine))
        if json_file is not None:
            write_atomically(json_file, _to_json(measured, num_requests, machine))
    except InputError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(USAGE_EXIT_CODE)
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        sys.exit(INTERRUPTED_EXIT_CODE)


def _machine(tensors: TensorSettings | None) -> dict[str, str]:
    """What it ran on."""
    machine = {
        "platform": platform.platform(),
        "processor": _processor(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    if tensors is not None and torch.device(tensors.device).type == "cuda":
        machine["device"] = torch.cuda.get_device_name(tensors.device)
    elif tensors is not None:
        machine["device"] = tensors.device
    return machine


def _processor() -> str:
    """The processor's name, which Linux keeps where :mod:`platform` does not look."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _table(measured: Sequence[Measurement], num_requests: int, machine: dict[str, str]) -> Table:
    table = Table(
        title=f"closed loop of the reference, {num_requests} requests",
        caption=", ".join(f"{name} {value}" for name, value in machine.items()),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE,
    )
    table.add_column("mode", no_wrap=True)
    table.add_column("runner")
    for head in ("passes/s", "fastest", "passes", "runs"):
        table.add_column(head, justify="right")
    for one in measured:
        table.add_row(
            one.mode,
            one.runner,
            f"{one.passes_per_second:,.0f}",
            f"{one.fastest:,.0f}",
            str(one.passes),
            str(len(one.seconds)),
        )
    return table


def _to_json(measured: Sequence[Measurement], num_requests: int, machine: dict[str, str]) -> str:
    results: list[dict[str, Any]] = [
        {
            "mode": one.mode,
            "runner": one.runner,
            "passes_per_second": round(one.passes_per_second, 1),
            "fastest": round(one.fastest, 1),
            "passes": one.passes,
            "seconds": [round(seconds, 6) for seconds in one.seconds],
        }
        for one in measured
    ]
    document = {
        "schema": JSON_SCHEMA_VERSION,
        "requests": num_requests,
        "machine": machine,
        "results": results,
    }
    return json.dumps(document, indent=2) + "\n"
