"""``residency bench``: how fast the loop is, and what it holds on to."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from impl.late import torch
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from impl.vllm.remote.messages import Tensors
from proofs.commands.files import file_options
from proofs.commands.options import (
    chosen_runners,
    device_option,
    runner_option,
    target_options,
    tensors_on,
)
from proofs.describe.tables import add_row, name, number, terminal_table, words
from proofs.drive.bench_process import Wanted, measure_vllm, measured_of
from proofs.drive.benchmark import PLAIN, Measurement
from proofs.drive.memory import Held
from proofs.jobs.ending import PlainGroup
from proofs.results.document import dumps, results_of
from proofs.results.publish import MachineFiles
from proofs.run.targets import NamedTargets
from spec.functions.case_files import write_atomically


@click.group("bench", cls=PlainGroup)
def bench() -> None:
    """Measure how fast the loop is. Nothing passes or fails here."""


@bench.command("loop")
@target_options("reference", "vllm")
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
@device_option
@click.option(
    "--memory",
    "num_examples",
    type=click.IntRange(min=1),
    help="Also run this many drawn scenarios with the monitor, then as many again, then twice as "
    "many, and show what the process holds after each.",
)
@file_options("json")
def loop(
    *,
    targets: NamedTargets,
    num_requests: int,
    seconds: float,
    runner: str,
    device: str,
    num_examples: int | None,
    files: MachineFiles,
) -> int:
    """Passes and steps per second of the closed loop on a fixed scenario, on one core.

    A pass counts with its worker step and its update; a step is an event, a pass or an update of
    the trace. The modes run by turns; each number is the median over the runs of its mode in this
    process, after one that is not counted; imports are not counted. Both rates are per second of
    processor time, as is the ratio to the loop without a recorder; "by clock" are passes per second
    of real time.

    Exits 0 when everything was measured, 2 for wrong input and 130 after Ctrl-C.
    """
    files.require_writable()
    tensors = tensors_on(device)
    choice = targets.single()
    named = choice.vllm()
    counts = () if num_examples is None else tuple(times * num_examples for times in (1, 2, 4))
    runners = chosen_runners(runner)
    wanted = Wanted(num_requests, runners, Tensors.of(tensors), seconds, counts)
    if named is None:
        target = ReferenceLoop(choice.faults)
        name_of_target = target.name
        measured = measured_of(target, wanted)
    else:
        name_of_target = named.source.name
        measured = measure_vllm(named, wanted)
    machine = _machine(tensors)
    console = Console(highlight=False)
    what = f"{name_of_target}, {num_requests} requests"
    console.print(_table(measured.loops, what, machine))
    if measured.held:
        console.print(_memory_table(measured.held))
    if files.json is not None:
        results = results_of(
            "bench",
            [],
            settings={"target": name_of_target, "requests": num_requests},
            details={
                "machine": machine,
                "measured": _to_json(measured.loops),
                "memory": [asdict(moment) for moment in measured.held],
            },
            code=0,
        )
        write_atomically(files.json, dumps(results))
    return 0


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
    table = terminal_table(
        name("mode"),
        words("runner"),
        *map(number, ("passes/s", "steps/s", "ratio", "by clock", "runs")),
        title=f"closed loop of {what}",
        caption=", ".join(f"{part} {value}" for part, value in machine.items()),
    )
    for loop, ratio in _with_ratios(measured):
        add_row(
            table,
            loop.mode,
            loop.runner,
            f"{loop.passes / loop.cpu:,.0f}",
            f"{loop.steps / loop.cpu:,.0f}",
            f"{ratio:.2f}",
            f"{loop.passes / loop.wall:,.0f}",
            str(len(loop.cpu_seconds)),
        )
    return table


def _with_ratios(measured: Sequence[Measurement]) -> list[tuple[Measurement, float]]:
    """Each measurement with its processor time in that of the plain loop on its runner."""
    plain = {loop.runner: loop for loop in measured if loop.mode == PLAIN}
    return [(loop, loop.times(plain[loop.runner])) for loop in measured]


def _memory_table(held: Sequence[Held]) -> Table:
    moments = [number(f"{moment.num_scenarios:,}") for moment in held]
    table = terminal_table(name("after scenarios"), *moments, title="what the process holds")
    add_row(table, "resident MiB", *(f"{moment.resident_bytes / 2**20:,.1f}" for moment in held))
    for kind in held[0].objects:
        add_row(table, f"live {kind}", *(f"{moment.objects[kind]:,}" for moment in held))
    add_row(table, "live objects", *(f"{moment.num_objects:,}" for moment in held))
    return table


def _to_json(measured: Sequence[Measurement]) -> list[dict[str, Any]]:
    return [
        {
            "mode": loop.mode,
            "runner": loop.runner,
            "passes": loop.passes,
            "steps": loop.steps,
            "passes_per_second": round(loop.passes / loop.cpu, 1),
            "steps_per_second": round(loop.steps / loop.cpu, 1),
            "passes_per_second_by_the_clock": round(loop.passes / loop.wall, 1),
            "ratio": round(ratio, 3),
            "cpu_seconds": [round(seconds, 6) for seconds in loop.cpu_seconds],
            "wall_seconds": [round(seconds, 6) for seconds in loop.wall_seconds],
        }
        for loop, ratio in _with_ratios(measured)
    ]
