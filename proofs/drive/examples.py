"""A scenario that was run on a target, and the violations that its runs show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from impl.target import RUNNERS
from proofs.drive.origin import Origin
from proofs.drive.replay import BOTH, Replayed
from proofs.run.targets import VllmName
from proofs.search.runs.results import LoopCounterexample
from spec.record.run_findings import LoopFinding


@dataclass(frozen=True)
class Replay:
    """A file that was run.

    Attributes:
        origin: what it was run on.
        replayed: what became of each part or runner.
    """

    origin: Origin
    vllm: VllmName | None
    replayed: tuple[Replayed, ...]

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.origin.target

    @property
    def examples(self) -> tuple[LoopCounterexample, ...]:
        """Each violation by a run, once, with the runners that show it."""
        return examples_of(self.replayed)


def examples_of(replayed: Sequence[Replayed]) -> tuple[LoopCounterexample, ...]:
    """Each violation by a run, once, with the runners that show it."""
    found: dict[str, LoopCounterexample] = {}
    any_trace = next((result.trace for result in replayed if result.trace is not None), None)
    for result in replayed:
        trace = any_trace if result.part == BOTH else result.trace
        for finding in result.findings:
            if not isinstance(finding, LoopFinding) or trace is None:
                continue
            shown_by = RUNNERS if result.part == BOTH else (trace.runner,)
            earlier = found.get(finding.fingerprint)
            if earlier is not None:
                shown_by = (*earlier.runners, *(r for r in shown_by if r not in earlier.runners))
                found[finding.fingerprint] = LoopCounterexample(
                    earlier.finding, earlier.trace, shown_by
                )
            else:
                found[finding.fingerprint] = LoopCounterexample(finding, trace, shown_by)
    return tuple(found.values())
