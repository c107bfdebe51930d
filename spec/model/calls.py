"""The calls of a model's step to the book and to the KV manager, in order.

A step of the model is asked about in sets, which is fast; what lies between two calls can be told
only from their order. Here a step is made again with its calls kept, as a recorded run keeps them.
"""

from __future__ import annotations

from spec.model.layout import Layout
from spec.model.state import State
from spec.model.working import Working
from spec.record.quick import quick
from spec.record.steps import Call

_call = quick(Call)


class CallLog:
    """Calls since they were last taken.

    Args:
        layout: of the scenario.

    Attributes:
        calls: the calls.
        places: request and index of the feature, of each occurrence.
    """

    __slots__ = ("calls", "places")

    def __init__(self, layout: Layout) -> None:
        self.calls: list[Call] = []
        self.places = [
            (request, occurrence - layout.first[request])
            for request in range(layout.num_requests)
            for occurrence in range(layout.first[request], layout.first[request + 1])
        ]

    def take(self) -> tuple[Call, ...]:
        """All calls so far, once."""
        calls, self.calls = tuple(self.calls), []
        return calls

    def begin(self, layout: Layout, state: State) -> Working:
        """A state that keeps its calls here while a step changes it."""
        return _LoggedWorking(layout, state, self)


def taken(log: CallLog | None) -> tuple[Call, ...]:
    """The calls of a step; none where they are not kept."""
    return () if log is None else log.take()


class _LoggedWorking(Working):
    """A state while a step changes it, which keeps the calls."""

    __slots__ = ("_is_one_call", "_log")

    def __init__(self, layout: Layout, state: State, log: CallLog) -> None:
        super().__init__(layout, state)
        self._log = log
        self._is_one_call = False

    def hit(self, occurrence: int) -> bool:
        answer = super().hit(occurrence)
        request, feature = self._log.places[occurrence]
        self._log.calls.append(_call("check_and_update_cache", request, feature, answer))
        return answer

    def make_room(self, occurrence: int, encoder_budget: int, chosen_rows: int) -> bool:
        answer = super().make_room(occurrence, encoder_budget, chosen_rows)
        request, feature = self._log.places[occurrence]
        self._log.calls.append(
            _call("can_allocate", request, feature, answer, encoder_budget, chosen_rows)
        )
        return answer

    def allocate(self, occurrence: int) -> None:
        super().allocate(occurrence)
        self._log.calls.append(_call("allocate", *self._log.places[occurrence]))

    def let_go(self, request: int, occurrence: int) -> None:
        super().let_go(request, occurrence)
        if not self._is_one_call:
            self._log.calls.append(_call("free_encoder_input", *self._log.places[occurrence]))

    def let_all_go(self, request: int) -> None:
        self._log.calls.append(_call("free", request))
        self._is_one_call = True
        super().let_all_go(request)
        self._is_one_call = False

    def cancel(self, occurrence: int) -> None:
        super().cancel(occurrence)
        self._log.calls.append(_call("cancel", *self._log.places[occurrence]))

    def count_blocks(self, request: int, num_tokens: int) -> int | None:
        blocks = super().count_blocks(request, num_tokens)
        self._log.calls.append(
            _call("allocate_slots", request, answer=blocks is not None, budget=num_tokens)
        )
        return blocks
