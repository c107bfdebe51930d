"""``residency replay``: run a case, a scenario or a recorded trace once more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from impl.tensors import TensorSettings
from proofs.commands.options import (
    faults_option,
    json_option,
    max_passes_option,
    replayed_device_option,
    replayed_runner_option,
    scheduler_class_option,
    source_option,
)
from proofs.describe.visible import print_lines
from proofs.dossiers.relation import print_relation, relation_to_json
from proofs.drive.documents import AnyDocument, kind_of, load_any, run_document
from proofs.drive.replay import Replayed, RunnerChoice, gone, runners_of
from proofs.jobs.ending import PlainCommand
from proofs.releases.replay_present import (
    any_finding_to_json,
    print_gone,
    print_replayed,
    replayed_to_json,
)
from proofs.report.machines.checked import checked_replay
from proofs.report.machines.publish import MachineFiles, machine_options, publish
from proofs.run.targets import TargetChoice, TargetName
from spec.errors import InputError
from spec.functions import case_files
from spec.functions.case_files import require_writable, write_atomically
from spec.record import document as loop_files
from spec.record.itf import to_itf
from spec.record.run_findings import LoopFinding
from spec.verdict import exit_code

JSON_SCHEMA_VERSION = 1

_OUTPUT = click.Path(dir_okay=False, path_type=Path)


@click.command("replay", cls=PlainCommand)
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
@source_option
@scheduler_class_option
@replayed_runner_option
@replayed_device_option
@max_passes_option
@faults_option
@click.option(
    "--relation",
    "show_relation",
    is_flag=True,
    help="Say which steps of the new run lie outside the relation that the unbounded proofs are "
    "about, and in what.",
)
@json_option
@click.option("--trace", "trace_file", type=_OUTPUT, help="Write the new run to this file.")
@click.option(
    "--itf",
    "itf_file",
    type=_OUTPUT,
    help="Write the new run in Apalache's Informal Trace Format (.itf.json).",
)
@click.option(
    "--report",
    "report_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a report on each violation into this folder.",
)
@machine_options
def replay(
    *,
    file: Path,
    target_name: TargetName,
    release: str | None,
    source: Path | None,
    scheduler_class: str | None,
    runner: RunnerChoice | None,
    device: str,
    max_passes: int,
    faults: tuple[str, ...],
    show_relation: bool,
    json_file: Path | None,
    trace_file: Path | None,
    itf_file: Path | None,
    report_folder: Path | None,
    junit_file: Path | None,
    sarif_file: Path | None,
) -> int:
    """Run FILE once more and say which claims it breaks.

    FILE is a function-level case, a scenario, or a trace; a trace is also compared with the new run
    step by step. A difference alone breaks no claim.

    Exits 0 when all held, 1 when a claim is violated, 3 when the run was given up before it came to
    rest, 4 when nothing ran, 5 when it could not be run, 2 for wrong input and 130 after Ctrl-C.
    """
    choice = TargetChoice(target_name, release, source, scheduler_class, faults)
    choice.refuse_contradictions()
    files = MachineFiles(junit_file, sarif_file, report_folder)
    files.require_writable()
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
                "a function-level case is one call and makes no trace; leave out --trace and --itf"
            )
    elif len(runners) > 1 and (trace_file is not None or itf_file is not None):
        raise InputError("--trace and --itf hold one run; choose it with --runner V1 or V2")
    replay = run_document(document, choice, runners, settings, max_passes)
    target, replayed = replay.target, replay.replayed
    print_lines(f"{file}: {kind_of(document)} on {target}")
    for one in replayed:
        print_replayed(one)
    for finding in gone(document, replayed):
        print_gone(finding)
    if show_relation:
        for one in replayed:
            print_relation(one)
    if json_file is not None:
        written = _to_json(file, document, target, replayed, show_relation)
        write_atomically(json_file, written)
    _write_traces(replayed, trace_file, itf_file)
    sections = []
    if report_folder is not None:
        from proofs.dossiers.runs import report_replays

        sections = report_replays([replay], report_folder, settings)
    publish(f"{kind_of(document)} on {target}", [checked_replay(replay)], files, sections)
    return exit_code(one.verdict for one in replayed)


def _to_json(
    file: Path,
    document: AnyDocument,
    target: str,
    replayed: Sequence[Replayed],
    show_relation: bool,
) -> str:
    data: dict[str, object] = {
        "schema": JSON_SCHEMA_VERSION,
        "file": str(file),
        "kind": kind_of(document),
        "target": target,
        "results": [replayed_to_json(one) for one in replayed],
        "gone": [any_finding_to_json(finding) for finding in gone(document, replayed)],
    }
    if show_relation:
        data["relation"] = {
            one.part: relation_to_json(one.trace) for one in replayed if one.trace is not None
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
