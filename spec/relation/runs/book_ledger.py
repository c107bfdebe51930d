"""A recorded run replayed call by call: whose occurrences each entry is kept for, and its rows.

A trace shows the book after each step. What happened in between follows from the calls: which
entry a question for room evicted, which occurrence a call let go, what a request that stops takes
with it. The ledger tells each as an :class:`Act`; where the run then shows something else, it takes
over what was shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from spec.record.steps import Call, LoopBookState

Occurrence: TypeAlias = tuple[int, int]
"""A request and the index of one of its features; -1 for a feature that no call names."""

ActKind: TypeAlias = Literal[
    "hit", "miss", "refuse", "evict", "promise", "forgo", "enter", "let-go", "stop"
]


class Dropped(NamedTuple):
    """Occurrences let go of one entry.

    Attributes:
        name: its hash.
        rows: its rows.
        occurrences: those let go.
        is_idle: whether nobody holds it any more.
        leaves: whether it left the book with who chose it in this pass.
    """

    name: str
    rows: int
    occurrences: tuple[Occurrence, ...]
    is_idle: bool
    leaves: bool = False


class Act(NamedTuple):
    """One small thing that happened.

    Attributes:
        kind: what it was.
        name: the hash it was about; empty for ``stop``.
        who: the occurrence that asked, or that was let go.
        rows: rows of the entry, or rows forgone.
        is_new: of a hit: whether the occurrence did not hold the entry before.
        was_idle: of a hit: whether the entry was unreferenced.
        wanted: rows wanted of an eviction.
        chosen: rows chosen before, of a promise or a refusal.
        budget: rows that the encoder may still compute, of a refusal.
        dropped: of ``let-go`` and ``stop``: what was let go of each entry.
    """

    kind: ActKind
    name: str = ""
    occurrence: Occurrence = (-1, -1)
    rows: int = 0
    is_new: bool = False
    was_idle: bool = False
    wanted: int = 0
    chosen: int = 0
    budget: int = 0
    dropped: tuple[Dropped, ...] = ()


class Entry(NamedTuple):
    """An entry of the book."""

    rows: int
    occurrences: frozenset[Occurrence]

    def is_held_by(self, requests: tuple[int, ...]) -> bool:
        """Whether it is kept for occurrences of these requests, and of no others."""
        occurrences = self.occurrences
        if len(occurrences) == len(requests) == 1:
            (((request, _),), (other,)) = occurrences, requests
            return request == other
        return {request for request, _ in occurrences} == set(requests)


class Ledger:
    """The book's entries by occurrences.

    Args:
        cache_size: capacity (rows).
    """

    def __init__(self, cache_size: int) -> None:
        self._size = cache_size
        self.entries: dict[str, Entry] = {}
        self._idle: list[str] = []
        self.chosen: set[str] = set()
        self._promised: list[tuple[str, int]] = []
        self._asking = -1

    def fork(self) -> Ledger:
        """Another one that goes on from here."""
        other = Ledger(self._size)
        other.entries = self.entries.copy()
        other._idle, other.chosen = list(self._idle), set(self.chosen)
        other._promised, other._asking = list(self._promised), self._asking
        return other

    def stands_like(self, other: Ledger) -> bool:
        """Whether both keep the same entries for the same occurrences, to be evicted in one order.

        Asked between two passes, when nothing is promised or chosen.
        """
        return self.entries == other.entries and self._idle == other._idle

    @property
    def free(self) -> int:
        """Rows of no entry."""
        return self._size - sum(entry.rows for entry in self.entries.values())

    def kept_for(self, occurrence: Occurrence, name: str) -> tuple[bool, int]:
        """Whether an entry is kept for the occurrence, and for how many others."""
        entry = self.entries.get(name)
        if entry is None:
            return False, 0
        held = occurrence in entry.occurrences
        return held, len(entry.occurrences) - held

    def asks(self, call: Call, name: str, rows: int) -> Iterator[Act]:
        """What a call of a pass by which a request asks the book did.

        Args:
            call: the call.
            name: the hash of its feature.
            rows: rows of its feature.
        """
        occurrence = (call.request, call.feature)
        if call.request != self._asking:
            yield from self.forgo()
            self._asking = call.request
        if call.method == "check_and_update_cache":
            if call.answer:
                yield self._hit(occurrence, name, rows)
            elif call.answer is False:
                yield Act("miss", name, occurrence, rows)
        elif call.method == "can_allocate":
            if call.answer:
                yield from self._make_room(occurrence, name, rows, call.chosen)
            else:
                yield from self._lower(call.chosen)
                yield Act("refuse", name, occurrence, rows, chosen=call.chosen, budget=call.budget)
        elif call.method == "allocate":
            yield self._enter(occurrence, name, rows)

    def _hit(self, occurrence: Occurrence, name: str, rows: int) -> Act:
        entry = self.entries.get(name)
        if entry is None:
            return Act("hit", name, occurrence, rows, is_new=True)
        was_idle, is_new = not entry.occurrences, occurrence not in entry.occurrences
        if was_idle:
            self._idle.remove(name)
        self.entries[name] = Entry(entry.rows, entry.occurrences | {occurrence})
        return Act("hit", name, occurrence, entry.rows, is_new, was_idle)

    def _make_room(
        self, occurrence: Occurrence, name: str, rows: int, chosen: int
    ) -> Iterator[Act]:
        yield from self._lower(chosen)
        wanted = chosen + rows
        while self.free < wanted and self._idle:
            oldest = self._idle.pop(0)
            entry = self.entries.pop(oldest)
            yield Act("evict", oldest, rows=entry.rows, wanted=wanted)
        self._promised.append((name, rows))
        yield Act("promise", name, occurrence, rows, chosen=chosen)

    def _lower(self, chosen: int) -> Iterator[Act]:
        """Forgo what was promised last and is not counted any more."""
        while self._promised and sum(rows for _, rows in self._promised) > chosen:
            name, rows = self._promised.pop()
            yield Act("forgo", name, rows=rows)

    def forgo(self) -> Iterator[Act]:
        """The request that asked has done so: what it was promised and did not use is forgone."""
        yield from self._lower(0)
        self._asking = -1

    def _enter(self, occurrence: Occurrence, name: str, rows: int) -> Act:
        self._promised = [promise for promise in self._promised if promise[0] != name]
        if name in self._idle:
            self._idle.remove(name)
        self.entries[name] = Entry(rows, frozenset((occurrence,)))
        self.chosen.add(name)
        return Act("enter", name, occurrence, rows)

    def lets_go(self, occurrence: Occurrence, name: str) -> Iterator[Act]:
        """An occurrence is let go by progress; nothing happens if it is not held."""
        entry = self.entries.get(name)
        if entry is not None and occurrence in entry.occurrences:
            left = entry.occurrences - {occurrence}
            self.entries[name] = Entry(entry.rows, left)
            self._note_idle(name)
            dropped = Dropped(name, entry.rows, (occurrence,), not left)
            yield Act("let-go", name, occurrence, entry.rows, dropped=(dropped,))

    def stops(self, request: int) -> Act:
        """A request lets everything go; what it alone had chosen in the pass leaves the book."""
        dropped = []
        for name in list(self.entries):
            entry = self.entries[name]
            own = sorted(
                [occurrence for occurrence in entry.occurrences if occurrence[0] == request]
            )
            if not own:
                continue
            left = entry.occurrences.difference(own)
            is_idle = not left
            leaves = is_idle and name in self.chosen
            dropped.append(Dropped(name, entry.rows, tuple(own), is_idle, leaves))
            if leaves:
                self.chosen.discard(name)
                del self.entries[name]
            else:
                self.entries[name] = Entry(entry.rows, left)
                self._note_idle(name)
        return Act("stop", occurrence=(request, -1), dropped=tuple(dropped))

    def _note_idle(self, name: str) -> None:
        if not self.entries[name].occurrences and name not in self._idle:
            self._idle.append(name)

    def reset(self) -> None:
        """Forget all entries."""
        self.entries.clear()
        self._idle.clear()
        self.chosen.clear()

    def end_pass(self) -> None:
        """The pass's output was applied."""
        self.chosen.clear()

    def take_over(self, book: LoopBookState, rows: dict[str, int]) -> None:
        """Where the run shows other entries or holders than the calls say, believe it.

        Args:
            book: what the run shows.
            rows: rows of each hash that a feature has.
        """
        entries = self.entries
        for name, holders in book.references:
            entry = entries.get(name)
            if entry is None:
                entry = entries[name] = Entry(rows.get(name, 0), frozenset())
            if not entry.is_held_by(holders):
                stay = [occurrence for occurrence in entry.occurrences if occurrence[0] in holders]
                requests = {request for request, _ in stay}
                come = [(request, -1) for request in holders if request not in requests]
                entries[name] = Entry(entry.rows, frozenset(stay + come))
        shown = {name for name, _ in book.references}
        if len(entries) > len(shown):
            for name in [name for name in entries if name not in shown]:
                del entries[name]
        idle = self._idle = [name for name in book.freeable if name in entries]
        idle += [
            name for name, entry in entries.items() if not entry.occurrences and name not in idle
        ]
