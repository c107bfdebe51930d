"""Judging the steps of the model, as the monitor judges traces.

Sets of claims are bit masks, so that a step that breaks none costs a few comparisons of integers.
Progress (``no-stall``, ``no-thrash``) is about whole graphs or runs, and judged where those are.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from itertools import product

from spec.algebra import BoolTerm
from spec.claims import predicates as claims
from spec.model.claims import (
    COUNTS_AGREE,
    DROPPED_IN_UPDATE,
    EVICTED_NOT_LIVE,
    FREED_NOT_NEEDED,
    HELD_UNTIL_LAST_USE,
    NO_ERROR,
    NO_IDLE_REFERENCES,
    PAYLOAD_AVAILABLE,
    RELEASED,
    SLOTS_CONSERVED,
    VIEWS_AGREE,
    WORK_CONSERVING,
    WORKER_BOUNDED,
)
from spec.model.conserving import holds_up
from spec.model.judge_reads import ReadsJudge
from spec.model.layout import Layout
from spec.model.state import FINISHED, LIVE, RUNNING, PassRecord, State, UpdateRecord


class OnSets:
    """A claim about truth values, asked of many subjects at once: each value is a set of them.

    The claim is evaluated once for every combination of truth values; what is left to do on a step
    is a few operations on bit masks.

    Args:
        claim: the claim's statement.
        universe: all subjects: occurrences or hashes.
    """

    def __init__(self, claim: Callable[..., BoolTerm], universe: int) -> None:
        count = len(signature(claim).parameters)
        self._universe = universe
        self._violating = [v for v in product((False, True), repeat=count) if not claim(*v)]

    def broken(self, *sets: int) -> int:
        """The subjects of which the claim does not hold, given those of which each value does."""
        found = 0
        for values in self._violating:
            subjects = self._universe
            for value, members in zip(values, sets, strict=True):
                subjects &= members if value else ~members
            found |= subjects
        return found


class Judge:
    """Judge the steps of one layout.

    Args:
        layout: what never changes.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._size = layout.config.encoder_cache_size
        self._reads = ReadsJudge(layout)
        self._premises = NO_ERROR
        self._views: dict[tuple[int, int], int] = {}
        self._slots: dict[tuple[int, int, int, int, tuple[int, ...]], int] = {}
        self._needed: dict[tuple[int, int], int] = {}
        hashes, occurrences = (1 << len(layout.names)) - 1, (1 << len(layout.spans)) - 1
        self._views_agree = OnSets(claims.views_agree, hashes)
        self._evicted_not_live = OnSets(claims.evicted_not_live, hashes)
        self._freeable = OnSets(claims.freeable_is_unreferenced, hashes)
        self._held = OnSets(claims.held_until_last_use, occurrences)
        self._idle = OnSets(claims.no_idle_references, occurrences)
        self._dropped = OnSets(claims.dropped_in_update, occurrences)
        self._released = OnSets(claims.released, occurrences)
        self._payload = OnSets(claims.payload_available, occurrences)

    @property
    def premises(self) -> int:
        """Claims whose premise happened so far."""
        return self._premises | self._reads.premises

    def note_premise(self, claims: int) -> None:
        """Note that the premise of some claims happened."""
        self._premises |= claims

    def judge_pass(self, before: State, record: PassRecord, after: State) -> int:
        """Claims that a pass breaks.

        Args:
            before: the state in which it began, events before it included.
            record: what it did.
            after: the state that it left.
        """
        if record.error is not None:
            return NO_ERROR
        broken = self._judge_book(after)
        if after.entries or after.worker:
            self._premises |= VIEWS_AGREE | WORKER_BOUNDED
            views = self._views.get((after.entries, after.worker))
            broken |= self._judge_views(after) if views is None else views
        if record.notices:
            self._premises |= EVICTED_NOT_LIVE
            announced = 0
            for name in record.notices:
                announced |= 1 << name
            if self._evicted_not_live.broken(announced, after.entries):
                broken |= EVICTED_NOT_LIVE
        if after.waiting:
            self._premises |= NO_IDLE_REFERENCES
            # No request of the model pauses.
            if self._idle.broken(self._layout.owned_by(after.waiting), 0, after.held):
                broken |= NO_IDLE_REFERENCES
        lost = before.held & ~after.held | record.dropped
        if lost and self._dropped.broken(lost, 0, ~self._layout.owned_by(after.running)):
            broken |= DROPPED_IN_UPDATE
        if record.preempted and self._layout.config.policy == "priority":
            broken |= self._judge_victims(before, record, after)
        for scheduled in record.scheduled:
            if scheduled.start < self._layout.last_end[scheduled.request]:
                broken |= self._reads.judge(scheduled, record, after)
        if record.inputs:
            self._premises |= PAYLOAD_AVAILABLE
            broken |= self._judge_payload(record, after)
        if record.refused:
            premise, violated = holds_up(self._layout, before, record, after)
            if premise:
                self._premises |= WORK_CONSERVING
            if violated:
                broken |= WORK_CONSERVING
        return broken

    def judge_update(self, before: State, record: UpdateRecord, after: State) -> int:
        """Claims that an update breaks, with the states before and after it."""
        if record.error is not None:
            return NO_ERROR
        broken = self._judge_book(after)
        if record.freed:
            self._premises |= FREED_NOT_NEEDED | DROPPED_IN_UPDATE
            broken |= self._judge_freed(record.freed, after)
            if self._dropped.broken(record.freed, 0, record.freed):
                broken |= DROPPED_IN_UPDATE
        self._premises |= COUNTS_AGREE
        for entry, outcome in zip(before.in_flight[0], record.outcomes, strict=True):
            request, _, num_drafts, samples, standing = entry
            state = after.requests[request]
            if standing == LIVE and not outcome.dropped and state.status == RUNNING:
                # What was rejected, and what was sampled past the end, is not computed.
                accepted, emitted = outcome.num_accepted, outcome.num_emitted
                lost = num_drafts - accepted + (1 + accepted - emitted if samples else 0)
                if state.computed != before.requests[request].computed - lost:
                    broken |= COUNTS_AGREE
        return broken

    def judge_event(self, after: State, error: str | None) -> int:
        """Claims that an event breaks, with the state that it left."""
        return NO_ERROR if error is not None else self._judge_book(after)

    def _judge_book(self, state: State) -> int:
        """Slots, references of those that ended, and of what is still to be read."""
        layout = self._layout
        broken = 0
        referenced = layout.hashes_of(state.held)
        if state.entries:
            self._premises |= SLOTS_CONSERVED
        key = (state.free, state.freeable_slots, state.entries, referenced, state.freeable)
        slots = self._slots.get(key)
        if slots is None:
            slots = self._slots[key] = self._judge_slots(state, referenced)
        broken |= slots
        if state.held:
            ended = 0
            for request, other in enumerate(state.requests):
                if other.status == FINISHED:
                    ended |= layout.own[request]
            if self._released.broken(ended, state.held):
                broken |= RELEASED
        if state.taken:
            self._premises |= HELD_UNTIL_LAST_USE | RELEASED
            # What is remembered as taken has a row that is still to be read.
            needed = self._needed.get((state.taken, referenced))
            if needed is None:
                lost = self._held.broken(state.taken, state.taken, ~layout.without(referenced))
                needed = HELD_UNTIL_LAST_USE if lost else 0
                self._needed[state.taken, referenced] = needed
            broken |= needed
        return broken

    def _judge_slots(self, state: State, referenced: int) -> int:
        """Whether the book's counts and its freeable entries are those of its references."""
        rows_of = self._layout.rows_of
        if not claims.slots_conserved(
            state.free,
            state.freeable_slots,
            rows_of(state.entries),
            rows_of(referenced),
            self._size,
        ):
            return SLOTS_CONSERVED
        freeable = 0
        for name in state.freeable:
            freeable |= 1 << name
        if self._freeable.broken(freeable, state.entries, referenced):
            return SLOTS_CONSERVED
        return 0

    def _judge_views(self, after: State) -> int:
        """Whether the worker holds the book, and no more than it may."""
        broken = 0
        if self._views_agree.broken(after.entries, after.worker):
            broken |= VIEWS_AGREE
        if not claims.worker_bounded(self._layout.rows_of(after.worker), self._size):
            broken |= WORKER_BOUNDED
        self._views[after.entries, after.worker] = broken
        return broken

    def _judge_victims(self, before: State, record: PassRecord, after: State) -> int:
        """Whether everybody who goes on running comes before those who were preempted."""
        places = [
            (self._layout.priority[request], before.requests[request].rank)
            for request in range(self._layout.num_requests)
        ]
        first_victim = min(places[request] for request in record.preempted)
        stayed = (places[r] for r in before.running if r in after.running)
        return COUNTS_AGREE if any(place > first_victim for place in stayed) else 0

    def _judge_payload(self, record: PassRecord, after: State) -> int:
        inputs = sent = 0
        for occurrence in record.inputs:
            inputs |= 1 << occurrence
        resends = self._layout.rules.resends_payload
        for request, own in enumerate(self._layout.own):
            if resends or after.payload >> request & 1:
                sent |= own
        return PAYLOAD_AVAILABLE if self._payload.broken(inputs, sent) else 0

    def _judge_freed(self, freed: int, after: State) -> int:
        """Whether progress can fall back into what it let go."""
        layout = self._layout
        for request in after.running:
            own = freed & layout.own[request]
            if not own:
                continue
            state = after.requests[request]
            drafts = sum(
                entry.num_drafts
                for batch in after.in_flight
                for entry in batch
                if entry.request == request and entry.standing == LIVE
            )
            for occurrence in range(layout.first[request], layout.first[request + 1]):
                let_go = bool(own >> occurrence & 1)
                if not claims.freed_not_needed(
                    let_go, layout.end[occurrence], state.computed - drafts
                ):
                    return FREED_NOT_NEEDED
        return 0
