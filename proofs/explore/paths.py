"""Paths of a graph, and the scenarios with which a target takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from proofs.explore.case import Case
from proofs.explore.choices import Choice
from proofs.explore.graph import Graph
from proofs.explore.rounds import Clock, Round, make_round
from proofs.explore.transitions import Transitions
from spec.model.layout import Layout
from spec.model.update import initial_state
from spec.record.scenario import FailedLoad, Scenario


def scenario_of(case: Case, layout: Layout, path: Iterable[Choice]) -> Scenario:
    """The scenario whose run makes the choices of a path, and none after it.

    Args:
        path: choices from the beginning, one for each pass.
    """
    transitions, state, clock = Transitions(layout), initial_state(layout), Clock()
    rounds = []
    for choice in path:
        made, steps = make_round(transitions, state, choice, clock)
        clock.tick(made)
        state = steps[-1].state
        rounds.append(made)
    return scenario_of_rounds(case, rounds)


def scenario_of_rounds(case: Case, rounds: Sequence[Round]) -> Scenario:
    """The scenario whose run makes some rounds, from the beginning.

    Requests that have not arrived by then arrive in the pass after them.
    """
    arrivals: dict[int, int] = {}
    aborts: dict[int, int] = {}
    resets: list[int] = []
    answers: list[list[int]] = [[] for _ in case.requests]
    loads: dict[int, FailedLoad] = {}
    clock = Clock()
    for index, made in enumerate(rounds):
        choice = made.choice
        for request in choice.arrivals:
            arrivals[request] = index
        if choice.abort >= 0:
            aborts[choice.abort] = index
        if choice.reset:
            resets.append(index)
        for request, accepted in made.answers:
            answers[request].append(accepted)
        updated = clock.tick(made)
        if choice.load is not None:
            fallen, left = choice.load
            loads[fallen] = FailedLoad(updated, left)
    requests = tuple(
        replace(
            source,
            arrival=arrivals.get(index, len(rounds)),
            abort=aborts.get(index),
            accepted_drafts=tuple(answers[index]),
            failed_loads=(loads[index],) if index in loads else (),
        )
        for index, source in enumerate(case.requests)
    )
    return Scenario(case.config, requests, tuple(resets))


def shortened(scenario: Scenario, path: Sequence[Choice]) -> Scenario:
    """A scenario without the requests that do not arrive within the path."""
    arrived = {request for choice in path for request in choice.arrivals}
    if len(arrived) == len(scenario.requests):
        return scenario
    kept = tuple(r for index, r in enumerate(scenario.requests) if index in arrived)
    return replace(scenario, requests=kept)


def covering_paths(graph: Graph) -> list[list[int]]:
    """Paths from the beginning, as edges, that contain every edge of the graph.

    Each goes by a shortest way to the first edge that no path contains yet, and then on by further
    ones as long as there are any. Nothing follows an error.
    """
    rest: dict[int, list[int]] = {}
    for number, (source, _, _) in enumerate(graph.edges):
        rest.setdefault(source, []).append(number)
    covered = [False] * len(graph.edges)
    paths = []
    for number in range(len(graph.edges)):
        if covered[number]:
            continue
        path = [number]
        while (parent := graph.parents[graph.edges[path[-1]][0]]) >= 0:
            path.append(parent)
        path.reverse()
        for edge in path:
            covered[edge] = True
        while path[-1] not in graph.errors:
            following = rest.get(graph.edges[path[-1]][2], [])
            while following and covered[following[-1]]:
                following.pop()
            if not following:
                break
            path.append(following[-1])
            covered[following[-1]] = True
        paths.append(path)
    return paths
