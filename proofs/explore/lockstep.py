"""The reference walks every edge of a graph beside the model."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from impl.reference.engine import Engine
from impl.target import Runner
from impl.targets.runs import ReferenceLoop
from proofs.explore.case import Case
from proofs.explore.graph import Graph
from proofs.explore.paths import covering_paths, scenario_of_rounds
from proofs.explore.rounds import Clock, Round, make_round
from spec.model.agreement import disagreement
from spec.model.layout import Layout
from spec.model.run import ModelStep
from spec.record.scenario import Scenario
from spec.record.steps import Step


@dataclass(frozen=True)
class Difference:
    """Where a target and the model part."""

    scenario: Scenario
    step: int
    what: str

    __pydantic_config__ = {"extra": "forbid", "strict": True}


@dataclass
class Lockstep:
    """What was walked: runs, their steps, edges, and the first difference."""

    runs: int = 0
    steps: int = 0
    edges: int = 0
    difference: Difference | None = None


def walk(
    case: Case,
    layout: Layout,
    graph: Graph,
    target: ReferenceLoop,
    runner: Runner,
    *,
    record_calls: bool = True,
) -> Lockstep:
    """Let the reference walk every edge of a graph, and compare each of its steps with the model's.

    A run goes over edges that were compared before to those that were not; only these are compared.

    Args:
        graph: all that can happen.
        record_calls: whether to compare the calls to the book and to the KV manager, too; states,
            batches, encoder inputs, notices, outcomes and the worker are compared in any case.
            Slower by a third.
    """
    walked = Lockstep()
    cached: dict[int, Round] = {}
    for path in covering_paths(graph):
        rounds: list[Round] = []
        before: list[Round] = []
        expected: list[ModelStep | None] = []
        clock = Clock()
        for edge in path:
            made = cached.get(edge)
            if made is None:
                source, choice, aim = graph.edges[edge]
                made, made_steps = make_round(graph.made, graph.nodes[source][0], choice, clock)
                cached[edge] = made
                expected += made_steps
                reason = _lost(graph, aim, made_steps)
                if reason is not None:
                    scenario = scenario_of_rounds(case, [*rounds, made])
                    walked.difference = Difference(scenario, len(expected), reason)
                    return walked
            elif expected:
                expected += [None] * made.num_steps
            else:
                before.append(made)
            rounds.append(made)
            clock.tick(made)
        walked.runs += 1
        walked.steps += len(expected) + sum(made.num_steps for made in before)
        scenario = scenario_of_rounds(case, rounds)
        engine = Engine(scenario, target.parts, runner, record=record_calls)
        steps = engine.steps()
        if record_calls:
            deque(islice(steps, sum(made.num_steps for made in before)), maxlen=0)
        else:
            for _ in before:
                engine.advance()
        walked.difference = _compare(layout, expected, scenario, steps, record_calls)
        if walked.difference is not None:
            return walked
    walked.edges = len(cached)
    return walked


def _lost(graph: Graph, aim: int, steps: list[ModelStep]) -> str | None:
    """Whether a round made again leads elsewhere than its edge."""
    last = steps[-1]
    if last.error is not None or last.state == graph.nodes[aim][0]:
        return None
    return f"the graph has {graph.nodes[aim][0]}, the same round made again {last.state}"


def _compare(
    layout: Layout,
    expected: list[ModelStep | None],
    scenario: Scenario,
    seen: Iterator[Step],
    record_calls: bool,
) -> Difference | None:
    """Where a run parts from the steps expected of it; ``None`` stands for one compared before."""
    for number, step in enumerate(expected):
        trace_step = next(seen, None)
        if trace_step is None:
            return Difference(scenario, number, "the target ends")
        if step is not None:
            what = disagreement(layout, step, trace_step, with_calls=record_calls)
            if what is not None:
                return Difference(scenario, number, what)
    return None
