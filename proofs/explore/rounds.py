"""One round of a graph made again: its steps on the model, and what it asks of the world."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from proofs.explore.choices import Choice
from spec.model.layout import Layout
from spec.model.run import ModelEvent, ModelPass, ModelStep, ModelUpdate
from spec.model.schedule import schedule
from spec.model.state import DROPPED, LIVE, State
from spec.model.update import abort, arrive, is_due, reset, update


@dataclass(frozen=True)
class Round:
    """One round.

    Attributes:
        choice: what was chosen.
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
        if made.runs:
            self.in_flight.append(self.index)
        self.index += 1
        return self.in_flight.popleft() if made.updates else -1


def make_round(
    layout: Layout, state: State, choice: Choice, clock: Clock
) -> tuple[Round, list[ModelStep]]:
    """Make a round from the state in which it begins; the clock stands where it begins, too."""
    steps: list[ModelStep] = []
    index = clock.index
    for request in choice.arrivals:
        state = arrive(layout, state, request)
        steps.append(ModelEvent(index, "arrival", request, state))
    if choice.abort >= 0:
        state, error = abort(layout, state, choice.abort)
        steps.append(ModelEvent(index, "abort", choice.abort, state, error))
        if error is not None:
            return Round(choice, len(steps), False, False, ()), steps
    if choice.reset:
        state = reset(layout, state)
        steps.append(ModelEvent(index, "reset", -1, state))
    state, record = schedule(layout, state)
    steps.append(ModelPass(index, record, state))
    runs = bool(record.scheduled)
    if record.error is not None or not is_due(layout, state, runs):
        return Round(choice, len(steps), runs, False, ()), steps
    fallen = -1 if choice.load is None else choice.load[0]
    answers = tuple(
        (entry[0], accepted)
        for entry, accepted in zip(state.in_flight[0], choice.accepted, strict=True)
        if entry[2] and entry[4] != DROPPED and not (entry[0] == fallen and entry[4] == LIVE)
    )
    loads = {} if choice.load is None else {choice.load[0]: (choice.load[1],)}
    state, changes = update(layout, state, choice.accepted, loads)
    oldest = clock.in_flight[0] if clock.in_flight else index
    steps.append(ModelUpdate(oldest, changes, state))
    return Round(choice, len(steps), runs, True, answers), steps
