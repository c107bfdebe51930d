"""A counterexample of whole runs as the run of the source itself, on plain integers."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from impl.vllm.launch.source import Source
from proofs.describe.shape import shape
from proofs.search.runs.results import LoopCounterexample
from proofs.source.elsewhere import Elsewhere
from proofs.source.jobs import Scope
from proofs.source.passes.run_scenario import FEW_PASSES
from spec.functions.findings import Finding
from spec.monitor.monitor import LoopMonitor
from spec.record.scenario import Scenario
from spec.record.steps import Step, Trace


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
    code = Elsewhere(source.package, source.name, Scope(1, FEW_PASSES))
    with closing(code):
        for step in code.steps(case):
            steps.append(step)
            for found in monitor.observe(step):
                if (found.claim, found.mechanism) == (finding.claim, finding.mechanism):
                    target = f"the source of {source.name}, on plain integers"
                    trace = Trace(case, target, "V1", tuple(steps), "stopped")
                    return LoopCounterexample(replace(found, shape=shape(case)), trace, ("V1",))
    return None
