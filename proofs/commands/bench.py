"""``residency bench``: how fast the loop is, and what it holds on to."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click
import torch
from rich import box
from rich.console import Console
from rich.table import Table

from impl.target import RUNNERS
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from impl.vllm.runs.target import VllmLoop
from proofs.commands.options import json_option, runner_option, source_option
from proofs.drive.benchmark import PLAIN, Measurement, Target, benchmark_scenario, measure
from proofs.drive.memory import Held, held_after
from proofs.jobs.ending import PlainGroup
from proofs.run.targets import TargetChoice
from spec.functions.case_files import require_writable, write_atomically

JSON_SCHEMA_VERSION = 2


@click.group("bench", cls=PlainGroup)
def bench() -> None:
    """Measure how fast the loop is. Nothing passes or fails here."""


@bench.command("loop")
@click.option(
    "--target",
    "target_name",
    type=click.Choice(["reference", "vllm"]),
    default="reference",
    show_default=True,
    help="Our reference implementation, or a real vLLM.",
)
@click.option("--release", help="Release of vLLM, such as 0.33.0; fetched when it is not cached.")
@source_option
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
    help="Time for all rows of a runner; three repetitions are made all the same.",
)
@runner_option
@click.option(
    "--device", default="cpu", show_default=True, help="cpu or cuda; none leaves tensors out."
)
@click.option(
    "--memory",
    "num_examples",
    type=click.IntRange(min=1),
    help="Also run this many drawn scenarios with the monitor, then as many again, then twice as "
    "many, and show what the process holds after each.",
)
@json_option
def loop(
    *,
    target_name: Literal["reference", "vllm"],
    release: str | None,
    source: Path | None,
    num_requests: int,
    seconds: float,
    runner: str,
    device: str,
    num_examples: int | None,
    json_file: Path | None,
) -> None:
    """Passes and steps per second of the closed loop on a fixed scenario, on one core.

    A pass counts with its worker step and its update; a step is an event, a pass or an update of
    the trace. The modes run by turns; each number is the median over the runs of its mode in this
    process, after one that is not counted; imports are not counted. Both rates are per second of
    processor time, as is the ratio to the loop without a recorder; "by clock" are passes per second
    of real time.

    Exits 0 when everything was measured, 2 for wrong input and 130 after Ctrl-C.
    """
    if json_file is not None:
        require_writable(json_file)
    tensors = None if device == "none" else TensorSettings(device=device)
    if tensors is not None:
        tensors.require_device()
    choice = TargetChoice(target_name, release, source)
    choice.refuse_contradictions()
    named = choice.vllm()
    target: Target = ReferenceLoop() if named is None else VllmLoop(named.source)
    torch.set_num_threads(1)
    runners = [name for name in RUNNERS if runner in (name, "both")]
    scenario = benchmark_scenario(num_requests)
    measured = [
        measurement
        for name in runners
        for measurement in measure(target, scenario, name, tensors, seconds)
    ]
    machine = _machine(tensors)
    console = Console(highlight=False)
    console.print(_table(measured, f"{target.name}, {num_requests} requests", machine))
    held: list[Held] = []
    if num_examples is not None:
        held += held_after(target, [num_examples, 2 * num_examples, 4 * num_examples])
        console.print(_memory_table(held))
    if json_file is not None:
        document = {
            "schema": JSON_SCHEMA_VERSION,
            "target": target.name,
            "requests": num_requests,
            "machine": machine,
            "results": _to_json(measured),
            "memory": [asdict(one) for one in held],
        }
        write_atomically(json_file, json.dumps(document, indent=2) + "\n")


def _machine(tensors: TensorSettings | None) -> dict[str, str]:
    """What it ran on."""
    machine = {
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
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


def _table(measured: Sequence[Measurement], what: str, machine: dict[str, str]) -> Table:
    table = Table(
        title=f"closed loop of {what}",
        caption=", ".join(f"{name} {value}" for name, value in machine.items()),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE,
    )
    table.add_column("mode", no_wrap=True)
    table.add_column("runner")
    for head in ("passes/s", "steps/s", "ratio", "by clock", "runs"):
        table.add_column(head, justify="right", no_wrap=True)
    for one, ratio in _with_ratios(measured):
        table.add_row(
            one.mode,
            one.runner,
            f"{one.passes / one.cpu:,.0f}",
            f"{one.steps / one.cpu:,.0f}",
            f"{ratio:.2f}",
            f"{one.passes / one.wall:,.0f}",
            str(len(one.cpu_seconds)),
        )
    return table


def _with_ratios(measured: Sequence[Measurement]) -> list[tuple[Measurement, float]]:
    """Each measurement with its processor time in that of the plain loop on its runner."""
    plain = {one.runner: one for one in measured if one.mode == PLAIN}
    return [(one, one.times(plain[one.runner])) for one in measured]


def _memory_table(held: Sequence[Held]) -> Table:
    table = Table(title="what the process holds", title_justify="left", box=box.SIMPLE)
    table.add_column("after scenarios", no_wrap=True)
    for one in held:
        table.add_column(f"{one.num_scenarios:,}", justify="right")
    table.add_row("resident MiB", *(f"{one.resident_bytes / 2**20:,.1f}" for one in held))
    for name in held[0].objects:
        table.add_row(f"live {name}", *(f"{one.objects[name]:,}" for one in held))
    table.add_row("live objects", *(f"{one.num_objects:,}" for one in held))
    return table


def _to_json(measured: Sequence[Measurement]) -> list[dict[str, Any]]:
    return [
        {
            "mode": one.mode,
            "runner": one.runner,
            "passes": one.passes,
            "steps": one.steps,
            "passes_per_second": round(one.passes / one.cpu, 1),
            "steps_per_second": round(one.steps / one.cpu, 1),
            "passes_per_second_by_the_clock": round(one.passes / one.wall, 1),
            "ratio": round(ratio, 3),
            "cpu_seconds": [round(seconds, 6) for seconds in one.cpu_seconds],
            "wall_seconds": [round(seconds, 6) for seconds in one.wall_seconds],
        }
        for one, ratio in _with_ratios(measured)
    ]
