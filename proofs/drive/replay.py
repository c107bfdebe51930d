"""Run what a file holds once more, and say what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from impl.target import RUNNERS, FunctionTarget, LoopTarget, Runner
from impl.tensors import TensorSettings
from proofs.describe.shape import shape
from proofs.run.record import Monitor, record
from proofs.search.functions.parts import CLAIMS_OF_PART, CheckedPart, findings_on, why_missing
from spec.errors import InputError, NoVerdictError, described
from spec.functions.case_files import Document
from spec.functions.cases import BookCase, FreeCase, GatherCase, WindowCase
from spec.functions.findings import Finding
from spec.monitor.monitor import LoopMonitor, check_trace
from spec.monitor.residency.runners import compare_runners
from spec.record.compare import Difference, first_difference
from spec.record.document import LoopDocument, TraceDocument
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario
from spec.record.steps import Trace
from spec.verdict import Verdict

MakeMonitor: TypeAlias = Callable[[Scenario, Runner], Monitor]
RunnerChoice: TypeAlias = Literal["V1", "V2", "both"]

BOTH: CheckedPart = "V1 with V2"
"""Both runners together, as a part."""


@dataclass(frozen=True)
class Comparison:
    """How a run relates to the recorded one.

    ``num_steps`` counts the steps compared; ``difference`` holds the recorded run first.
    """

    recorded_on: str
    num_steps: int
    difference: Difference | None


@dataclass(frozen=True)
class Replayed:
    """What became of one part, or of the loop with one runner.

    Attributes:
        part: the part of a function-level case, or the runner.
        verdict: of all claims that the run could contradict.
        reason: why the verdict is neither ``HELD`` nor ``REFUTED``.
        trace: the run; ``None`` at function level, or where there was none.
        comparison: with the recorded run, where the file holds one of the same runner.
    """

    part: str
    verdict: Verdict
    reason: str | None = None
    findings: tuple[Finding, ...] | tuple[LoopFinding, ...] = ()
    trace: Trace | None = None
    comparison: Comparison | None = None


def runners_of(document: Document | LoopDocument, choice: RunnerChoice | None) -> list[Runner]:
    """The runners to replay with: by default the recorded one, or both where there is none."""
    if choice is None:
        return [document.runner] if isinstance(document, TraceDocument) else list(RUNNERS)
    return list(RUNNERS) if choice == "both" else [choice]


def replay_case(
    document: Document, target: FunctionTarget, runners: Sequence[Runner], tensors: TensorSettings
) -> list[Replayed]:
    """Give a function-level case to every part of the target that takes it."""
    parts = _parts(document, runners)
    return [_replay_part(document, target, part, tensors) for part in parts]


def _parts(document: Document, runners: Sequence[Runner]) -> list[CheckedPart]:
    case = document.case
    match case:
        case GatherCase():
            together: list[CheckedPart] = [BOTH] if len(runners) > 1 else []
            return [*runners, *together]
        case FreeCase():
            # The case itself does not say whether it breaks an assumption on purpose.
            recorded = {_part_of(finding) for finding in document.findings}
            past: CheckedPart = "free past the prompt"
            return [past if recorded == {past} else "free"]
        case BookCase():
            if case.is_encoder_decoder:
                return ["encoder_decoder_book"]
            return ["book" if case.content_is_hashed else "book of unlike contents"]
        case WindowCase():
            return ["window"]
    return ["row_range"]


def _replay_part(
    document: Document, target: FunctionTarget, part: CheckedPart, tensors: TensorSettings
) -> Replayed:
    missing = why_missing(target, part)
    if missing is not None:
        return Replayed(part, Verdict.ERROR, missing)
    try:
        found = tuple(
            finding
            for finding in findings_on(target, part, document.case, tensors)
            if finding.claim in CLAIMS_OF_PART[part]
        )
    except (InputError, NoVerdictError):
        raise
    except Exception as error:
        return Replayed(part, Verdict.ERROR, described(error))
    return Replayed(part, Verdict.REFUTED if found else Verdict.HELD, findings=found)


def _part_of(finding: Finding) -> str | None:
    """The part that a finding's target ends with."""
    parts = [part for part in CLAIMS_OF_PART if finding.target.endswith(f" {part}")]
    return max(parts, key=len, default=None)


