"""One round of a graph made again: its steps on the model, and what it asks of the world."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from proofs.explore.choices import Choice
from proofs.explore.transitions import Transitions
from spec.model.run import ModelEvent, ModelPass, ModelStep, ModelUpdate
from spec.model.state import DROPPED, LIVE, State
from spec.model.update import arrive, is_due, reset
from spec.record.quick import quick
from spec.record.steps import Call

_event, _pass, _update = quick(ModelEvent), quick(ModelPass), quick(ModelUpdate)


@dataclass(frozen=True)
class Round:
    """One round.

    Attributes:
        num_steps: events, passes and updates.
        runs: whether the pass ran anything.
        updates: whether an update fell due.
        answers: drafts accepted, by request, each of which uses up one of its answers.
    """

    choice: Choice
    num_steps: int
    runs: bool
    updates: bool
    answers: tuple[tuple[int, int], ...]


@dataclass
class Clock:
    """Numbers of passes on a path.

    Attributes:
        index: number of the next pass.
        in_flight: numbers of the passes that are not yet updated.
    """

    index: int = 0
    in_flight: deque[int] = field(default_factory=deque)

    def tick(self, made: Round) -> int:
        """Go on by a round; the number of the pass that it updates, or -1."""
        return self.go_on(made.runs, made.updates)

    def go_on(self, runs: bool, updates: bool) -> int:
        """Go on by a pass that ran something or not, with an update or without one."""
        if runs:
            self.in_flight.append(self.index)
        self.index += 1
        return self.in_flight.popleft() if updates else -1

    def fork(self) -> Clock:
        """Another one that goes on from here."""
        return Clock(self.index, self.in_flight.copy())


@dataclass
class Begun:
    """A round up to its pass.

    Attributes:
        steps: events and pass.
        state: after them.
        runs: whether the pass ran anything.
        is_over: whether the round ends with it: with an error, or since no update falls due.
    """

    steps: list[ModelStep]
    state: State
    runs: bool = False
    is_over: bool = True


def begin_round(transitions: Transitions, state: State, choice: Choice, clock: Clock) -> Begun:
    """Make the events and the pass of a round; arguments as of :func:`make_round`."""
    layout = transitions.layout
    steps: list[ModelStep] = []
    index = clock.index
    for request in choice.arrivals:
        state = arrive(layout, state, request)
        steps.append(_event(index, "arrival", request, state))
    if choice.abort >= 0:
        state, error, calls = transitions.abort(state, choice.abort)
        steps.append(_event(index, "abort", choice.abort, state, error, calls))
        if error is not None:
            return Begun(steps, state)
    if choice.reset:
        state = reset(layout, state)
        steps.append(_event(index, "reset", -1, state, None, (Call("reset"),)))
    state, record, calls = transitions.schedule(state)
    steps.append(_pass(index, record, state, calls))
    runs = bool(record.scheduled)
    is_over = record.error is not None or not is_due(layout, state, runs)
    return Begun(steps, state, runs, is_over)


def update_round(
    transitions: Transitions, begun: Begun, choice: Choice, clock: Clock
) -> tuple[ModelUpdate, tuple[tuple[int, int], ...]]:
    """Make the update of a round, and say which drafts it accepts of whom."""
    state = begun.state
    fallen = -1 if choice.load is None else choice.load[0]
    answers = tuple(
        (request, accepted)
        for (request, _, num_drafts, _, standing), accepted in zip(
            state.in_flight[0], choice.accepted, strict=True
        )
        if num_drafts and standing != DROPPED and not (request == fallen and standing == LIVE)
    )
    state, changes, calls = transitions.update(state, choice.accepted, choice.load)
    oldest = clock.in_flight[0] if clock.in_flight else clock.index
    return _update(oldest, changes, state, calls), answers


def make_round(
    transitions: Transitions, state: State, choice: Choice, clock: Clock
) -> tuple[Round, list[ModelStep]]:
    """Make a round from the state in which it begins; the clock stands where it begins, too.

    Args:
        clock: numbers of passes.
    """
    begun = begin_round(transitions, state, choice, clock)
    if begun.is_over:
        return Round(choice, len(begun.steps), begun.runs, False, ()), begun.steps
    last, answers = update_round(transitions, begun, choice, clock)
    steps = [*begun.steps, last]
    return Round(choice, len(steps), begun.runs, True, answers), steps
