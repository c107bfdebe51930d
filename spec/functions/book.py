"""The oracles for both books: who references what, what is evicted, how many slots are left.

A plain restatement on sets and integers. The engine keeps running totals; these keep none and
derive every sum from the contents, so that a total that drifts is seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spec.functions.observations import Answer
from spec.record.feature import Feature

Occurrence = tuple[int, int]
"""A request and the index of one of its features."""


def exceeds_budget(num_rows: int, encoder_budget: int | None) -> bool:
    """Whether the encoder may not compute an item any more (rows; ``None``: it always may)."""
    return encoder_budget is not None and num_rows > encoder_budget


@dataclass
class Entry:
    """One cached output: its rows, and the taken occurrences that still need it."""

    num_rows: int
    occurrences: set[Occurrence] = field(default_factory=set)


@dataclass
class SpecBook:
    """The decoder-only book (duties of the engine's encoder cache manager).

    Entries are kept in the order in which they last became unreferenced; referenced entries are
    skipped when room is made, so the oldest unreferenced entry goes first.
    """

    cache_size: int
    entries: dict[str, Entry] = field(default_factory=dict)
    evicted: list[str] = field(default_factory=list)

    @property
    def num_free_slots(self) -> int:
        """Rows that no entry occupies."""
        return self.cache_size - sum(entry.num_rows for entry in self.entries.values())

    @property
    def num_freeable_slots(self) -> int:
        """Rows free now or after evicting every unreferenced entry."""
        return self.cache_size - sum(
            entry.num_rows for entry in self.entries.values() if entry.occurrences
        )

    def take(
        self,
        occurrence: Occurrence,
        feature: Feature,
        encoder_budget: int | None = None,
        num_rows_chosen: int = 0,
    ) -> Answer:
        """Hit the entry, or allocate it after evicting the oldest unreferenced entries.

        Args:
            occurrence: who asks.
            feature: what is asked for.
            encoder_budget: rows that the encoder may still compute in this pass; ``None``: as many
                as needed. A hit computes nothing.
            num_rows_chosen: rows chosen before in the same scheduling call and not yet allocated.
                Room is made for them too.
        """
        entry = self.entries.get(feature.identifier)
        if entry is not None:
            if entry.num_rows != feature.num_rows:
                return "rejected"
            entry.occurrences.add(occurrence)
            return "hit"
        wanted = feature.num_rows + num_rows_chosen
        if exceeds_budget(feature.num_rows, encoder_budget) or wanted > self.num_freeable_slots:
            return "refused"
        while wanted > self.num_free_slots:
            oldest = next(name for name, entry in self.entries.items() if not entry.occurrences)
            del self.entries[oldest]
            self.evicted.append(oldest)
        self.entries[feature.identifier] = Entry(feature.num_rows, {occurrence})
        return "allocated"

    def drop(self, occurrence: Occurrence) -> None:
        """The occurrence no longer needs its entry; the entry stays until room is needed."""
        for name, entry in list(self.entries.items()):
            if occurrence in entry.occurrences:
                entry.occurrences.discard(occurrence)
                if not entry.occurrences:
                    self.entries[name] = self.entries.pop(name)

    def occurrences_of(self, request: int) -> list[Occurrence]:
        """The request's taken occurrences, in the order of its features."""
        return sorted(
            occurrence
            for entry in self.entries.values()
            for occurrence in entry.occurrences
            if occurrence[0] == request
        )

    def end_pass(self) -> set[str]:
        """Hashes evicted in the pass and not allocated again since: the worker may drop them."""
        notices = {name for name in self.evicted if name not in self.entries}
        self.evicted.clear()
        return notices

    def reset(self) -> None:
        """Forget everything."""
        self.entries.clear()
        self.evicted.clear()


@dataclass
class SpecEncoderDecoderBook:
    """The encoder-decoder book: slots of taken items, neither shared nor kept, credited once."""

    cache_size: int
    held: dict[Occurrence, int] = field(default_factory=dict)

    @property
    def num_free_slots(self) -> int:
        """Rows that no item holds."""
        return self.cache_size - sum(self.held.values())

    def take(
        self,
        occurrence: Occurrence,
        feature: Feature,
        encoder_budget: int | None = None,
        num_rows_chosen: int = 0,
    ) -> Answer:
        """Hold the item's slots if there is room; arguments as of :meth:`SpecBook.take`."""
        rows = feature.num_rows
        if exceeds_budget(rows, encoder_budget) or rows + num_rows_chosen > self.num_free_slots:
            return "refused"
        self.held[occurrence] = self.held.get(occurrence, 0) + rows
        return "allocated"

    def drop(self, occurrence: Occurrence) -> None:
        """Credit the item's slots, if they are held."""
        self.held.pop(occurrence, None)

    def finish(self, request: int) -> None:
        """Credit the slots of all items of the request."""
        self.held = {o: rows for o, rows in self.held.items() if o[0] != request}

    def reset(self) -> None:
        """Forget everything."""
        self.held.clear()
