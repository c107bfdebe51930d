"""One release of a sweep: recorded scenarios and a fresh search, in the shape that a file keeps.

What a release showed has that shape from the start, so that a sweep that was cut short goes on with
what the file holds of it. The searches of both modes stand side by side: a part is a runner and a
mode, ``V1 sync``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from packaging.version import Version

from impl.target import RUNNERS, Runner
from impl.tensors import TensorSettings
from proofs.drive.jobs import Ran, RunsJob, make_target, run_on, unrecognised, with_unrecognised
from proofs.drive.recorded import Recorded, RecordedFault
from proofs.jobs.processes import ShouldStop
from proofs.jobs.progress import ReportProgress
from proofs.results.outcome import NOT_AVAILABLE, Checked, Outcome
from proofs.results.violation import Violation, with_place
from proofs.run.targets import VllmName
from proofs.search.runs.results import LoopCheckSettings
from proofs.search.runs.search import run_loop_check
from proofs.search.runs.search_text import checked_runs
from spec.record.scenario import Scenario
from spec.verdict import Verdict

OneMode: TypeAlias = Literal["sync", "async"]
MODES: tuple[OneMode, ...] = ("sync", "async")
Engine: TypeAlias = tuple[Runner, OneMode]
ENGINES: tuple[Engine, ...] = tuple((runner, mode) for runner in RUNNERS for mode in MODES)

_BOTH = "V1 with V2"


@dataclass(frozen=True)
class SweepJob:
    """What to do with one release.

    Attributes:
        recorded: scenarios of known faults.
        examples: scenarios to draw for each mode; 0 for no search.
        seed: draws the same scenarios again.
        runners: whose order and gathers run.
        tensors: device, dtype and hidden size; ``None`` runs on rows alone.
    """

    vllm: VllmName
    recorded: Recorded
    examples: int
    seed: int
    runners: tuple[Runner, ...] = RUNNERS
    tensors: TensorSettings | None = None


def sweep_vllm(job: SweepJob, report_progress: ReportProgress, should_stop: ShouldStop) -> Checked:
    """Run the recorded scenarios on one vLLM, and search it in each mode.

    Raises:
        InputError: it cannot be loaded, or its scheduler cannot be made.
    """
    name = job.vllm.source.name
    report_progress(f"starting {name}", 0, 1)
    target = make_target(job.vllm)
    reasons = unrecognised(target)
    faults = job.recorded.index.faults
    scenarios = [job.recorded.scenarios[fault.scenario] for fault in faults]
    runs = tuple((scenario, job.runners) for scenario in scenarios)
    ran = run_on(target, RunsJob(job.vllm, runs, job.tensors), report_progress, should_stop)
    recorded = [
        _recorded(fault, scenario, result, reasons)
        for fault, scenario, result in zip(faults, scenarios, ran, strict=False)
    ]
    searches: list[Mapping[str, Any]] = []
    outcomes: list[Outcome] = []
    violations: list[Violation] = []
    for mode in MODES if job.examples else ():
        settings = LoopCheckSettings(
            runners=job.runners,
            examples=job.examples,
            seed=job.seed,
            tensors=job.tensors,
            mode=mode,
        )
        report = run_loop_check(target, settings, report_progress, should_stop)
        found = checked_runs(with_unrecognised(report, reasons), details={"mode": mode})
        searches.append(found.details)
        outcomes += [replace(result, part=f"{result.part} {mode}") for result in found.outcomes]
        violations += found.violations
    return Checked(
        name,
        tuple(outcomes),
        tuple(violations),
        release=job.vllm.source.release,
        digest=job.vllm.source.digest,
        details={
            "interrupted": len(ran) < len(faults) or any(s["interrupted"] for s in searches),
            "recorded": recorded,
            "searches": searches,
        },
    )


def _recorded(
    fault: RecordedFault, scenario: Scenario, ran: Ran, reasons: Mapping[Runner, str]
) -> dict[str, Any]:
    """What a recorded scenario showed: of each runner and claim the verdict."""
    mode: OneMode = "async" if scenario.config.async_depth else "sync"
    verdicts: dict[str, dict[str, str]] = {}
    for runner in ran.traces:
        verdicts[runner] = {
            claim: _verdict(claim, ran, runner).name
            for claim in fault.claims
            if claim != "runners-agree"
        }
    for runner in ran.failed:
        verdicts[runner] = dict.fromkeys(fault.claims, Verdict.ERROR.name)
    for runner in ran.missing:
        verdict = Verdict.UNKNOWN.name if runner in reasons else NOT_AVAILABLE
        verdicts[runner] = dict.fromkeys(fault.claims, verdict)
    return {
        "name": fault.name,
        "scenario": fault.scenario,
        "mode": mode,
        "verdicts": verdicts,
        "reasons": {**ran.missing, **ran.failed},
    }


def _verdict(claim: str, ran: Ran, runner: Runner) -> Verdict:
    if any(found == claim for found, _ in ran.found[runner]):
        return Verdict.REFUTED
    if ran.traces[runner].ending not in ("idle", "stopped"):
        return Verdict.UNKNOWN
    return Verdict.HELD if ran.premises[runner][claim] else Verdict.VACUOUS


@dataclass(frozen=True)
class Deviation:
    """A recorded fault that did not do what the record says.

    Attributes:
        verdict: ``REFUTED`` where it came back or did not show, ``UNKNOWN`` or ``ERROR`` where
            that could not be seen.
        text: what was recorded and what was seen.
    """

    name: str
    target: str
    verdict: Verdict
    text: str


def deviations(recorded: Recorded, entry: Checked) -> Iterator[Deviation]:
    """Where a release does not show what the record says of it."""
    for fault, result in zip(recorded.index.faults, entry.details["recorded"], strict=True):
        expected = fault.expected(entry.release)
        if expected is None:
            continue
        place = fault.name, entry.target
        for claim in fault.claims:
            seen = {
                runner: found.get(claim, NOT_AVAILABLE)
                for runner, found in result["verdicts"].items()
            }
            verdicts = ", ".join(f"{runner} {verdict}" for runner, verdict in sorted(seen.items()))
            ran = [v for v in seen.values() if v != NOT_AVAILABLE]
            if not ran:
                why = "; ".join(dict.fromkeys(result["reasons"].values()))
                yield Deviation(*place, Verdict.UNKNOWN, f"{claim}: could not be given: {why}")
            elif Verdict.ERROR.name in ran:
                yield Deviation(*place, Verdict.ERROR, f"{claim}: {verdicts}")
            elif expected and Verdict.REFUTED.name not in ran:
                yield Deviation(
                    *place, Verdict.REFUTED, f"{claim}: recorded here and did not show: {verdicts}"
                )
            elif not expected and Verdict.REFUTED.name in ran:
                yield Deviation(
                    *place, Verdict.REFUTED, f"{claim}: recorded as gone and showed: {verdicts}"
                )
            elif not expected and not set(ran) <= _gone(fault, str(entry.release)):
                yield Deviation(*place, Verdict.UNKNOWN, f"{claim}: not seen to hold: {verdicts}")


def came_back(recorded: Recorded, entry: Checked) -> Iterator[tuple[RecordedFault, str]]:
    """Faults, each with a claim, that show on a release that is recorded as good."""
    for fault, result in zip(recorded.index.faults, entry.details["recorded"], strict=True):
        if fault.expected(entry.release) is not False:
            continue
        for claim in fault.claims:
            if any(v.get(claim) == Verdict.REFUTED.name for v in result["verdicts"].values()):
                yield fault, claim


def _gone(fault: RecordedFault, release: str) -> set[str]:
    """Verdicts that show a fault gone: on the first good release its premise has to happen.

    Later ones may do better, and not get there.
    """
    is_first = Version(release) == Version(fault.first_good or "0")
    return {Verdict.HELD.name} if is_first else {Verdict.HELD.name, Verdict.VACUOUS.name}


def cells(entry: Checked) -> dict[tuple[str, Engine], set[str]]:
    """By claim and engine, the names of all verdicts, of recorded scenarios and of the search."""
    found: dict[tuple[str, Engine], set[str]] = {}
    for result in entry.details["recorded"]:
        for runner, verdicts in result["verdicts"].items():
            for claim, verdict in verdicts.items():
                found.setdefault((claim, (runner, result["mode"])), set()).add(verdict)
    for outcome in searched(entry):
        part, _, mode = outcome.part.rpartition(" ")
        for runner in RUNNERS if part == _BOTH else (part,):
            key = outcome.claim, _engine(runner, mode)
            found.setdefault(key, set()).add(outcome.verdict_name)
    return found


def _engine(runner: str, mode: str) -> Engine:
    return next(engine for engine in ENGINES if engine == (runner, mode))


def searched(entry: Checked) -> list[Outcome]:
    """What became of the claims in the fresh search, without the recorded faults."""
    return [outcome for outcome in entry.outcomes if not outcome.claim.startswith(RECORDED_FAULT)]


def with_deviations(entry: Checked, found: Sequence[Deviation], package: Path | None) -> Checked:
    """What one release showed, with recorded faults among the outcomes, and lines to blame.

    Args:
        entry: what it showed.
        found: recorded faults that are not where the record has them, on any release.
        package: the folder ``vllm`` of the release, where it is there.
    """
    deviating = {
        deviation.name: deviation for deviation in found if deviation.target == entry.target
    }
    recorded = [
        _outcome(result, deviating.get(result["name"]))
        for result in entry.details.get("recorded", ())
    ]
    return replace(
        entry,
        outcomes=(*searched(entry), *recorded),
        violations=tuple(with_place(violation, package) for violation in entry.violations),
    )


RECORDED_FAULT = "recorded fault "
"""What stands before a fault's name in the place of a claim's id."""


def _outcome(result: Mapping[str, Any], deviation: Deviation | None) -> Outcome:
    """Whether a recorded fault is where the record has it."""
    seen = "\n".join(
        f"{runner}: {claim} {verdict}"
        for runner, verdicts in sorted(result["verdicts"].items())
        for claim, verdict in verdicts.items()
    )
    name, part = f"{RECORDED_FAULT}{result['name']}", f"{result['mode']}, {result['scenario']}"
    if deviation is None:
        return Outcome(name, part, Verdict.HELD, reason=seen)
    return Outcome(name, part, deviation.verdict, reason=deviation.text)
