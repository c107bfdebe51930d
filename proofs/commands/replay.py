"""``residency replay``: run a case, a scenario or a recorded trace once more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from proofs.commands.files import FILE, file_options
from proofs.commands.options import (
    device_option,
    max_passes_option,
    replayed_runner_option,
    target_options,
    tensors_on,
)
from proofs.describe.visible import print_lines
from proofs.describe.words import counted
from proofs.drive.documents import AnyDocument, kind_of, load_document, run_document
from proofs.drive.replay import Replayed, RunnerChoice, gone, runners_of
from proofs.jobs.ending import PlainCommand
from proofs.releases.replay_text import (
    any_finding_to_json,
    broken_assumptions,
    checked_replay,
    print_broken_assumptions,
    print_gone,
    print_replayed,
    run_to_json,
)
from proofs.results.document import results_of
from proofs.results.publish import MachineFiles, publish
from proofs.run.targets import NamedTargets
from spec.errors import InputError
from spec.functions import case_files
from spec.functions.case_files import write_atomically
from spec.record import document as loop_files
from spec.record.itf import to_itf
from spec.record.run_findings import LoopFinding
from spec.record.steps import Trace
from spec.relation.runs.outside import OutsideStep, outside_the_proof, why_not_covered
from spec.verdict import exit_code


@click.command("replay", cls=PlainCommand)
@click.argument("file", type=click.Path(path_type=Path))
@target_options()
@replayed_runner_option
@device_option
@max_passes_option
@click.option(
    "--relation",
    "show_relation",
    is_flag=True,
    help="Say which steps of the new run lie outside the relation that the unbounded proofs are "
    "about, and why.",
)
@click.option("--trace", "trace_file", type=FILE, help="Write the new run to this file.")
@click.option(
    "--itf",
    "itf_file",
    type=FILE,
    help="Write the new run in Apalache's Informal Trace Format (.itf.json).",
)
@file_options(report="Write a report on each violation into this folder.")
def replay(
    *,
    file: Path,
    targets: NamedTargets,
    runner: RunnerChoice | None,
    device: str,
    max_passes: int,
    show_relation: bool,
    trace_file: Path | None,
    itf_file: Path | None,
    files: MachineFiles,
) -> int:
    """Run FILE once more and say which claims it breaks.

    FILE is a function-level case, a scenario, or a trace; a trace is also compared with the new run
    step by step. A difference alone breaks no claim. An assumption that FILE breaks is named first.

    Exits 0 when all held, 1 when a claim is violated, 3 when the run was stopped by
    --max-passes, 4 when nothing ran, 5 when it could not be run, 2 for wrong input and 130 after
    Ctrl-C.
    """
    choice = targets.single()
    files.require_writable(trace_file, itf_file)
    document = load_document(file)
    settings = tensors_on(device)
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
    print_broken_assumptions(document)
    for run in replayed:
        print_replayed(run)
    for finding in gone(document, replayed):
        print_gone(finding)
    if show_relation:
        for run in replayed:
            _print_relation(run)
    _write_traces(replayed, trace_file, itf_file)
    sections = []
    if files.folder is not None:
        from proofs.dossiers.runs import report_replays

        sections = report_replays([replay], files.folder, settings)
    results = results_of(
        "replay",
        [checked_replay(replay)],
        settings={"file": str(file), "holds": kind_of(document)},
        details=_details(document, replayed, show_relation),
        code=exit_code(run.verdict for run in replayed),
    )
    return publish(f"{kind_of(document)} on {target}", results, files, sections)


def _details(
    document: AnyDocument, replayed: Sequence[Replayed], show_relation: bool
) -> dict[str, object]:
    details: dict[str, object] = {
        "broken_assumptions": list(broken_assumptions(document)),
        "gone": [any_finding_to_json(finding) for finding in gone(document, replayed)],
        "runs": {run.part: run_to_json(run) for run in replayed if run.trace is not None},
    }
    if show_relation:
        details["relation"] = {
            run.part: _relation_to_json(run.trace) for run in replayed if run.trace is not None
        }
    return details


def _write_traces(
    replayed: Sequence[Replayed], trace_file: Path | None, itf_file: Path | None
) -> None:
    for run in replayed:
        if run.trace is None:
            continue
        findings = [found for found in run.findings if isinstance(found, LoopFinding)]
        if trace_file is not None:
            write_atomically(trace_file, loop_files.dumps_trace(run.trace, findings))
        if itf_file is not None:
            write_atomically(itf_file, json.dumps(to_itf(run.trace)) + "\n")


def _print_relation(replayed: Replayed) -> None:
    """Print the steps of a run that lie outside the proof, or that none does."""
    if replayed.trace is None:
        return
    reason = why_not_covered(replayed.trace.scenario)
    if reason is not None:
        print_lines(f"{replayed.part}: the unbounded proofs say nothing of this run: {reason}")
        return
    outside = outside_the_proof(replayed.trace)
    if not outside:
        print_lines(
            f"{replayed.part}: every completed step lies in the relation that the proofs are about"
        )
        return
    print_lines(f"{replayed.part}: outside the proof: {counted(len(outside), 'difference')}")
    for step in outside:
        print_lines(f"  {step.describe()}")


def _relation_to_json(trace: Trace) -> dict[str, Any]:
    """The steps of a run that lie outside the proof, as JSON."""
    return {
        "not_covered": why_not_covered(trace.scenario),
        "outside": [_outside_to_json(step) for step in outside_the_proof(trace)],
    }


def _outside_to_json(step: OutsideStep) -> dict[str, Any]:
    return {
        "step": step.step,
        "place": step.place,
        "request": step.request,
        "feature": step.feature,
        "transition": step.taken.transition,
        "arguments": dict(step.taken.arguments),
        "conjunct": step.conjunct,
        "text": step.describe(),
    }
