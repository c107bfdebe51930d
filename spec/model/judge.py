"""Judging the steps of the model, as the monitor judges traces.

Sets of claims are bit masks, so that a step that breaks none costs a few comparisons of integers.
Progress (``no-stall``, ``no-thrash``) is about whole graphs or runs, and judged where those are.
"""

from __future__ import annotations

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
            if after.entries != after.worker:
                broken |= VIEWS_AGREE
                if self._layout.rows_of(after.worker) > self._size:
                    broken |= WORKER_BOUNDED
        if record.notices:
            self._premises |= EVICTED_NOT_LIVE
            for name in record.notices:
                if after.entries >> name & 1:
                    broken |= EVICTED_NOT_LIVE
        if after.waiting:
            self._premises |= NO_IDLE_REFERENCES
            if after.held & self._layout.owned_by(after.waiting):
                broken |= NO_IDLE_REFERENCES
        if record.dropped:
            broken |= DROPPED_IN_UPDATE
        if record.preempted and self._layout.config.policy == "priority":
            broken |= self._judge_victims(before, record, after)
        for scheduled in record.scheduled:
            if scheduled[1] < self._layout.last_end[scheduled[0]]:
                broken |= self._reads.judge(scheduled, record, after)
        if record.inputs:
            self._premises |= PAYLOAD_AVAILABLE
            if not self._layout.rules.resends_payload:
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
        self._premises |= COUNTS_AGREE
        for entry, outcome in zip(before.in_flight[0], record.outcomes, strict=True):
            request, _, num_drafts, samples, standing = entry
            if standing == LIVE and not outcome[3] and after.requests[request][0] == RUNNING:
                # What was rejected, and what was sampled past the end, is not computed.
                lost = num_drafts - outcome[1] + (1 + outcome[1] - outcome[2] if samples else 0)
                if after.requests[request][1] != before.requests[request][1] - lost:
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
        if (
            state.free != self._size - layout.rows_of(state.entries)
            or state.freeable_slots != self._size - layout.rows_of(referenced)
            or state.free < 0
        ):
            broken |= SLOTS_CONSERVED
        unreferenced = 0
        for name in state.freeable:
            unreferenced |= 1 << name
        if unreferenced != state.entries & ~referenced:
            broken |= SLOTS_CONSERVED
        if state.held & ~layout.owned_by(state.running):
            for request, other in enumerate(state.requests):
                if other[0] == FINISHED and state.held & layout.own[request]:
                    broken |= RELEASED
        if state.taken:
            self._premises |= HELD_UNTIL_LAST_USE | RELEASED
            if layout.hashes_of(state.taken) & ~referenced:
                broken |= HELD_UNTIL_LAST_USE
        return broken

    def _judge_victims(self, before: State, record: PassRecord, after: State) -> int:
        """Whether everybody who goes on running comes before those who were preempted."""
        places = [
            (self._layout.priority[request], before.requests[request][7])
            for request in range(self._layout.num_requests)
        ]
        first_victim = min(places[request] for request in record.preempted)
        stayed = (places[r] for r in before.running if r in after.running)
        return COUNTS_AGREE if any(place > first_victim for place in stayed) else 0

    def _judge_payload(self, record: PassRecord, after: State) -> int:
        for occurrence in record.inputs:
            if not after.payload >> self._layout.request_of(occurrence) & 1:
                return PAYLOAD_AVAILABLE
        return 0

    def _judge_freed(self, freed: int, after: State) -> int:
        """Whether progress can fall back into what it let go."""
        layout = self._layout
        for request in after.running:
            own = freed & layout.own[request]
            if not own:
                continue
            state = after.requests[request]
            drafts = sum(
                entry[2]
                for batch in after.in_flight
                for entry in batch
                if entry[0] == request and entry[4] == LIVE
            )
            for occurrence in range(layout.first[request], layout.first[request + 1]):
                if own >> occurrence & 1 and layout.end[occurrence] > state[1] - drafts:
                    return FREED_NOT_NEEDED
        return 0