def replay_loop(
    document: LoopDocument,
    target: LoopTarget,
    runner: Runner,
    make_monitor: MakeMonitor,
    *,
    tensors: TensorSettings | None,
    max_passes: int,
) -> Replayed:
    """Run the scenario once more, check every claim, and compare with the recorded run.

    Args:
        runner: the worker's order and gathers.
        make_monitor: makes what judges the run.
        tensors: device, dtype and hidden size; ``None`` runs without tensors.
        max_passes: passes after which to stop.
    """
    scenario = document.scenario
    missing = target.missing(scenario, runner)
    if missing is not None:
        return Replayed(runner, Verdict.ERROR, missing)
    monitor = make_monitor(scenario, runner)
    try:
        recording = record(
            target, scenario, runner, tensors=tensors, max_passes=max_passes, monitor=monitor
        )
    except (InputError, NoVerdictError):
        raise
    except Exception as error:
        return Replayed(runner, Verdict.ERROR, described(error))
    trace, found = recording.trace, _shaped(recording.findings, scenario)
    verdict, reason = _judge(trace, found)
    return Replayed(runner, verdict, reason, found, trace, _compare(document, trace))


def _shaped(findings: tuple[LoopFinding, ...], scenario: Scenario) -> tuple[LoopFinding, ...]:
    """With the scenario's shape, so that a shrunk scenario has the fingerprint of its search."""
    return tuple(replace(finding, shape=shape(scenario)) for finding in findings)


def judge_recorded(document: LoopDocument) -> Replayed:
    """Check every claim on a recorded run as it stands, without running anything.

    Raises:
        InputError: the file holds no run.
    """
    if not isinstance(document, TraceDocument):
        raise InputError("only a trace holds a run that can be judged as it was recorded")
    trace = document.trace
    found = _shaped(check_trace(trace), document.scenario)
    verdict, reason = _judge(trace, found)
    return Replayed(document.runner, verdict, reason, found, trace)


def replay_on_loop(
    document: LoopDocument,
    target: LoopTarget,
    runners: Sequence[Runner],
    tensors: TensorSettings | None,
    max_passes: int,
) -> list[Replayed]:
    """Run the scenario with each runner, and compare the runners where both ran.

    Arguments as of :func:`replay_loop`.
    """
    replayed = [
        replay_loop(document, target, name, LoopMonitor, tensors=tensors, max_passes=max_passes)
        for name in runners
    ]
    both = agreement(replayed)
    return replayed if both is None else [*replayed, both]


def agreement(replayed: Sequence[Replayed]) -> Replayed | None:
    """Whether both runners read the same; ``None`` unless both ran."""
    traces = {result.part: result.trace for result in replayed if result.trace is not None}
    if not traces.keys() >= set(RUNNERS):
        return None
    found = _shaped(compare_runners(traces["V1"], traces["V2"]), traces["V1"].scenario)
    return Replayed(BOTH, Verdict.REFUTED if found else Verdict.HELD, findings=found)


def gone(
    document: Document | LoopDocument, replayed: Sequence[Replayed]
) -> tuple[Finding, ...] | tuple[LoopFinding, ...]:
    """Findings that the file records and that did not show again.

    Those on a part or with a runner that was not run again are left out.
    """
    parts = {result.part for result in replayed}
    shown = {(found.claim, found.mechanism) for result in replayed for found in result.findings}
    if isinstance(document, Document):
        shown_by = {
            (result.part, found.claim, found.mechanism)
            for result in replayed
            for found in result.findings
        }
        return tuple(
            found
            for found in document.findings
            if (part := _part_of(found)) in parts
            and (part, found.claim, found.mechanism) not in shown_by
        )
    if isinstance(document, TraceDocument) and document.runner not in parts:
        return ()
    return tuple(
        found
        for found in document.findings
        if (found.claim, found.mechanism) not in shown
        and (BOTH in parts or found.claim not in CLAIMS_OF_PART[BOTH])
    )


def _judge(trace: Trace, found: Sequence[LoopFinding]) -> tuple[Verdict, str | None]:
    """The verdict of a run: only one that came to rest without a finding holds."""
    if found:
        return Verdict.REFUTED, None
    if not any(step.kind == "pass" for step in trace.steps):
        return Verdict.VACUOUS, "no pass ran"
    match trace.ending:
        case "idle":
            return Verdict.HELD, None
        case "error":
            return Verdict.ERROR, "scheduling raised, and no claim says so"
        case "limit":
            return Verdict.UNKNOWN, "the limit of passes was hit before the run came to rest"
        case "stopped":
            return Verdict.UNKNOWN, "the run was stopped before it came to rest"


def _compare(document: LoopDocument, trace: Trace) -> Comparison | None:
    if not isinstance(document, TraceDocument) or document.runner != trace.runner:
        return None
    recorded, replayed = document.steps, trace.steps
    # Only a run that came to its end says that nothing follows.
    if document.ending in ("limit", "stopped"):
        replayed = replayed[: len(recorded)]
    if trace.ending in ("limit", "stopped"):
        recorded = recorded[: len(replayed)]
    return Comparison(
        f"{document.target} {document.runner}",
        min(len(recorded), len(replayed)),
        first_difference(recorded, replayed),
    )
