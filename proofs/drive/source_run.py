"""A counterexample of whole runs as the run of the source itself, on plain integers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from impl.vllm.launch.source import Source
from proofs.describe.shape import shape
from proofs.search.runs.results import LoopCounterexample
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_setup import RunCode
from proofs.source.passes.runs import run_plain
from spec.functions.findings import Finding
from spec.monitor.monitor import LoopMonitor
from spec.record.scenario import Scenario
from spec.record.steps import Step, Trace

_MOST_PASSES = 60


def source_run(source: Source, finding: Finding) -> LoopCounterexample | None:
    """The finding's scenario as the source itself runs it; ``None`` where it breaks nothing.

    Args:
        finding: what was refuted on whole runs of its source.

    Raises:
        NotModelled: the code uses something that is not modelled.
    """
    case = finding.case
    assert isinstance(case, Scenario), "only whole runs can be run"
    steps: list[Step] = []
    monitor = LoopMonitor(case, "V1")
    num_passes = 0
    for step in run_plain(_code(source.package), case):
        steps.append(step)
        num_passes += step.kind == "pass"
        for found in monitor.observe(step):
            if (found.claim, found.mechanism) == (finding.claim, finding.mechanism):
                target = f"the source of {source.name}, on plain integers"
                trace = Trace(case, target, "V1", tuple(steps), "stopped")
                return LoopCounterexample(replace(found, shape=shape(case)), trace, ("V1",))
        if num_passes > _MOST_PASSES:
            break
    return None


@cache
def _code(package: Path) -> RunCode:
    # Parsing the larger files of a release takes a second.
    return RunCode(ReleaseSource(package, OVERRIDES))
