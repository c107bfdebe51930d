"""How fast the reference runs the loop: a fixed scenario, several repetitions, medians."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from impl.reference.engine import Engine
from impl.reference.loop_target import ReferenceLoop
from impl.target import Runner
from impl.tensors import TensorSettings
from proofs.loop.record import record
from spec.feature import Feature
from spec.loop.config import EngineConfig
from spec.loop.monitor import LoopMonitor
from spec.loop.scenario import Scenario, ScenarioRequest

MIN_REPETITIONS = 3

_TEXT, _ITEM, _GENERATED = 40, 96, 300
_NUM_ITEMS = 3


@dataclass(frozen=True)
class Measurement:
    """Passes per second of one mode.

    Attributes:
        mode: what was switched on; without tensors unless it names them.
        runner: the worker's order and gathers.
        passes: passes of one run of the scenario.
        seconds: how long each repetition took.
    """

    mode: str
    runner: Runner
    passes: int
    seconds: tuple[float, ...]

    @property
    def passes_per_second(self) -> float:
        """The median over the repetitions."""
        return self.passes / median(self.seconds)

    @property
    def fastest(self) -> float:
        """The fastest repetition, for machines that do something else now and then."""
        return self.passes / min(self.seconds)


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
    scenario: Scenario, runner: Runner, tensors: TensorSettings | None, seconds: float
) -> list[Measurement]:
    """Measure every mode on one runner.

    Args:
        scenario: what to run.
        runner: the worker's order and gathers.
        tensors: where the torch variant's tensors live; ``None`` leaves it out.
        seconds: time for each mode; at least three repetitions are made all the same.
    """
    target = ReferenceLoop()

    def unrecorded(settings: TensorSettings | None) -> int:
        engine = Engine(scenario, target.parts, runner, settings)
        passes = 0
        while engine.advance():
            passes += 1
        return passes

    def monitored() -> int:
        monitor = LoopMonitor(scenario, runner)
        recording = record(target, scenario, runner, monitor=monitor)
        return sum(step.kind == "pass" for step in recording.trace.steps)

    modes: dict[str, Callable[[], int]] = {
        "recorder off": lambda: unrecorded(None),
        "recorder and monitor on": monitored,
    }
    if tensors is not None:
        modes[f"recorder off, tensors on {tensors.device}"] = lambda: unrecorded(tensors)
    return [_measure(mode, runner, run, seconds) for mode, run in modes.items()]


def _measure(mode: str, runner: Runner, run: Callable[[], int], seconds: float) -> Measurement:
    passes = run()  # The first run is not counted: it fills caches and loads what is imported late.
    taken: list[float] = []
    while len(taken) < MIN_REPETITIONS or sum(taken) < seconds:
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return Measurement(mode, runner, passes, tuple(taken))
