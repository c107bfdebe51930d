"""``residency check --level loop``: search whole runs of the reference for violated claims."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click

from impl.target import RUNNERS, Runner
from impl.tensors import TensorSettings
from proofs.search.loop.present import (
    loop_report_to_json,
    print_loop_report,
    write_counterexamples,
)
from proofs.search.loop.results import DEFAULT_EXAMPLES, LoopCheckSettings
from proofs.search.loop.search import run_loop_check
from proofs.terminal import interrupts, progress_bar
from spec.trace import write_atomically
from spec.verdict import INTERRUPTED_EXIT_CODE, exit_code


def loop_check_settings(
    runner: str,
    claims: tuple[str, ...] | None,
    examples: int | None,
    minutes: float | None,
    seed: int,
    device: str,
) -> LoopCheckSettings:
    """The settings that the options ask for.

    Args:
        runner: ``V1``, ``V2`` or ``both``.
        claims: ids of claims; ``None`` for all.
        examples: scenarios to draw; ``None`` for the usual number.
        minutes: how long to draw instead.
        seed: draws the same scenarios again.
        device: ``cpu``, ``cuda``, or ``none`` to run without tensors.

    Raises:
        InputError: nothing could be done with them.
    """
    runners: tuple[Runner, ...] = tuple(r for r in RUNNERS if runner in (r, "both"))
    settings = LoopCheckSettings(
        runners=runners,
        claims=claims,
        examples=DEFAULT_EXAMPLES if examples is None else examples,
        minutes=minutes,
        seed=seed,
        tensors=None if device == "none" else TensorSettings(device=device),
    )
    settings.validate()
    return settings


def check_loop(
    faults: Iterable[str],
    settings: LoopCheckSettings,
    json_file: Path | None,
    report_folder: Path | None,
) -> int:
    """Search the reference with the given faults and print what was found; the exit code.

    Raises:
        InputError: an unknown fault, or a file cannot be written.
    """
    from impl.reference.loop_target import ReferenceLoop

    target = ReferenceLoop(faults)
    with progress_bar() as report_progress, interrupts() as interrupted:
        report = run_loop_check(target, settings, report_progress, interrupted)
    print_loop_report(report)
    if json_file is not None:
        write_atomically(json_file, json.dumps(loop_report_to_json(report), indent=2) + "\n")
    if report_folder is not None:
        for path in write_counterexamples(report, report_folder):
            click.echo(f"wrote {path}")
        click.echo("There are no pages for whole runs yet; `residency replay` runs these files.")
    if report.interrupted:
        return INTERRUPTED_EXIT_CODE
    return exit_code(report.verdicts)
