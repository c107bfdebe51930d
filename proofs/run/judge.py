"""Run one scenario on the chosen runners, and judge what was seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from impl.target import RUNNERS, LoopTarget, Runner
from impl.tensors import TensorSettings
from impl.time_limit import TimeLimitError
from proofs.run.record import record
from spec.errors import InputError, NoVerdictError, described
from spec.monitor.monitor import LoopMonitor, compare_runners
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario
from spec.record.steps import Trace


@dataclass
class Judged:
    """One scenario, run and judged.

    Attributes:
        findings: what each runner's run contradicts.
        premises: how often each claim's premise happened, by runner.
        differences: where the runs of both runners differ.
        missing: why a runner could not be run.
        failed: what a runner raised outside of what it may.
        is_endless: a run had to be ended.
    """

    traces: dict[Runner, Trace] = field(default_factory=dict)
    findings: dict[Runner, tuple[LoopFinding, ...]] = field(default_factory=dict)
    premises: dict[Runner, Counter[str]] = field(default_factory=dict)
    differences: tuple[LoopFinding, ...] = ()
    missing: dict[Runner, str] = field(default_factory=dict)
    failed: dict[Runner, str] = field(default_factory=dict)
    is_endless: bool = False


def run_and_judge(
    target: LoopTarget,
    scenario: Scenario,
    runners: tuple[Runner, ...],
    tensors: TensorSettings | None,
    should_compare: bool = True,
) -> Judged:
    """Run a scenario and check every claim on it.

    Args:
        scenario: a legal scenario.
        runners: whose order and gathers run.
        tensors: device, dtype and hidden size; ``None`` runs on rows alone.
        should_compare: whether to compare the runs where both were made.

    Raises:
        NoVerdictError: the target is gone, so that nothing more can be run on it.
    """
    judged = Judged()
    for runner in runners:
        reason = target.missing(scenario, runner)
        if reason is not None:
            judged.missing[runner] = reason
            continue
        monitor = LoopMonitor(scenario, runner)
        try:
            recording = record(target, scenario, runner, tensors=tensors, monitor=monitor)
        except (InputError, TimeLimitError) as error:
            judged.failed[runner] = str(error)
            judged.is_endless |= isinstance(error, TimeLimitError)
            continue
        except NoVerdictError:
            raise
        except Exception as error:
            judged.failed[runner] = described(error)
            continue
        judged.traces[runner] = recording.trace
        judged.findings[runner] = recording.findings
        judged.premises[runner] = monitor.premises
    if should_compare and len(judged.traces) == len(RUNNERS):
        first, second = (judged.traces[runner] for runner in RUNNERS)
        judged.differences = tuple(compare_runners(first, second))
    return judged
