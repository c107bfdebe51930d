"""Reports on what a sweep found: the runs behind each violation, made once more on its release.

A sweep keeps verdicts and scenarios, so that it can go on with what a file holds. What is told with
pictures is run again: what the search found, and recorded faults that show where the record has
them gone. A fault that is seen where it is recorded is what was expected, and gets no page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from impl.target import Runner
from impl.tensors import TensorSettings
from proofs.driving import DriveJob, Wanted, driven
from proofs.loop.jobs import VllmName
from proofs.loop.recorded import Recorded
from proofs.loop.sweep import came_back
from proofs.report.origin import vllm_origin
from proofs.reporting import TargetRuns, report_targets
from proofs.search.loop.results import LoopCounterexample
from spec.loop.document import loads
from spec.verdict import Verdict


def report_sweep(
    vllms: Sequence[VllmName],
    recorded: Recorded,
    entries: Sequence[Mapping[str, Any]],
    seed: int,
    runners: tuple[Runner, ...],
    tensors: TensorSettings | None,
    folder: Path,
) -> list[str]:
    """Write a report on each violation, release by release; the texts for a pull request.

    Args:
        vllms: what was swept.
        recorded: scenarios of known faults.
        entries: what each release showed.
        seed: of the search.
        runners: whose order and gathers run.
        tensors: device, dtype and hidden size.
        folder: where the reports go.

    Raises:
        InputError: a file cannot be written.
    """
    by_name = {vllm.source.name: vllm for vllm in vllms}
    targets = []
    for entry in entries:
        vllm = by_name[str(entry["target"])]
        wanted = _wanted(recorded, entry)
        examples: dict[str, LoopCounterexample] = {}
        for one, shown in zip(
            wanted, driven(DriveJob(vllm, wanted, runners, tensors)), strict=True
        ):
            if shown.example is None:
                why = "; ".join(shown.reasons) or "it did not show again"
                told = f"{Verdict.ERROR.name} {vllm.source.name}: no report on {one.claim}: {why}"
                click.echo(told, err=True)
            else:
                examples.setdefault(shown.example.finding.fingerprint, shown.example)
        targets.append(TargetRuns(list(examples.values()), vllm_origin(vllm, seed), vllm))
    return report_targets(targets, folder, tensors, apart=len(vllms) > 1)


def _wanted(recorded: Recorded, entry: Mapping[str, Any]) -> tuple[Wanted, ...]:
    """What a release is to show again: each fault once."""
    wanted: dict[str, Wanted] = {}
    for search in entry["searches"]:
        for found in search["findings"]:
            scenario = loads(json.dumps(found["document"]), str(found["claim"])).scenario
            key = str(found["fingerprint"])
            one = Wanted(str(found["claim"]), str(found["mechanism"]), (scenario,))
            wanted.setdefault(key, one)
    for fault, claim in came_back(recorded, entry):
        scenario = recorded.scenarios[fault.scenario]
        wanted[f"{fault.name} {claim}"] = Wanted(claim, None, (scenario,))
    return tuple(wanted.values())
