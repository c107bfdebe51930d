"""``residency sweep``: what holds in which release, from recorded scenarios and fresh search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from proofs.commands.files import file_options
from proofs.commands.options import chosen_runners, runner_option, tensors_on
from proofs.describe.visible import print_lines
from proofs.drive.jobs import warm_up_of
from proofs.drive.recorded import DEFAULT_FOLDER, Recorded, load_recorded
from proofs.jobs.ending import PlainCommand
from proofs.jobs.processes import run_jobs
from proofs.jobs.terminal import interrupts, progress_bar
from proofs.releases.sweep import (
    Deviation,
    SweepJob,
    deviations,
    searched,
    sweep_vllm,
    with_deviations,
)
from proofs.releases.sweep_text import print_deviations, print_findings, print_sweep
from proofs.results.code_digest import code_digest
from proofs.results.document import dumps, load, results_of
from proofs.results.outcome import Checked
from proofs.results.publish import MachineFiles, publish
from proofs.run.targets import named_vllms
from proofs.search.runs.results import LoopCheckSettings
from spec.errors import InputError
from spec.functions.case_files import write_atomically
from spec.verdict import INTERRUPTED_EXIT_CODE, Verdict, exit_code

DEFAULT_EXAMPLES = 500


@click.command("sweep", cls=PlainCommand)
@click.option(
    "--release",
    "releases",
    multiple=True,
    help="Release of vLLM; may be repeated. When not given: every release in which a recorded "
    "fault appears or disappears.",
)
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=DEFAULT_EXAMPLES,
    show_default=True,
    help="Scenarios to draw for each release and mode; 0 runs the recorded ones only.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed of the search; the same one draws the same scenarios.",
)
@runner_option
@click.option(
    "--device",
    default="none",
    show_default=True,
    help="cpu or cuda; none runs without tensors.",
)
@click.option(
    "--recorded",
    "recorded_folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_FOLDER,
    help="Folder with recorded scenarios and their index; that of the project when not given.",
)
@file_options(
    report="Write a page for each violation that the search found, or that a recorded fault shows "
    "again, release by release, into this folder.",
)
def sweep(
    *,
    releases: tuple[str, ...],
    examples: int,
    seed: int,
    runner: str,
    device: str,
    recorded_folder: Path,
    files: MachineFiles,
) -> int:
    """Make the table of claims by release, runner and mode.

    A recorded scenario has to show its fault on each release that the record names as faulty, and
    on none that it names as good. Drawn scenarios are judged as by check. A release that the file
    of --json already holds, from a sweep with the same settings, is not run again.

    Exits 0 when the record is met and all searched claims held, 1 when a fault is not where it is
    recorded or the search refuted a claim, 2 for wrong input, 3 for unknown, 4 for claims never put
    to the test, 5 for errors and 130 after Ctrl-C.
    """
    files.require_writable()
    recorded = load_recorded(recorded_folder)
    chosen, tensors = chosen_runners(runner), tensors_on(device)
    LoopCheckSettings(runners=chosen, tensors=tensors).validate()
    about = {
        "examples": examples,
        "seed": seed,
        "runner": runner,
        "device": device,
        "recorded": recorded.digest,
        # Results of other code are not kept.
        "code": code_digest("proofs.releases.sweep"),
    }
    kept = _kept(files.json, about)
    vllms = named_vllms(releases or recorded.releases(), None, None)
    entries = {
        vllm.source.name: kept[vllm.source.name]
        for vllm in vllms
        if vllm.source.name in kept and kept[vllm.source.name].digest == vllm.source.digest
    }
    left = [vllm for vllm in vllms if vllm.source.name not in entries]
    names = [vllm.source.name for vllm in left]
    jobs = [SweepJob(vllm, recorded, examples, seed, chosen, tensors) for vllm in left]
    unfinished: dict[str, str] = {}
    with progress_bar() as report_progress, interrupts() as interrupted:
        for answer in run_jobs(
            sweep_vllm, jobs, names, report_progress, interrupted, warm_up_of=warm_up_of
        ):
            name = names[answer.index]
            if answer.value is None:
                unfinished[name] = str(answer.refused or answer.failed)
            elif not answer.value.details["interrupted"]:
                entries[name] = answer.value
                _keep(files.json, about, {**kept, **entries}, INTERRUPTED_EXIT_CODE)
        was_interrupted = interrupted()
    order = [vllm.source.name for vllm in vllms]
    done = [entries[name] for name in order if name in entries]
    for name in order:
        if name not in entries and name not in unfinished:
            unfinished[name] = "interrupted"
    found = [deviation for entry in done for deviation in deviations(recorded, entry)]
    print_sweep(done)
    print_findings(done)
    print_deviations(recorded, done, found)
    sections: list[str] = []
    all_again = True
    if files.folder is not None:
        from proofs.dossiers.sweep import report_sweep

        sections, all_again = report_sweep(
            vllms, recorded, done, seed, chosen, tensors, files.folder
        )
    packages = {vllm.source.name: vllm.source.package for vllm in vllms}
    checked = [with_deviations(entry, found, packages[entry.target]) for entry in done]
    code = _code(recorded, done, found, bool(unfinished) or not all_again)
    if was_interrupted:
        code = INTERRUPTED_EXIT_CODE
    _keep(
        files.json, about, {**kept, **{deviation.target: deviation for deviation in checked}}, code
    )
    results = results_of("sweep", checked, settings=about, code=code)
    publish("a sweep over releases", results, replace(files, json=None), sections)
    for name, reason in unfinished.items():
        print_lines(f"{Verdict.ERROR.name} {name}: {reason}", err=True)
    return code


def _code(
    recorded: Recorded,
    done: Sequence[Checked],
    found: Sequence[Deviation],
    has_errors: bool,
) -> int:
    """The exit code: of what deviates from the record, of the search, of what could not run.

    Args:
        recorded: scenarios of known faults.
        done: what each release showed.
        found: what deviates from the record.
        has_errors: whether a release could not be run, or a violation did not show again.
    """
    verdicts = [deviation.verdict for deviation in found]
    for entry in done:
        verdicts += [
            deviation.verdict for deviation in searched(entry) if deviation.verdict is not None
        ]
        if any(fault.expected(entry.release) is not None for fault in recorded.index.faults):
            verdicts.append(Verdict.HELD)  # The record says something of it, and was put to test.
    if has_errors:
        verdicts.append(Verdict.ERROR)
    return exit_code(verdicts)


def _kept(path: Path | None, about: Mapping[str, Any]) -> dict[str, Checked]:
    """Releases that the file holds of the same sweep, by name of the target.

    Raises:
        InputError: the file is there and holds something else.
    """
    if path is None or not path.exists():
        return {}
    try:
        results = load(path)
    except InputError as error:
        raise InputError(f"{error}; move the file away") from None
    if results.kind != "sweep":
        raise InputError(f"{path}: holds the results of {results.kind}, no sweep; move it away")
    if results.settings != about:
        return {}
    return {
        entry.target: replace(entry, outcomes=tuple(searched(entry))) for entry in results.targets
    }


def _keep(
    path: Path | None, about: Mapping[str, Any], entries: Mapping[str, Checked], code: int
) -> None:
    if path is not None:
        write_atomically(
            path, dumps(results_of("sweep", list(entries.values()), settings=about, code=code))
        )
