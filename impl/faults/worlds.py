"""Worlds that break an assumption about the loop which no scenario can break.

A world runs the reference, faulty or not, and answers it as no engine should be answered. It shows
what :mod:`spec.claims.assumptions` says of the assumption, and is no fault of any code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

from impl.reference.engine import Engine
from impl.reference.parts import Parts, with_methods
from impl.reference.scheduling.output import SchedulerOutput
from impl.reference.scheduling.scheduled_request import SchedulerRequest
from impl.reference.scheduling.updates import RequestInFlight
from impl.reference.worker.worker import Worker
from impl.target import Runner
from spec.errors import InputError
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import Step

World: TypeAlias = Callable[[Scenario, Runner, Parts], tuple[Scenario, Iterator[Step]]]
"""Runs parts on a scenario; what was run, with the world's own events, and the steps."""

_ARRIVALS = 60
"""Arrivals that stand for arrivals without end; far more passes than any use here looks at."""


def notices_overtake(
    scenario: Scenario, runner: Runner, parts: Parts
) -> tuple[Scenario, Iterator[Step]]:
    """The worker executes each pass's eviction notices one pass too soon.

    The scheduler reads nothing of the worker, so that the worker can be run anew afterwards.
    """
    return scenario, _overtaken(scenario, runner, parts)


def _overtaken(scenario: Scenario, runner: Runner, parts: Parts) -> Iterator[Step]:
    outputs: list[SchedulerOutput] = []
    in_order = parts.worker.execute

    def keep(self: Any, output: SchedulerOutput) -> Any:
        outputs.append(output)
        return in_order(self, output)

    keeping = replace(parts, worker=with_methods(parts.worker, execute=keep))
    steps = list(Engine(scenario, keeping, runner, record=True).steps())
    worker: Worker = parts.worker(
        parts,
        runner,
        gather_lookahead=scenario.config.gather_lookahead,
        is_encoder_decoder=scenario.config.is_encoder_decoder,
        tensors=None,
    )
    following = chain(outputs[1:], [SchedulerOutput()])
    pairs = zip(outputs, following, strict=True)
    for step in steps:
        if step.kind == "event" and step.event == "reset":
            worker.reset()
        if step.kind != "pass" or step.worker is None:
            yield step
            continue
        output, later = next(pairs)
        notices = [*output.free_encoder_mm_hashes, *later.free_encoder_mm_hashes]
        seen = worker.execute(replace(output, free_encoder_mm_hashes=notices))
        yield replace(step, worker=seen)


def encoder_budget_varies(
    scenario: Scenario, runner: Runner, parts: Parts
) -> tuple[Scenario, Iterator[Step]]:
    """Every second pass, the first one too, may run the encoder on one row more."""
    correct = parts.scheduler.schedule
    passes: list[None] = []

    def schedule(self: Any) -> Any:
        passes.append(None)
        config = scenario.config
        more = config.encoder_compute_budget + len(passes) % 2
        self.config = replace(config, encoder_compute_budget=more)
        return correct(self)

    varied = replace(parts, scheduler=with_methods(parts.scheduler, schedule=schedule))
    return scenario, Engine(scenario, varied, runner, record=True).steps()


def arrivals_go_on(
    scenario: Scenario, runner: Runner, parts: Parts
) -> tuple[Scenario, Iterator[Step]]:
    """A short request of text arrives before every pass."""
    arrivals = (ScenarioRequest(1, arrival=before) for before in range(1, _ARRIVALS))
    longer = replace(scenario, requests=(*scenario.requests, *arrivals))
    return longer, Engine(longer, parts, runner, record=True).steps()


def nothing_is_sampled(
    scenario: Scenario, runner: Runner, parts: Parts
) -> tuple[Scenario, Iterator[Step]]:
    """A step that reaches the end of what is known yields no token."""

    def emit(self: Any, entry: RequestInFlight, accepted: int, is_stale: bool) -> int:
        request: SchedulerRequest = entry.request
        if not is_stale and request.num_output_placeholders:
            request.num_output_placeholders -= 1 + accepted
        return 0

    mute = replace(parts, updates=with_methods(parts.updates, _emit=emit))
    return scenario, Engine(scenario, mute, runner, record=True).steps()


WORLDS: dict[str, World] = {
    "notices-overtake": notices_overtake,
    "encoder-budget-varies": encoder_budget_varies,
    "arrivals-go-on": arrivals_go_on,
    "nothing-is-sampled": nothing_is_sampled,
}


def world(name: str) -> World:
    """The world with the given name.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    run_world = WORLDS.get(name)
    if run_world is None:
        raise InputError(f"unknown world {name!r}; known worlds: {', '.join(sorted(WORLDS))}")
    return run_world
