"""Everything that can happen to one set of requests under one configuration, as a graph.

A node is the state in which a round begins, with what may still come from outside. A round is the
events before a pass, the pass, and the update that falls due. The choices of a round are the
events, the drafts accepted and a failed load; everything else follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from proofs.explore.choices import Choice, Choices, accepted_choices
from proofs.explore.transitions import Transitions
from spec.model.claims import NO_STALL, NO_THRASH
from spec.model.judge import Judge
from spec.model.layout import Layout
from spec.model.state import ABSENT, FINISHED, LIVE, State
from spec.model.update import arrive, initial_state, is_due, reset

Node: TypeAlias = tuple[State, bool]
"""A state, and whether the disturbance may still happen. Who may still arrive is in the state."""

Edge: TypeAlias = tuple[int, Choice, int]
"""From which node, by which choice, to which."""


@dataclass
class Graph:
    """What was found.

    Attributes:
        nodes: the nodes in the order in which they were found; the first is the beginning.
        depths: passes up to each node.
        made: every pass, update and abort, as they were made.
        edges: every round.
        transitions: events, passes and updates that were made.
        broken: for each claim that some path breaks, the edge that shows it first.
        premises: claims whose premise happened.
        parents: the edge by which each node was found; -1 for the beginning.
        errors: edges that end in an error; nothing follows them.
    """

    nodes: list[Node]
    depths: list[int]
    made: Transitions
    edges: list[Edge] = field(default_factory=list)
    transitions: int = 0
    broken: dict[int, int] = field(default_factory=dict)
    premises: int = 0
    parents: list[int] = field(default_factory=list)
    errors: set[int] = field(default_factory=set)

    @property
    def depth(self) -> int:
        """Passes on the longest of the shortest paths."""
        return self.depths[-1]

    def path(self, edge: int) -> list[Choice]:
        """The choices of a shortest path that ends with the edge."""
        choices = []
        while True:
            source, choice, _ = self.edges[edge]
            choices.append(choice)
            edge = self.parents[source]
            if edge < 0:
                return choices[::-1]


class _Search:
    """One exploration under way."""

    def __init__(self, layout: Layout, choices: Choices) -> None:
        self.layout = layout
        self.choices = choices
        self.judge = Judge(layout)
        start: Node = (initial_state(layout), choices.disturbance != "none")
        self.numbers: dict[Node, int] = {start: 0}
        self.made = Transitions(layout)
        self.graph = Graph([start], [0], self.made, parents=[-1])
        self.quiet: list[tuple[int, int, int]] = []

    def run(self) -> Graph:
        graph = self.graph
        number = 0
        while number < len(graph.nodes):
            self._expand(number)
            number += 1
        if self.quiet:
            self.judge.note_premise(NO_THRASH)
        if any(target <= source for source, target, _ in self.quiet):
            edge = find_cycle(self.quiet)
            if edge is not None:
                self._note(NO_THRASH, edge)
        graph.premises = self.judge.premises
        return graph

    def _note(self, claims: int, edge: int) -> None:
        while claims:
            claim = claims & -claims
            self.graph.broken.setdefault(claim, edge)
            claims ^= claim

    def _expand(self, number: int) -> None:
        """Make every round that can begin in a node."""
        state, may_disturb = self.graph.nodes[number]
        absent = [r for r in self.choices.later if state.requests[r][0] == ABSENT]
        starts_now = number == 0
        idle = not (state.waiting or state.running or state.in_flight)
        if idle and not absent and not starts_now:
            return
        least = 1 if idle and absent and not starts_now else 0
        for count in range(least, len(absent) + 1):
            arrivals = tuple(absent[:count])
            if starts_now:
                arrivals = self.choices.at_start + arrivals
            came = state
            for request in arrivals:
                came = arrive(self.layout, came, request)
            self.graph.transitions += len(arrivals)
            self._round(number, came, Choice(arrivals), may_disturb, count < len(absent))
            if may_disturb:
                self._disturb(number, came, arrivals, count < len(absent))

    def _disturb(self, number: int, state: State, arrivals: tuple[int, ...], pending: bool) -> None:
        """The rounds that an abort or a reset begins."""
        if self.choices.disturbance == "abort":
            for request, (status, *_) in enumerate(state.requests):
                if status in (ABSENT, FINISHED):
                    continue
                after, error, _ = self.made.abort(state, request)
                self.graph.transitions += 1
                broken = self.judge.judge_event(after, error)
                choice = Choice(arrivals, request)
                if error is not None:
                    self._note(broken, self._last_edge(number, choice))
                    continue
                self._round(number, after, choice, False, pending, broken)
        elif self.choices.disturbance == "reset" and state.entries:
            after = reset(self.layout, state)
            self.graph.transitions += 1
            broken = self.judge.judge_event(after, None)
            self._round(number, after, Choice(arrivals, -1, True), False, pending, broken)

    def _round(
        self,
        number: int,
        state: State,
        choice: Choice,
        may_disturb: bool,
        pending: bool,
        broken: int = 0,
    ) -> None:
        """A pass, and each update that can follow."""
        graph, layout = self.graph, self.layout
        after, record, _ = self.made.schedule(state)
        graph.transitions += 1
        broken |= self.judge.judge_pass(state, record, after)
        if record.error is not None:
            self._note(broken, self._last_edge(number, choice))
            return
        came = bool(choice.arrivals) or choice.abort >= 0 or choice.reset
        if not (came or pending or state.in_flight):
            self.judge.note_premise(NO_STALL)
        if not is_due(layout, after, bool(record.scheduled)):
            node = (after, may_disturb)
            edge = self._edge(number, choice, node)
            self._note(broken, edge)
            if came:
                return
            if after == state and not record.scheduled:
                if not state.in_flight and not pending and (state.waiting or state.running):
                    self._note(NO_STALL, edge)
            else:
                self.quiet.append((number, self.numbers[node], edge))
            return
        for accepted in accepted_choices(after):
            updated, changes, _ = self.made.update(after, accepted)
            graph.transitions += 1
            updating = broken | self.judge.judge_update(after, changes, updated)
            made = choice._replace(accepted=accepted)
            if changes.error is not None:
                self._note(updating, self._last_edge(number, made))
                continue
            node = (updated, may_disturb)
            edge = self._edge(number, made, node)
            self._note(updating, edge)
            if not came and not any(emitted for _, _, emitted, _, _ in changes.outcomes):
                self.quiet.append((number, self.numbers[node], edge))
        if may_disturb and self.choices.disturbance == "failed load":
            self._fail_loads(number, after, choice, broken)

    def _fail_loads(self, number: int, after: State, choice: Choice, broken: int) -> None:
        for request, _, _, _, standing in after.in_flight[0]:
            if standing != LIVE:
                continue
            _, computed, placeholders, _, num_known, _, _, _ = after.requests[request]
            for left in sorted({0, min(computed - placeholders, num_known) - 1}):
                if not 0 <= left < computed - placeholders:
                    continue
                # The drafts of the others are rejected: this is about the fall.
                accepted = (0,) * len(after.in_flight[0])
                updated, changes, _ = self.made.update(after, accepted, (request, left))
                self.graph.transitions += 1
                updating = broken | self.judge.judge_update(after, changes, updated)
                made = choice._replace(accepted=accepted, load=(request, left))
                if changes.error is not None:
                    self._note(updating, self._last_edge(number, made))
                    continue
                self._note(updating, self._edge(number, made, (updated, False)))

    def _last_edge(self, source: int, choice: Choice) -> int:
        """Add an edge that ends in an error, and so nowhere; its number."""
        edge = len(self.graph.edges)
        self.graph.edges.append((source, choice, source))
        self.graph.errors.add(edge)
        return edge

    def _edge(self, source: int, choice: Choice, node: Node) -> int:
        """Add an edge, and the node that it leads to; its number."""
        graph = self.graph
        number = self.numbers.get(node)
        edge = len(graph.edges)
        if number is None:
            number = self.numbers[node] = len(graph.nodes)
            graph.nodes.append(node)
            graph.depths.append(graph.depths[source] + 1)
            graph.parents.append(edge)
        graph.edges.append((source, choice, number))
        return edge


def explore(layout: Layout, choices: Choices) -> Graph:
    """Explore everything that can happen; a violation ends nothing but an error does.

    Args:
        layout: the requests, the configuration and the rules.
    """
    return _Search(layout, choices).run()


def find_cycle(edges: Sequence[tuple[int, int, int]]) -> int | None:
    """An edge that closes a circle of the given edges, or ``None``."""
    following: dict[int, list[tuple[int, int]]] = {}
    for source, target, number in edges:
        following.setdefault(source, []).append((target, number))
    done: set[int] = set()
    for root in following:
        if root in done:
            continue
        open_nodes = {root}
        stack = [(root, iter(following[root]))]
        while stack:
            node, rest = stack[-1]
            for target, number in rest:
                if target in open_nodes:
                    return number
                if target not in done:
                    open_nodes.add(target)
                    stack.append((target, iter(following.get(target, ()))))
                    break
            else:
                stack.pop()
                open_nodes.discard(node)
                done.add(node)
    return None
