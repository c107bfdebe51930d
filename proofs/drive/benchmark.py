"""How fast a target runs the loop: a fixed scenario, modes by turns, medians."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TypeAlias

from impl.reference.engine import Engine
from impl.target import Runner
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from impl.vllm.runs.target import VllmLoop
from proofs.run.record import record
from spec.errors import InputError
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest

Target: TypeAlias = ReferenceLoop | VllmLoop

PLAIN = "recorder off"
"""The mode with which others are compared."""

MIN_REPETITIONS = 3

_TEXT, _ITEM, _GENERATED = 40, 96, 300
_NUM_ITEMS = 3


@dataclass(frozen=True)
class Measurement:
    """How fast one mode ran.

    A pass is one ``schedule()`` with its worker step and its update. A step is what a trace has an
    entry for: an event, a pass or an update; where nothing is recorded, the steps are those that a
    recorder would have seen.

    Attributes:
        mode: what was switched on; without tensors unless it names them.
        runner: the worker's order and gathers.
        passes: passes of one run of the scenario.
        steps: steps of one run of the scenario.
        cpu_seconds: processor time of each repetition.
        wall_seconds: how long each repetition took by the clock.
    """

    mode: str
    runner: Runner
    passes: int
    steps: int
    cpu_seconds: list[float] = field(default_factory=list)
    wall_seconds: list[float] = field(default_factory=list)

    @property
    def cpu(self) -> float:
        """Processor time of a run (seconds), the median over the repetitions."""
        return median(self.cpu_seconds)

    @property
    def wall(self) -> float:
        """Time of a run by the clock (seconds), the median over the repetitions."""
        return median(self.wall_seconds)

    def times(self, plain: Measurement) -> float:
        """How many times the processor time of another mode it takes."""
        return self.cpu / plain.cpu


def benchmark_scenario(num_requests: int) -> Scenario:
    """The fixed scenario: multimodal prompts of some hundred tokens, then decoding with drafts.

    Requests arrive a few passes apart and share one of their three items, a third of each item's
    positions are text, and the cache holds fewer items than there are, so that hits, evictions and
    waiting all happen. Each verified step accepts 0 to 2 of 2 drafts.

    Raises:
        InputError: fewer than one request.
    """
    num_rows = sum(_mask())
    per_request = _NUM_ITEMS * (_TEXT + _ITEM) + _TEXT
    scenario = Scenario(
        EngineConfig(
            max_num_batched_tokens=256,
            encoder_compute_budget=num_rows,
            encoder_cache_size=2 * num_rows,
            num_kv_blocks=max(1, num_requests) * (per_request + _GENERATED + 16) // 16 + 16,
            block_size=16,
            max_num_seqs=max(1, num_requests),
            scheduler_lookahead=1,
            gather_lookahead=1,
            num_speculative_tokens=2,
        ),
        tuple(_request(index, per_request) for index in range(num_requests)),
    )
    scenario.validate()
    return scenario


def _mask() -> tuple[bool, ...]:
    return tuple(position % 3 != 0 for position in range(_ITEM))


def _request(index: int, num_prompt_tokens: int) -> ScenarioRequest:
    names = ("shared", *(f"item-{index}-{number}" for number in range(1, _NUM_ITEMS)))
    features = tuple(
        Feature(_TEXT + number * (_TEXT + _ITEM), _ITEM, name, _mask())
        for number, name in enumerate(names)
    )
    accepted = tuple((index + step) % 3 for step in range(_GENERATED))
    return ScenarioRequest(
        num_prompt_tokens,
        features,
        arrival=2 * index,
        max_tokens=_GENERATED,
        accepted_drafts=accepted,
    )


def measure(
    target: Target,
    scenario: Scenario,
    runner: Runner,
    tensors: TensorSettings | None,
    seconds: float,
) -> list[Measurement]:
    """Measure every mode on one runner, by turns, so that a busy machine slows all of them alike.

    Args:
        runner: the worker's order and gathers.
        tensors: where the tensors of the reference's torch variant live; ``None`` leaves it out.
        seconds: time for all modes of the runner; three repetitions are made all the same.

    Raises:
        InputError: the target cannot run the scenario.
    """
    reason = target.missing(scenario, runner)
    if reason is not None:
        raise InputError(f"{target.name} cannot run the scenario on {runner}: {reason}")
    modes = _modes(target, scenario, runner, tensors)
    # These first runs are not counted: they fill caches and load what is imported late.
    steps = record(target, scenario, runner).trace.steps
    passes = sum(step.kind == "pass" for step in steps)
    measured = [Measurement(mode, runner, passes, len(steps)) for mode in modes]
    for run in modes.values():
        run()
    taken = 0.0
    while len(measured[0].cpu_seconds) < MIN_REPETITIONS or taken < seconds:
        for measurement in measured:
            gc.collect()  # What one mode leaves behind is not for the next one to clear up.
            wall, cpu = time.perf_counter(), time.process_time()
            modes[measurement.mode]()
            measurement.cpu_seconds.append(time.process_time() - cpu)
            measurement.wall_seconds.append(time.perf_counter() - wall)
            taken += measurement.wall_seconds[-1]
    return measured


def _modes(
    target: Target, scenario: Scenario, runner: Runner, tensors: TensorSettings | None
) -> Mapping[str, Callable[[], None]]:
    def plain(settings: TensorSettings | None) -> None:
        if isinstance(target, VllmLoop):
            real = target.engine(scenario, runner, settings, record=False)
            while real.advance():
                pass
            return
        engine = Engine(scenario, target.parts, runner, settings)
        while engine.advance():
            pass

    def recorded() -> None:
        record(target, scenario, runner)

    def monitored() -> None:
        record(target, scenario, runner, monitor=LoopMonitor(scenario, runner))

    modes: dict[str, Callable[[], None]] = {
        PLAIN: lambda: plain(None),
        "recorder on": recorded,
        "recorder and monitor on": monitored,
    }
    if tensors is not None:
        modes[f"recorder off, tensors on {tensors.device}"] = lambda: plain(tensors)
    return modes
