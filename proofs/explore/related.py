"""Every round of a graph is laid against the relation that the unbounded proofs are about.

A round is looked at once, from one way that leads to where it begins. That is enough: whichever way
leads to a state of the graph, projections, book and passes in flight stand there alike but for what
is only remembered, and that is checked, too. So every step of every run in the scope lies in the
relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from proofs.explore.choices import Choice
from proofs.explore.graph import Graph
from proofs.explore.rounds import Begun, Clock, begin_round, update_round
from spec.model.layout import Layout
from spec.model.run import ModelStep
from spec.model.seen import SeenSteps
from spec.model.state import State
from spec.record.scenario import Scenario
from spec.relation.runs.outside import outside_in
from spec.relation.runs.projection import Moves
from spec.relation.runs.run import Run


@dataclass(frozen=True)
class Outside:
    """A round that is not in the relation.

    Attributes:
        edge: its number in the graph.
        step: number of the step, counted on a shortest path to it.
        what: the step, and the conjunct in which it differs.
    """

    edge: int
    step: int
    what: str


@dataclass
class _Way:
    """A way from the beginning: what its run shows, its steps, and the numbers of its passes."""

    run: Run
    clock: Clock
    steps: int = 0

    def fork(self) -> _Way:
        return _Way(self.run.fork(), self.clock.fork(), self.steps)


class _Relating:
    """A graph while its rounds are laid against the relation."""

    def __init__(self, scenario: Scenario, layout: Layout, graph: Graph, moves: Moves) -> None:
        self._graph = graph
        self._seen = SeenSteps(layout)
        # Nodes that differ only in what may still come from outside share their rounds.
        self._ways: dict[State, _Way] = {graph.nodes[0][0]: _Way(Run(scenario, moves), Clock())}
        self._done: set[tuple[State, Choice]] = set()

    def first_outside(self) -> Outside | None:
        """The first round that is not in the relation."""
        edges, nodes = self._graph.edges, self._graph.nodes
        for (source, *_), group in groupby(range(len(edges)), self._beginning):
            state = nodes[source][0]
            numbers = [number for number in group if (state, edges[number][1]) not in self._done]
            if not numbers:
                continue
            self._done.update((state, edges[number][1]) for number in numbers)
            outside = self._rounds(state, numbers)
            if outside is not None:
                return outside
        return None

    def _beginning(self, number: int) -> tuple[int, tuple[int, ...], int, bool]:
        """What rounds have in common that have their events and their pass in common."""
        source, choice, _ = self._graph.edges[number]
        return source, choice.arrivals, choice.abort, choice.reset

    def _rounds(self, state: State, numbers: Sequence[int]) -> Outside | None:
        """Rounds that begin alike."""
        way = self._ways[state].fork()
        first = self._graph.edges[numbers[0]][1]
        begun = begin_round(self._graph.made, state, first, way.clock)
        for step in begun.steps:
            what = self._observe(way, step)
            if what is not None:
                return Outside(numbers[0], way.steps - 1, what)
        for number in numbers:
            end = way if number == numbers[-1] else way.fork()
            what = self._end(number, begun, end)
            if what is not None:
                return Outside(number, end.steps - 1, what)
        return None

    def _end(self, number: int, begun: Begun, way: _Way) -> str | None:
        """The end of a round, and whether it leads where other ways lead."""
        _, choice, aim = self._graph.edges[number]
        last = begun.steps[-1]
        if not begun.is_over:
            last, _ = update_round(self._graph.made, begun, choice, way.clock)
            what = self._observe(way, last)
            if what is not None:
                return what
        if last.error is not None:
            return None
        state = self._graph.nodes[aim][0]
        if last.state != state:
            return f"the graph has {state}, the same round made again {last.state}"
        way.clock.go_on(begun.runs, not begun.is_over)
        earlier = self._ways.setdefault(state, way)
        if earlier is way:
            return None
        parts = way.run.parts_from(earlier.run)
        return None if parts is None else f"two ways to one state part in the relation: {parts}"

    def _observe(self, way: _Way, step: ModelStep) -> str | None:
        seen = self._seen.step(step)
        way.steps += 1
        if not way.run.observe(seen):
            return None
        outside = outside_in(way.run, way.steps - 1, seen)
        return f"outside the proof: {outside[0].describe()}" if outside else None


def first_outside(
    scenario: Scenario, layout: Layout, graph: Graph, moves: Moves | None = None
) -> Outside | None:
    """The first round of a graph that is not in the relation, or ``None``.

    Args:
        scenario: the requests and the settings, without any choice.
        graph: all that can happen.
        moves: what is known of transitions; graphs that share it are faster.
    """
    return _Relating(scenario, layout, graph, moves or Moves()).first_outside()
