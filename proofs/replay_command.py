"""``residency replay``: run a case, a scenario or a recorded trace once more."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import click

from impl.target import Runner
from impl.tensors import TensorSettings
from proofs.loop.jobs import ReplayJob, replay_on_vllm
from proofs.loop.present import (
    any_finding_to_json,
    print_gone,
    print_replayed,
    replayed_to_json,
)
from proofs.loop.processes import run_jobs
from proofs.loop.record import MAX_PASSES
from proofs.loop.replay import (
    Replayed,
    RunnerChoice,
    gone,
    judge_recorded,
    replay_case,
    replay_on_loop,
    runners_of,
)
from proofs.loop_check_command import named_vllms
from proofs.terminal import interrupts
from spec import trace as case_files
from spec.errors import InputError
from spec.json_document import read_text
from spec.loop import document as loop_files
from spec.loop.findings import LoopFinding
from spec.loop.itf import to_itf
from spec.trace import require_writable, write_atomically
from spec.verdict import INTERRUPTED_EXIT_CODE, USAGE_EXIT_CODE, Verdict, exit_code

AnyDocument: TypeAlias = case_files.Document | loop_files.LoopDocument

JSON_SCHEMA_VERSION = 1

_OUTPUT = click.Path(dir_okay=False, path_type=Path)


@click.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--target",
    "target_name",
    type=click.Choice(["reference", "vllm", "recorded"]),
    default="reference",
    show_default=True,
    help="What to run it on: our reference implementation, a real vLLM, or nothing: a trace is "
    "judged as it was recorded.",
)
@click.option("--release", help="Release of vLLM, such as 0.24.0; fetched when it is not cached.")
@click.option(
    "--source",
    type=click.Path(path_type=Path),
    help="Folder of a vLLM checkout or of an installed vLLM, instead of --release.",
)
@click.option(
    "--scheduler-class",
    metavar="PACKAGE.MODULE:CLASS",
    help="Scheduler to run in place of vLLM's own, of a fork for instance.",
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
    target_name: Literal["reference", "vllm", "recorded"],
    release: str | None,
    source: Path | None,
    scheduler_class: str | None,
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
        _refuse_contradictions(target_name, release, source, scheduler_class, faults)
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
        elif len(runners) > 1 and (trace_file is not None or itf_file is not None):
            raise InputError("--trace and --itf hold one run; choose it with --runner V1 or V2")
        if target_name == "recorded":
            target, replayed = _judge_recorded(document)
        elif target_name == "vllm":
            vllm = named_vllms([release] if release else [], source, scheduler_class)[0]
            job = ReplayJob(vllm, document, tuple(runners), settings, max_passes)
            target, replayed = _replay_vllm(job)
        elif isinstance(document, case_files.Document):
            target, replayed = _replay_case(document, runners, settings, faults)
        else:
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


def _refuse_contradictions(
    target_name: str,
    release: str | None,
    source: Path | None,
    scheduler_class: str | None,
    faults: tuple[str, ...],
) -> None:
    if target_name == "vllm":
        if (release is None) == (source is None):
            raise InputError("--target vllm needs one of --release R and --source DIR")
        if faults:
            raise InputError("--fault breaks the reference; it cannot be used with --target vllm")
    elif faults and target_name == "recorded":
        raise InputError("--fault breaks the reference; a recorded run is not run again")
    elif release is not None or source is not None or scheduler_class is not None:
        raise InputError("--release, --source and --scheduler-class name a vLLM; add --target vllm")


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


def _judge_recorded(document: AnyDocument) -> tuple[str, list[Replayed]]:
    """The target of the recording, and what its run contradicts."""
    if isinstance(document, case_files.Document):
        raise InputError("a function-level case holds no run; give --target reference or vllm")
    judged = judge_recorded(document)
    assert judged.trace is not None
    return judged.trace.target, [judged]


def _replay_vllm(job: ReplayJob) -> tuple[str, list[Replayed]]:
    """The vLLM's name, and what became of each part or runner, in a process of its own."""
    name = job.vllm.source.name
    with interrupts() as interrupted:
        for answer in run_jobs(replay_on_vllm, [job], [name], should_stop=interrupted):
            if answer.refused is not None:
                raise InputError(answer.refused)
            if answer.value is None:
                return name, [Replayed(one, Verdict.ERROR, answer.failed) for one in job.runners]
            return name, answer.value
    raise KeyboardInterrupt


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
    return target.name, replay_on_loop(document, target, runners, settings, max_passes)


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
