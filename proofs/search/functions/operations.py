"""Sequences of calls on a book that an engine can make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from spec.functions.cases import BookOperation
from spec.record.feature import Feature

_Limits: TypeAlias = tuple[int | None, int]
"""Encoder budget past the item's rows (``None``: as much as needed), and rows chosen before."""

_NO_LIMITS: _Limits = (None, 0)
_LIMITS: tuple[_Limits, ...] = (
    *(_NO_LIMITS,) * 8,
    *((0, 0), (0, 0), (1, 0), (-1, 0), (-1, 0)),
    *((None, 1),) * 4,
    *((None, 2), (0, 1), (1, 1)),
)


@dataclass
class _Taken:
    """What each request has taken, so that operations come in an order that an engine can make.

    A request asks for its features from the first one that progress has not passed; its references
    go in order; *finish* (an abort, a preemption, a give-back) lets it start again.
    """

    requests: Sequence[Sequence[Feature]]
    passed: dict[int, int] = field(default_factory=dict)
    held: dict[int, set[int]] = field(default_factory=dict)

    def take(
        self, request: int, choice: int, limits: _Limits, *, again: bool
    ) -> BookOperation | None:
        """Ask for a feature that progress has not passed; ``again``: also for one that is held.

        A request that holds nothing and has passed everything starts again, as one that was
        preempted does.
        """
        spare, chosen = limits
        held = self.held.setdefault(request, set())
        features = range(len(self.requests[request]))
        if not held and self.passed.get(request, 0) == len(features):
            self.passed[request] = 0
        ahead = [
            index for index in features[self.passed.get(request, 0) :] if again or index not in held
        ]
        if not ahead:
            return None
        feature = ahead[choice % len(ahead)]
        held.add(feature)
        budget = None if spare is None else self.requests[request][feature].num_rows + spare
        return BookOperation("take", request, feature, budget, chosen)

    def drop(self, choice: int, *, skipped: bool = False) -> BookOperation | None:
        """One request drops its first reference, or a feature before it that it never took.

        A request that starts behind a cached prefix has passed features without taking them.
        """
        holders = sorted(request for request, held in self.held.items() if held)
        if not holders:
            return None
        request = holders[choice % len(holders)]
        held = self.held[request]
        first = min(held)
        passed = self.passed.get(request, 0)
        if skipped and passed < first:
            self.passed[request] = passed + 1
            return BookOperation("drop", request, passed)
        held.discard(first)
        self.passed[request] = first + 1
        return BookOperation("drop", request, first)

    def finish(self, request: int) -> BookOperation:
        self.passed.pop(request, None)
        self.held.pop(request, None)
        return BookOperation("finish", request)

    def reset(self) -> BookOperation:
        self.held.clear()
        return BookOperation("reset")


_ACTIONS = (
    "nothing",
    *("take",) * 5,
    *("visit",) * 4,
    *("drop",) * 4,
    *("end_pass",) * 3,
    *("finish", "drop_skipped", "reset"),
)
"""A visit takes a feature and lets the first one go: it leaves an entry that may be evicted."""

MAX_REQUESTS = 3
_UNLIMITED, _LIMITED = (
    tuple(product(_ACTIONS, range(MAX_REQUESTS), range(3), limits))
    for limits in ((_NO_LIMITS,), _LIMITS)
)
"""What to do, which request, which feature, under which limits; read modulo what the case has."""


@st.composite
def book_operations(
    draw: DrawFn, requests: Sequence[Sequence[Feature]], *, is_encoder_decoder: bool
) -> tuple[BookOperation, ...]:
    """Calls by the requests with the given features.

    Each request takes, lets go and starts again in an order that progress allows; what is drawn but
    impossible is left out, so that deleting any call leaves a valid sequence. In one case of three,
    half of the takes have an encoder budget or rows chosen before.
    """
    taken = _Taken(requests)
    again = not is_encoder_decoder
    operations: list[BookOperation | None] = []
    choices = draw(st.sampled_from((_UNLIMITED, _UNLIMITED, _LIMITED)))
    raw = draw(st.lists(st.sampled_from(choices), min_size=8, max_size=40))
    for action, any_request, choice, limits in raw:
        request = any_request % len(requests)
        match action:
            case "take":
                operations.append(taken.take(request, choice, limits, again=again))
            case "visit":
                operations.append(taken.take(request, choice, limits, again=again))
                operations.append(taken.drop(any_request))
            case "drop":
                operations.append(taken.drop(any_request))
            case "drop_skipped":
                operations.append(taken.drop(any_request, skipped=True))
            case "finish":
                operations.append(taken.finish(request))
            case "reset":
                operations.append(taken.reset())
            case "end_pass":
                operations.append(BookOperation("end_pass"))
    return tuple(operation for operation in operations if operation is not None)
