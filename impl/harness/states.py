"""What an engine holds after a step, made anew only where it changed.

Parts that are as they were when last read are the same objects again: they are compared here once,
and whoever judges them can tell at a glance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from spec.record.quick import quick
from spec.record.steps import LoopBookState, RequestState

_book_state = quick(LoopBookState)

Held: TypeAlias = tuple[Any, ...]
"""What is held for one request; equal where its state is."""

_References: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]


class States:
    """States that were read last.

    Args:
        indices: index of each request, by id.
    """

    def __init__(self, indices: Mapping[str, int]) -> None:
        self._indices = indices
        self._requests: dict[int, tuple[Held, RequestState]] = {}
        self._entries: dict[str, list[str]] = {}
        self._references: _References = ()
        self._book: LoopBookState | None = None

    def requests(
        self, held: Iterable[tuple[int, Held]], state_of: Callable[[int, Held], RequestState]
    ) -> tuple[RequestState, ...]:
        """The states of requests.

        Args:
            held: index of each request, with what is held for it.
            state_of: makes the state of one.
        """
        states = self._requests
        found = []
        for index, values in held:
            earlier = states.get(index)
            if earlier is None or earlier[0] != values:
                states[index] = earlier = (values, state_of(index, values))
            found.append(earlier[1])
        return tuple(found)

    def book(
        self,
        entries: dict[str, list[str]],
        freeable: tuple[str, ...],
        num_free_slots: int,
        num_freeable_slots: int | None,
    ) -> LoopBookState:
        """The state of a book.

        Args:
            entries: ids of the requests that hold a reference, by entry; kept, so a new one each
                time.
            freeable: unreferenced entries, the next to be evicted first.
            num_free_slots: rows of no entry.
            num_freeable_slots: rows free now or after evicting; ``None`` where none are kept.
        """
        # Two dictionaries are equal in whatever order their keys are; a record keeps the order.
        if entries != self._entries or list(entries) != list(self._entries):
            indices = self._indices
            self._references = tuple(
                [
                    (name, tuple([indices[holder] for holder in holders]))
                    for name, holders in entries.items()
                ]
            )
            self._entries = entries
        state = self._book
        if (
            state is None
            or state.references is not self._references
            or state.freeable != freeable
            or state.num_free_slots != num_free_slots
            or state.num_freeable_slots != num_freeable_slots
        ):
            state = _book_state(self._references, freeable, num_free_slots, num_freeable_slots)
            self._book = state
        return state
