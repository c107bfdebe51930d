"""``residency replay``: run a case, a scenario or a recorded trace once more."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import click

from impl.target import Runner
from impl.tensors import TensorSettings
from proofs.loop.present import (
    any_finding_to_json,
    print_gone,
    print_replayed,
    replayed_to_json,
)
from proofs.loop.record import MAX_PASSES
from proofs.loop.replay import (
    Replayed,
    RunnerChoice,
    agreement,
    gone,
    replay_case,
    replay_loop,
    runners_of,
)
from spec import trace as case_files
from spec.errors import InputError
from spec.json_document import read_text
from spec.loop import document as loop_files
from spec.loop.findings import LoopFinding
from spec.loop.itf import to_itf
from spec.loop.monitor import LoopMonitor
from spec.trace import require_writable, write_atomically
from spec.verdict import INTERRUPTED_EXIT_CODE, USAGE_EXIT_CODE, exit_code

AnyDocument: TypeAlias = case_files.Document | loop_files.LoopDocument

JSON_SCHEMA_VERSION = 1

_OUTPUT = click.Path(dir_okay=False, path_type=Path)


@click.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--target",
    "target_name",
    type=click.Choice(["reference"]),
    default="reference",
    show_default=True,
    help="What to run it on.",
)
@click.option(
    "--runner",
    type=click.Choice(["V1", "V2", "both"], case_sensitive=False),
    help="Which runner gathers: both, or of a trace the recorded one, when not given.",
)
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="cpu or cuda; none runs a scenario without tensors.",
)
@click.option(
    "--max-passes",
    type=click.IntRange(min=1),
    default=MAX_PASSES,
    show_default=True,
    help="Passes after which a run is given up.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    help="Break the reference with this named fault; may be repeated.",
)
@click.option("--json", "json_file", type=_OUTPUT, help="Write the results to this file.")
@click.option("--trace", "trace_file", type=_OUTPUT, help="Write the new run to this file.")
@click.option(
    "--itf",
    "itf_file",
    type=_OUTPUT,
    help="Write the new run in Apalache's Informal Trace Format (.itf.json).",
)
def replay(
    *,
    file: Path,
    target_name: str,
    runner: RunnerChoice | None,
    device: str,
    max_passes: int,
    faults: tuple[str, ...],
    json_file: Path | None,
    trace_file: Path | None,
    itf_file: Path | None,
) -> None:
    """Run FILE once more and say which claims it breaks.

    FILE is a function-level case, a scenario, or a trace; a trace is also compared with the new run
    step by step. A difference alone breaks no claim.

    Exits 0 when all held, 1 when a claim is violated, 3 when the run was given up before it came to
    rest, 4 when nothing ran, 5 when it could not be run, 2 for wrong input and 130 after Ctrl-C.
    """
    try:
        for output in (json_file, trace_file, itf_file):
            if output is not None:
                require_writable(output)
        document = load_any(file)
        settings = None if device == "none" else TensorSettings(device=device)
        if settings is not None:
            settings.require_device()
        runners = runners_of(document, runner)
        if isinstance(document, case_files.Document):
            if trace_file is not None or itf_file is not None:
                raise InputError(
                    "a function-level case is one call and makes no trace; leave out --trace and "
                    "--itf"
                )
            target, replayed = _replay_case(document, runners, settings, faults)
        else:
            if len(runners) > 1 and (trace_file is not None or itf_file is not None):
                raise InputError("--trace and --itf hold one run; choose it with --runner V1 or V2")
            target, replayed = _replay_loop(document, runners, settings, faults, max_passes)
        click.echo(f"{file}: {_kind(document)} on {target}")
        for one in replayed:
            print_replayed(one)
        for finding in gone(document, replayed):
            print_gone(finding)
        if json_file is not None:
            write_atomically(json_file, _to_json(file, document, target, replayed))
        _write_traces(replayed, trace_file, itf_file)
    except InputError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(USAGE_EXIT_CODE)
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        sys.exit(INTERRUPTED_EXIT_CODE)
    sys.exit(exit_code(one.verdict for one in replayed))


def load_any(path: Path) -> AnyDocument:
    """Read a function-level case, a scenario or a trace.

    Raises:
        InputError: the file cannot be read or is none of them.
    """
    text = read_text(path)
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None  # What is wrong with it is for the reader of documents to say.
    if isinstance(raw, dict) and "case" in raw:
        return case_files.loads(text, str(path))
    return loop_files.loads(text, str(path))


def _replay_case(
    document: case_files.Document,
    runners: Sequence[Runner],
    settings: TensorSettings | None,
    faults: tuple[str, ...],
) -> tuple[str, list[Replayed]]:
    """The target's name, and what became of each part."""
    from impl.reference.target import ReferenceTarget

    if settings is None:
        raise InputError("a function-level case needs tensors; use --device cpu")
    target = ReferenceTarget(faults=faults)
    return target.name, replay_case(document, target, runners, settings)


def _replay_loop(
    document: loop_files.LoopDocument,
    runners: Sequence[Runner],
    settings: TensorSettings | None,
    faults: tuple[str, ...],
    max_passes: int,
) -> tuple[str, list[Replayed]]:
    """The target's name, and what became of the loop with each runner, and with both."""
    from impl.reference.loop_target import ReferenceLoop

    target = ReferenceLoop(faults=faults)
    replayed = [
        replay_loop(document, target, name, LoopMonitor, tensors=settings, max_passes=max_passes)
        for name in runners
    ]
    both = agreement(replayed)
    return target.name, replayed if both is None else [*replayed, both]


def _kind(document: AnyDocument) -> str:
    if isinstance(document, case_files.Document):
        return f"{document.case.kind} case"
    return document.kind


def _to_json(file: Path, document: AnyDocument, target: str, replayed: Sequence[Replayed]) -> str:
    data = {
        "schema": JSON_SCHEMA_VERSION,
        "file": str(file),
        "kind": _kind(document),
        "target": target,
        "results": [replayed_to_json(one) for one in replayed],
        "gone": [any_finding_to_json(finding) for finding in gone(document, replayed)],
    }
    return json.dumps(data, indent=2) + "\n"


def _write_traces(
    replayed: Sequence[Replayed], trace_file: Path | None, itf_file: Path | None
) -> None:
    for one in replayed:
        if one.trace is None:
            continue
        findings = [found for found in one.findings if isinstance(found, LoopFinding)]
        if trace_file is not None:
            write_atomically(trace_file, loop_files.dumps_trace(one.trace, findings))
        if itf_file is not None:
            write_atomically(itf_file, json.dumps(to_itf(one.trace)) + "\n")
