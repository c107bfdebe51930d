"""Reports on what a sweep found: the runs behind each violation, made once more on its release.

A sweep keeps verdicts and scenarios, so that it can go on with what a file holds. What is told with
pictures is run again: what the search found, and recorded faults that show where the record has
them gone. A fault that is seen where it is recorded is what was expected, and gets no page.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from impl.target import Runner
from impl.tensors import TensorSettings
from proofs.describe.visible import print_lines
from proofs.dossiers.runs import TargetRuns, report_targets
from proofs.drive.drive import DriveJob, Shown, Wanted, driven
from proofs.drive.origin import vllm_origin
from proofs.drive.recorded import Recorded
from proofs.jobs.terminal import interrupts, progress_bar
from proofs.releases.sweep import came_back
from proofs.results.outcome import Checked
from proofs.run.targets import VllmName
from proofs.search.runs.results import LoopCounterexample
from spec.record.document import loads
from spec.verdict import Verdict


def report_sweep(
    vllms: Sequence[VllmName],
    recorded: Recorded,
    entries: Sequence[Checked],
    seed: int,
    runners: tuple[Runner, ...],
    tensors: TensorSettings | None,
    folder: Path,
) -> tuple[list[str], bool]:
    """Write a report on each violation, release by release.

    Args:
        vllms: what was swept.
        recorded: scenarios of known faults.
        entries: what each release showed.
        seed: of the search.
        runners: whose order and gathers run.
        tensors: device, dtype and hidden size.
        folder: where the reports go.

    Returns:
        The texts for a pull request, and whether every violation showed again.

    Raises:
        InputError: a file cannot be written.
        KeyboardInterrupt: it was interrupted; what was run until then has its pages.
    """
    by_name = {vllm.source.name: vllm for vllm in vllms}
    targets = []
    all_again = True
    with progress_bar() as report_progress, interrupts() as interrupted:
        for entry in entries:
            vllm = by_name[entry.target]
            wanted = _wanted(recorded, entry)
            job = DriveJob(vllm, tuple(wanted.values()), runners, tensors)
            examples: dict[str, LoopCounterexample] = {}
            for key, shown in zip(wanted, driven(job, report_progress, interrupted), strict=True):
                why = _why_not(key, wanted[key], shown)
                if why is None and shown.example is not None:
                    examples.setdefault(shown.example.finding.fingerprint, shown.example)
                elif not interrupted():
                    all_again = False
                    claim = wanted[key].claim
                    line = f"{Verdict.ERROR.name} {vllm.source.name}: no report on {claim}: {why}"
                    print_lines(line, err=True)
            targets.append(TargetRuns(list(examples.values()), vllm_origin(vllm, seed), vllm))
        was_interrupted = interrupted()
    if was_interrupted:
        # Nothing is run beside what there is.
        targets = [
            replace(target, there=[e.finding.fingerprint for e in target.examples])
            for target in targets
        ]
    sections = report_targets(targets, folder, tensors, apart=len(vllms) > 1)
    if was_interrupted:
        raise KeyboardInterrupt
    return sections, all_again


def _why_not(key: str, wanted: Wanted, shown: Shown) -> str | None:
    """Why a violation has no page; ``None`` where its run showed it again, and nothing else.

    Runs are deterministic, so that one that does otherwise than before is an error of its own.
    """
    if shown.example is None:
        return "; ".join(shown.reasons) or "it did not show again"
    finding = shown.example.finding
    if wanted.mechanism is not None and finding.fingerprint != key:
        return f"it did not show again; the run now shows another one: {finding.mechanism}"
    return None


def _wanted(recorded: Recorded, entry: Checked) -> dict[str, Wanted]:
    """What a release is to show again, each fault once: by fingerprint where it was searched."""
    wanted: dict[str, Wanted] = {}
    for violation in entry.violations:
        scenario = loads(json.dumps(violation.document), violation.claim).scenario
        violated = Wanted(violation.claim, violation.mechanism, (scenario,))
        wanted.setdefault(violation.fingerprint, violated)
    for fault, claim in came_back(recorded, entry):
        scenario = recorded.scenarios[fault.scenario]
        wanted[f"{fault.name} {claim}"] = Wanted(claim, None, (scenario,))
    return wanted
