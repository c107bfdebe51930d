"""A state while a step changes it: book, queues, KV blocks and outputs in flight."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from spec.model.layout import Layout
from spec.model.state import (
    DROPPED,
    ENDED_REQUEST,
    LIVE,
    PREEMPTED,
    RUNNING,
    Batch,
    Entry,
    State,
)
from spec.rules.encoder_inputs import has_room

Begin: TypeAlias = Callable[[Layout, State], "Working"]
"""What takes a state apart at the beginning of a step."""


class NoReferenceError(Exception):
    """A request that holds no reference was to let all go, which only a departure minds."""


class Working:
    """One state, taken apart; :meth:`freeze` puts it together again.

    Args:
        layout: what never changes.
        state: where the step begins.

    Attributes:
        evicted: hashes evicted since the last notices.
        others: as in :class:`spec.model.state.State`.
    """

    __slots__ = (
        "ended",
        "entries",
        "evicted",
        "free",
        "freeable",
        "freeable_slots",
        "held",
        "in_flight",
        "layout",
        "payload",
        "requests",
        "rules",
        "running",
        "taken",
        "waiting",
        "worker",
    )

    def __init__(self, layout: Layout, state: State) -> None:
        self.layout = layout
        self.rules = layout.rules
        (
            requests,
            waiting,
            running,
            self.held,
            self.entries,
            freeable,
            self.free,
            self.freeable_slots,
            self.worker,
            self.payload,
            self.in_flight,
            self.ended,
            self.taken,
        ) = state
        self.requests = list(requests)
        self.waiting = list(waiting)
        self.running = list(running)
        self.freeable = list(freeable)
        self.evicted: list[int] = []

    def freeze(self) -> State:
        """The state that the step leads to."""
        return State(
            tuple(self.requests),
            tuple(self.waiting),
            tuple(self.running),
            self.held,
            self.entries,
            tuple(self.freeable),
            self.free,
            self.freeable_slots,
            self.worker,
            self.payload,
            self.in_flight,
            self.ended,
            self.taken,
        )

    # The book.

    def hit(self, occurrence: int) -> bool:
        """Take a reference if the hash is in the book; whether it is."""
        name = self.layout.hash_of[occurrence]
        if not self.entries >> name & 1:
            return False
        if not self.held & self.layout.sharing[name]:
            self.freeable.remove(name)
            self.freeable_slots -= self.layout.hash_rows[name]
        self.held |= 1 << occurrence
        return True

    def make_room(self, occurrence: int, encoder_budget: int, chosen_rows: int) -> bool:
        """Evict unreferenced entries until the occurrence fits; nothing if it cannot."""
        rows = self.layout.rows[occurrence]
        if not has_room(rows, encoder_budget, chosen_rows, self.freeable_slots):
            return False
        while rows + chosen_rows > self.free:
            name = self.freeable.pop(-1 if self.rules.evicts_newest else 0)
            self.entries &= ~(1 << name)
            self.free += self.layout.hash_rows[name]
            self.evicted.append(name)
        return True

    def allocate(self, occurrence: int) -> None:
        """Enter an output for which room was made."""
        name = self.layout.hash_of[occurrence]
        rows = self.layout.rows[occurrence]
        self.entries |= 1 << name
        self.held = self.held & ~self.layout.sharing[name] | 1 << occurrence
        self.free -= rows
        self.freeable_slots -= rows

    def let_go(self, request: int, occurrence: int) -> None:
        """Drop the reference of one occurrence; nothing if it has none."""
        bit = 1 << occurrence
        if not self.held & bit:
            return
        name = self.layout.hash_of[occurrence]
        sharing = self.layout.sharing[name]
        if not self.rules.counts_occurrences:
            bit = sharing & self.layout.own[request]
        self.held &= ~bit
        if not self.held & sharing:
            self.freeable.append(name)
            self.freeable_slots += self.layout.hash_rows[name]

    def let_all_go(self, request: int) -> None:
        """Drop all references of a request.

        Raises:
            NoReferenceError: it holds none, which a fault may mind.
        """
        own = self.held & self.layout.own[request]
        if not own:
            if self.rules.free_all == "raises":
                raise NoReferenceError(request)
            return
        if self.rules.free_all == "nothing":
            return
        for occurrence in range(self.layout.first[request], self.layout.first[request + 1]):
            if own >> occurrence & 1:
                self.let_go(request, occurrence)

    def cancel(self, occurrence: int) -> None:
        """Take an unreferenced entry out that will not be encoded."""
        name = self.layout.hash_of[occurrence]
        if self.entries >> name & 1 and not self.held & self.layout.sharing[name]:
            self.freeable.remove(name)
            self.entries &= ~(1 << name)
            self.free += self.layout.hash_rows[name]

    def notices(self) -> tuple[int, ...]:
        """End the pass: what the worker is told to drop."""
        evicted = self.evicted
        if not evicted or self.rules.notices == "lost":
            return ()
        if self.rules.notices == "stale":
            return tuple(evicted)
        return tuple([name for name in evicted if not self.entries >> name & 1])

    # Requests.

    def count_blocks(self, request: int, num_tokens: int) -> int | None:
        """KV blocks that the request would hold with so many tokens; ``None`` if too many."""
        config = self.layout.config
        drafts = config.num_speculative_tokens
        wanted = min(num_tokens, self.layout.limit[request]) + drafts
        held = self.requests[request].blocks
        blocks = -(-wanted // config.block_size)
        if blocks <= held:
            return held
        total = sum([other.blocks for other in self.requests])
        return blocks if total - held + blocks <= config.num_kv_blocks else None

    def mark_outputs(self, request: int, standing: int) -> None:
        """Let what a request has in flight count for less."""
        if self.in_flight:
            self.in_flight = tuple(
                [mark_entries(batch, request, standing) for batch in self.in_flight]
            )

    def has_in_flight(self, request: int) -> bool:
        """Whether a pass that is not yet updated runs the request."""
        for batch in self.in_flight:
            for entry in batch:
                if entry.request == request:
                    return True
        return False

    def drafts_in_flight(self, request: int) -> int:
        """Drafts of the request in passes that are not yet updated and count."""
        drafts = 0
        for batch in self.in_flight:
            for entry in batch:
                if entry.request == request and entry.standing == LIVE:
                    drafts += entry.num_drafts
        return drafts

    def forget_passed(self) -> None:
        """Forget what was taken and passed: only drafts in flight can be taken back."""
        layout = self.layout
        for request in self.running:
            taken = self.taken & layout.own[request]
            if taken:
                lowest = self.requests[request].computed - self.drafts_in_flight(request)
                for occurrence in range(layout.first[request], layout.first[request + 1]):
                    if taken >> occurrence & 1 and layout.last_row[occurrence] < lowest:
                        self.taken &= ~(1 << occurrence)

    def put_back(self, request: int) -> None:
        """Put a request that was preempted or skipped before the others."""
        if self.layout.config.policy == "priority":
            self.insert(request)
        else:
            self.waiting.insert(0, request)

    def insert(self, request: int) -> None:
        """Put a request behind those that come before it by priority, then arrival."""
        key, order = self.order(request), self.order
        place = len(self.waiting)
        while place and order(self.waiting[place - 1]) > key:
            place -= 1
        self.waiting.insert(place, request)

    def order(self, request: int) -> tuple[int, int]:
        """Sort key of the priority policy."""
        return self.layout.priority[request], self.requests[request].rank

    def finish(self, request: int) -> None:
        """End a request, wherever it stands.

        Raises:
            NoReferenceError: it holds no reference, which a fault may mind.
        """
        status = self.requests[request].status
        if status == RUNNING:
            self.running.remove(request)
        else:
            self.waiting.remove(request)
        if self.rules.end_releases:
            self.let_all_go(request)
        if self.rules.finished_drops_tensors and status in (RUNNING, PREEMPTED):
            self.ended += (request,)
        self.requests[request] = ENDED_REQUEST
        self.payload &= ~(1 << request)
        self.mark_outputs(request, DROPPED)
        self.taken &= ~self.layout.own[request]


def mark_entries(batch: Batch, request: int, standing: int) -> Batch:
    """A batch in which a request's entry counts for no more than the standing."""
    for place, entry in enumerate(batch):
        if entry.request == request and entry.standing < standing:
            return (*batch[:place], _lowered(entry, standing), *batch[place + 1 :])
    return batch


def _lowered(entry: Entry, standing: int) -> Entry:
    if standing == DROPPED:
        return Entry(entry.request, 0, 0, samples=False, standing=DROPPED)
    request, num_tokens, num_drafts, samples, _ = entry
    return Entry(request, num_tokens, num_drafts, samples, standing)
