"""A page for each prompt that stalls: the release's own engine, run on it.

Theorems say that a prompt stops the engine. Where the engine does not stop, theorems and engine
disagree, and nothing of the verdict is to be believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from proofs.describe.scenarios import describe_scenario
from proofs.describe.visible import print_lines
from proofs.dossiers.runs import finish, written_runs
from proofs.drive.drive import DriveJob, Shown, Wanted, driven
from proofs.drive.origin import vllm_origin
from proofs.jobs.terminal import interrupts, progress_bar
from proofs.report.pages.account import NO_EVIDENCE, Evidence
from proofs.run.targets import VllmName, named_vllms
from proofs.search.runs.results import LoopCounterexample
from proofs.settings.stuck.kinds import Stop
from proofs.settings.stuck.layouts import as_scenario
from proofs.settings.stuck.settings import Settings
from proofs.settings.stuck.signs import SIGNS
from spec.errors import InputError
from spec.record.scenario import Scenario
from spec.verdict import Verdict

_STOPPED = ("no-stall", "no-error")
"""How an engine stops: it stands still, or an assertion ends it."""


def report_stops(
    settings: Settings, stops: Sequence[Stop], release: str, folder: Path
) -> tuple[list[str], bool]:
    """Write the report on each stuck state, and print the names of the files.

    A prompt that the engine would not take has no run, and is only named.

    Args:
        settings: the engine's settings.
        stops: the stuck states, each with its smallest prompt.
        release: release of vLLM; fetched when it is not cached.
        folder: where the reports go.

    Returns:
        The texts for a pull request, and whether the engine stops at every prompt that it takes,
        as the theorems say.

    Raises:
        InputError: a file cannot be written, or the release cannot be run.
        KeyboardInterrupt: it was interrupted.
    """
    (vllm,) = named_vllms((release,), None, None)
    runs = tuple(_legal(settings, stops))
    wanted = tuple(
        Wanted(sign.claim, None, (scenario,), signs=sign.mechanism)
        for stop, scenario in runs
        for sign in (SIGNS[stop.name],)
    )
    with progress_bar() as report_progress, interrupts() as interrupted:
        shown = driven(DriveJob(vllm, wanted), report_progress, interrupted)
        if interrupted():
            raise KeyboardInterrupt
    examples: dict[str, LoopCounterexample] = {}
    evidence: dict[str, Evidence] = {}
    is_shown = True
    for (stop, scenario), example in zip(runs, shown, strict=True):
        if example.example is None:
            _refuse_unrun(vllm, example)
            is_shown = False
            print_lines(f"{Verdict.ERROR.name} {_unlike(vllm, stop, example)}", err=True)
            continue
        key = example.example.finding.fingerprint
        run = "this run" if key not in examples else "another run that stops in the same way"
        examples.setdefault(key, example.example)
        remarks = evidence.get(key, NO_EVIDENCE).shown
        said = (
            f"By theorem these settings can stall ({', '.join(stop.theorems)}): "
            f"{stop.sentence.rstrip('.')}; {run} is its smallest prompt, "
            f"{describe_scenario(scenario)}"
        )
        evidence[key] = Evidence((*remarks, said))
    origin = vllm_origin(vllm)
    written = written_runs(list(examples.values()), origin, vllm, folder, evidence=evidence)
    return finish(written, origin, folder), is_shown


def _legal(settings: Settings, stops: Sequence[Stop]) -> Iterator[tuple[Stop, Scenario]]:
    """The stuck states with their scenarios; those that no engine would take are told."""
    for stop in stops:
        scenario = as_scenario(stop.layout, settings)
        try:
            scenario.validate()
        except InputError as error:
            print_lines(f"no report on {stop.name}: its prompt cannot be run: {error}", err=True)
            continue
        yield stop, scenario


def _unlike(vllm: VllmName, stop: Stop, shown: Shown) -> str:
    """That the engine does not do what a theorem says, and what it does instead."""
    sign = SIGNS[stop.name]
    stalls = [f"{claim}: {how}" for claim, how in shown.seen if claim in _STOPPED]
    if not stalls:
        return f"{vllm.source.name} does not stop at: {stop.name}"
    return (
        f"{vllm.source.name} does not stop as the theorems say at: {stop.name} "
        f"({'; '.join(stalls)}; expected is {sign.claim})"
    )


def _refuse_unrun(vllm: VllmName, shown: Shown) -> None:
    """Tell why the engine could not be run, where it could not.

    Raises:
        InputError: it could not.
    """
    if shown.reasons and not shown.num_run:
        why = "; ".join(shown.reasons)
        raise InputError(f"no report: {vllm.source.name} cannot be run: {why}")
