"""One request and one of its features, followed through a recorded run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeAlias

from spec.history.layout import FeatureLayout
from spec.record.feature import Feature
from spec.relation.change import changed
from spec.relation.guards import CORRECT
from spec.relation.moves import TRANSITIONS
from spec.relation.runs.book_ledger import Act, Dropped
from spec.relation.runs.happenings import Applied, Event, Happened, Happenings, Rewound, Scheduled
from spec.relation.state import Scope, State

Arguments = Mapping[str, int | bool]
"""What a transition is given besides the state, by name."""


class Taken(NamedTuple):
    """A transition that a run took, and the conjuncts in which it differs from the relation.

    Attributes:
        transition: its name in :data:`spec.relation.moves.TRANSITIONS`, or ``observe``: the
            comparison with what the run shows after a step.
        arguments: what it was given; of ``observe`` what was shown.
        scope: the constants, with the position that was looked at.
        before: the state before.
        after: the state after; of ``observe`` as shown.
        differs: names of the conjuncts that do not hold.
    """

    transition: str
    arguments: Arguments
    scope: Scope
    before: State
    after: State
    differs: tuple[str, ...]


Known: TypeAlias = "dict[tuple[Footing, Happenings], tuple[Footing, tuple[Taken, ...]]]"
"""Where events lead from a state, and by which transitions."""


class Footing:
    """A projected state, with what is known of the transitions from it.

    Args:
        scope: the constants.
        state: the state.
        others: the footings under these constants, by their state; this one joins them.
    """

    __slots__ = ("_others", "scope", "state", "transitions")

    def __init__(self, scope: Scope, state: State, others: dict[State, Footing]) -> None:
        self.scope = scope
        self.state = state
        self._others = others
        others[state] = self
        self.transitions: dict[Hashable, tuple[Taken, Footing]] = {}

    def at(self, state: State) -> Footing:
        """The one footing of another state under the same constants."""
        footing = self._others.get(state)
        return Footing(self.scope, state, self._others) if footing is None else footing

    def take(self, transition: str, arguments: Arguments) -> tuple[Taken, Footing]:
        """A transition, whether its guards hold or not, and where it leads."""
        scope, state = self.scope, self.state
        guards, after = TRANSITIONS[transition].move(scope, state, CORRECT, **arguments)
        differs = tuple([name for name, holds in guards.items() if not holds])
        return Taken(transition, arguments, scope, state, after, differs), self.at(after)

    def observe(self, shown: Arguments) -> tuple[Taken, Footing]:
        """The comparison with what a run shows, and where it leads."""
        scope, state = self.scope, self.state
        after = changed(state, **shown)
        if after == state:
            return Taken("observe", shown, scope, state, state, ()), self
        differs = tuple(
            [
                f"state.{name}"
                for name, value, other in zip(State._fields, after, state, strict=True)
                if value != other
            ]
        )
        return Taken("observe", shown, scope, state, after, differs), self.at(after)


class Moves:
    """What transitions do, worked out once for each state that they are taken from.

    Runs that share their beginning, and runs of one small scope, go through the same few states
    again and again.
    """

    def __init__(self) -> None:
        self._footings: dict[Scope, dict[State, Footing]] = {}
        self._happenings: dict[tuple[Event, ...], Happenings] = {}
        self._known: dict[tuple[int, int, Feature], Known] = {}

    def happenings(self, events: tuple[Event, ...]) -> Happenings:
        """The one object of some events."""
        found = self._happenings.get(events)
        if found is None:
            found = self._happenings[events] = Happenings(events)
        return found

    def known(self, request: int, index: int, feature: Feature) -> Known:
        """What is known of projections onto a feature of so many runs."""
        return self._known.setdefault((request, index, feature), {})

    def footing(self, scope: Scope, state: State) -> Footing:
        """The one footing of a state."""
        of_scope = self._footings.setdefault(scope, {})
        footing = of_scope.get(state)
        return Footing(scope, state, of_scope) if footing is None else footing


class Projection:
    """The projected state of one request and one feature, as it goes on.

    Two positions of the feature that lie in the same windows project alike, so that one of each
    kind is looked at.

    Args:
        request: the request.
        feature: its feature.
        footing: the state to begin with, and the constants of the run; the position among them is
            chosen anew for each chunk.
        moves: what is known of transitions.
        known: what is known of projections onto this feature.

    Attributes:
        name: the hash h.
        own: the occurrence (r, f).
        taken: the transitions since they were last looked at.
    """

    __slots__ = ("feature", "footing", "known", "moves", "name", "own", "request", "taken")

    def __init__(
        self, request: int, feature: FeatureLayout, footing: Footing, moves: Moves, known: Known
    ) -> None:
        self.request = request
        self.feature = feature
        self.footing = footing
        self.moves = moves
        self.known = known
        self.name = feature.identifier
        self.own = request, feature.index
        self.taken: list[Taken] = []

    @property
    def state(self) -> State:
        """The projected state."""
        return self.footing.state

    def fork(self) -> Projection:
        """Another one that goes on from here."""
        other = Projection.__new__(Projection)
        other.request, other.feature, other.footing = self.request, self.feature, self.footing
        other.moves, other.known = self.moves, self.known
        other.name, other.own, other.taken = self.name, self.own, []
        return other

    def follow(self, happenings: Happenings) -> None:
        """Take the transitions that some events are in this projection."""
        key = self.footing, happenings
        found = self.known.get(key)
        if found is not None:
            self.footing, taken = found
            self.taken += taken
            return
        earlier = len(self.taken)
        for event in happenings.events:
            self._meet(event)
        self.known[key] = self.footing, tuple(self.taken[earlier:])

    def _meet(self, event: Event) -> None:
        match event:
            case Act():
                self.act(event)
            case Happened():
                if event.request in (-1, self.request):
                    self.take(event.transition, **dict(event.arguments))
            case Scheduled():
                if event.request == self.request:
                    self._schedule(event)
            case Applied():
                self.take(
                    "apply",
                    received=self.own in event.received,
                    forgotten=self.request in event.forgotten,
                    is_announced=self.name in event.announced,
                    is_encoded=self.name in event.encoded,
                    is_overtaken=False,
                )
            case Rewound():
                if event.request == self.request:
                    self.let_all_go(event.act, "rewind", left=event.left)
                else:
                    self.act(event.act)

    def take(self, transition: str, **arguments: int | bool) -> None:
        """Let a transition happen, whether its guards hold or not."""
        transitions = self.footing.transitions
        key = (transition, *arguments.values()) if arguments else transition
        found = transitions.get(key)
        if found is None:
            found = transitions[key] = self.footing.take(transition, arguments)
        taken, self.footing = found
        self.taken.append(taken)

    def observe(self, names: tuple[str, ...], shown: tuple[int | bool, ...]) -> None:
        """Compare the state with what the run shows, and go on from that.

        Args:
            names: fields of the state.
            shown: their values.
        """
        transitions = self.footing.transitions
        # As many values are always of the same fields.
        found = transitions.get(shown)
        if found is None:
            values = dict(zip(names, shown, strict=True))
            found = transitions[shown] = self.footing.observe(values)
        taken, self.footing = found
        self.taken.append(taken)

    def _schedule(self, event: Scheduled) -> None:
        """A pass schedules the request; look at a position in the window where there is one."""
        if event.started:
            if not self.state.trying:
                self.take("attempt")
            self.take("begin", progress=event.start)
        scope = self.footing.scope
        end = event.start + event.num_tokens + scope.scheduler_lookahead
        row = next(iter(self.feature.segments(event.start, end)), None)
        if row is not None and row[0] != scope.position:
            scope = scope._replace(position=row[0])
            self.footing = self.moves.footing(scope, self.footing.state)
        self.take(
            "advance",
            num_tokens=event.num_tokens,
            num_drafts=event.num_drafts,
            samples=event.samples,
            is_stopped=event.stopped_at is not None,
            stopped_at=0 if event.stopped_at is None else event.stopped_at,
        )

    def act(self, act: Act) -> None:
        """Take the transition that the act is in this projection, if it is any."""
        here = act.name == self.name
        match act.kind:
            case "hit":
                self._hit(act, here)
            case "miss" if here:
                self.take("miss")
            case "refuse" if here:
                self.take("refuse", chosen_rows=act.chosen, asked_rows=act.rows, budget=act.budget)
            case "evict" if here:
                self.take("evict", wanted=act.wanted)
            case "evict":
                self.take("evict-elsewhere", wanted=act.wanted, their_rows=act.rows)
            case "promise" if here:
                self.take("promise", chosen_rows=act.chosen)
            case "promise":
                self.take("promise-elsewhere", chosen_rows=act.chosen, their_rows=act.rows)
            case "forgo":
                self.take("forgo", forgone_rows=act.rows, here=here)
            case "enter" if act.occurrence == self.own:
                self._try(act)
                self.take("enter")
            case "enter" if here:
                self.take("enter-other")
            case "enter":
                self.take("enter-elsewhere", their_rows=act.rows)
            case "let-go":
                self._let_go(act.dropped)
            case "stop" if act.occurrence[0] == self.request:
                self.let_all_go(act, "stop")
            case "stop":
                self._let_go(act.dropped)

    def _hit(self, act: Act, here: bool) -> None:
        if act.occurrence == self.own:
            self._try(act)
            self.take("hit")
        elif here:
            self.take("hit-other", is_new=act.is_new)
        elif act.was_idle:
            self.take("hit-elsewhere", their_rows=act.rows)

    def _try(self, act: Act) -> None:
        if not (self.state.running or self.state.trying):
            self.take("attempt")

    def let_all_go(self, act: Act, transition: str, **arguments: int) -> None:
        """The request itself lets everything go: it stops, or is rewound."""
        own_others = sum(
            1
            for entry in act.dropped
            if entry.name == self.name
            for occurrence in entry.occurrences
            if occurrence != self.own
        )
        self.take(transition, own_others=own_others, **arguments)
        self._others_go(act.dropped)

    def _let_go(self, dropped: tuple[Dropped, ...]) -> None:
        for entry in dropped:
            if entry.name == self.name:
                if self.own in entry.occurrences:
                    self.take("let-go")
                else:
                    self.take("others-let-go", count=len(entry.occurrences))
        self._others_go(dropped)

    def _others_go(self, dropped: tuple[Dropped, ...]) -> None:
        """What other entries lose with it."""
        elsewhere = [entry for entry in dropped if entry.name != self.name and entry.is_idle]
        if elsewhere:
            staying = sum(entry.rows for entry in elsewhere if not entry.leaves)
            leaving = sum(entry.rows for entry in elsewhere if entry.leaves)
            self.take("elsewhere-lets-go", staying_rows=staying, leaving_rows=leaving)
