"""A page for each prompt that stalls: the release's own engine, run on it.

Theorems say that a prompt stops the engine. Where the engine does not stop, theorems and engine
disagree, and nothing of the verdict is to be believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from proofs.driving import DriveJob, Shown, Wanted, driven
from proofs.lint_config.kinds import Stop
from proofs.lint_config.layouts import as_scenario
from proofs.lint_config.settings import Settings
from proofs.loop.jobs import VllmName
from proofs.loop_check_command import named_vllms
from proofs.report.evidence import NO_EVIDENCE, Evidence
from proofs.report.origin import vllm_origin
from proofs.reporting import finish, written_runs
from proofs.search.loop.results import LoopCounterexample
from spec.errors import InputError
from spec.verdict import Verdict

_CLAIMS = ("no-stall", "no-error")
"""How an engine stops: it stands still, or an assertion ends it."""


def report_stops(
    settings: Settings, stops: Sequence[Stop], release: str, folder: Path
) -> tuple[list[str], bool]:
    """Write the report on each stuck state, and print the names of the files.

    Args:
        settings: the engine's settings.
        stops: the stuck states, each with its smallest prompt.
        release: release of vLLM; fetched when it is not cached.
        folder: where the reports go.

    Returns:
        The texts for a pull request, and whether the engine stops at every prompt.

    Raises:
        InputError: a file cannot be written, or the release cannot be run.
    """
    (vllm,) = named_vllms((release,), None, None)
    wanted = tuple(
        Wanted(claim, None, (as_scenario(stop.layout, settings),))
        for stop in stops
        for claim in _CLAIMS
    )
    shown = driven(DriveJob(vllm, wanted))
    examples: dict[str, LoopCounterexample] = {}
    evidence: dict[str, Evidence] = {}
    is_shown = True
    for number, stop in enumerate(stops):
        of_stop = shown[number * len(_CLAIMS) : (number + 1) * len(_CLAIMS)]
        example = next((one.example for one in of_stop if one.example is not None), None)
        if example is None:
            _refuse_unrun(vllm, of_stop)
            is_shown = False
            told = f"{Verdict.ERROR.name} {vllm.source.name} does not stop at: {stop.name}"
            click.echo(told, err=True)
            continue
        key = example.finding.fingerprint
        examples.setdefault(key, example)
        known = evidence.get(key, NO_EVIDENCE).shown
        said = f"By theorem these settings can stall ({', '.join(stop.theorems)}): {stop.sentence}"
        evidence[key] = Evidence((*known, said.rstrip(".")))
    origin = vllm_origin(vllm)
    written = written_runs(list(examples.values()), origin, vllm, folder, evidence=evidence)
    return finish(written, origin, folder), is_shown


def _refuse_unrun(vllm: VllmName, shown: Sequence[Shown]) -> None:
    """Tell why the engine could not be run, where it could not.

    Raises:
        InputError: it could not.
    """
    reasons = {reason: None for one in shown for reason in one.reasons if not one.num_run}
    if reasons:
        raise InputError(f"no report: {vllm.source.name} cannot be run: {'; '.join(reasons)}")
