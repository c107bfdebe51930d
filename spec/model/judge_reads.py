"""What the gathers of a pass find on the worker, and whether the scheduler asked for it."""

from __future__ import annotations

from spec.model.claims import (
    BOUNDARY_TOLERATED,
    BOUNDARY_USED,
    DRAFTER_RESIDENT,
    INTERIOR_RAISES,
    ITEM_WHOLE,
    NEED_AGREES,
    TARGET_RESIDENT,
)
from spec.model.layout import Layout, Reads
from spec.model.state import PassRecord, Scheduled, State


class ReadsJudge:
    """Judge what is read of one request after the other.

    Args:
        layout: what never changes.

    Attributes:
        premises: claims whose premise happened so far.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.premises = 0

    def judge(self, scheduled: Scheduled, record: PassRecord, after: State) -> int:
        """What the gathers of one request find, and whether it was asked for."""
        layout = self._layout
        request, start, num_tokens = scheduled[:3]
        reads = layout.window_reads(request, start, num_tokens)
        broken = 0
        if layout.config.whole_items and reads.whole:
            self.premises |= ITEM_WHOLE
            if reads.split:
                broken |= ITEM_WHOLE
        if not reads.needed:
            return broken
        self.premises |= NEED_AGREES
        if reads.target:
            self.premises |= TARGET_RESIDENT
        if reads.interior:
            self.premises |= DRAFTER_RESIDENT
        if reads.names & ~after.worker:
            broken |= self._judge_misses(reads, after.worker)
        if reads.boundary and layout.hashes_of(reads.boundary) & after.worker:
            self.premises |= BOUNDARY_USED
            if not layout.rules.reads_boundary:
                broken |= BOUNDARY_USED
        asked = record.hits | record.allocated | record.refused | record.duplicates
        if reads.needed & ~asked and self._never_asked(scheduled, reads, record, asked):
            broken |= NEED_AGREES
        return broken

    def _judge_misses(self, reads: Reads, worker: int) -> int:
        """What becomes of occurrences that are read and not resident."""
        layout = self._layout
        rules = layout.rules
        broken = target = interior = boundary = 0
        for occurrence, name in enumerate(layout.hash_of):
            if worker >> name & 1:
                continue
            bit = 1 << occurrence
            target |= reads.target & bit
            interior |= reads.interior & bit
            boundary |= reads.boundary & bit
        if target:
            broken |= TARGET_RESIDENT
        if interior & ~target:
            broken |= DRAFTER_RESIDENT
        if target or interior:
            self.premises |= INTERIOR_RAISES
            if not rules.raises_interior:
                broken |= INTERIOR_RAISES
        if boundary:
            self.premises |= BOUNDARY_TOLERATED
            # Where something inside is missing as well, that is what the error names.
            if not rules.tolerates_boundary and not interior:
                broken |= BOUNDARY_TOLERATED
        return broken

    def _never_asked(
        self, scheduled: Scheduled, reads: Reads, record: PassRecord, asked: int
    ) -> bool:
        """Whether something is read that the scheduler neither asked for nor had to leave out."""
        layout = self._layout
        request, start, num_tokens = scheduled[:3]
        end = start + num_tokens
        look_ahead = layout.config.gather_lookahead
        search_stopped = False
        for occurrence in range(layout.first_after[request][start], layout.first[request + 1]):
            offset = layout.offset[occurrence]
            if offset >= end + look_ahead:
                break
            bit = 1 << occurrence
            was_asked = bool(asked & bit)
            boundary = offset >= end
            cut = not was_asked and boundary and self._was_cut(scheduled, occurrence, record)
            excused = cut or (boundary and search_stopped)
            if not was_asked and reads.needed & bit and not excused:
                return True
            # The scheduler looks no further once a feature was refused.
            search_stopped = search_stopped or bool(record.refused & bit) or cut
        return False

    def _was_cut(self, scheduled: Scheduled, occurrence: int, record: PassRecord) -> bool:
        """Whether the range ended before an item that the pass had no tokens to finish."""
        config = self._layout.config
        if not config.whole_items:
            return False
        before = others = 0
        is_before = True
        for other in record.scheduled:
            if other is scheduled:
                is_before = False
            else:
                others += other[2]
                before += other[2] if is_before else 0
        budget = config.max_num_batched_tokens
        # What victims had run came back when the range was cut, or only after that.
        most, least = budget - before, 0 if record.preempted else budget - others
        if config.long_prefill_token_threshold:
            most = min(most, config.long_prefill_token_threshold)
            least = min(least, config.long_prefill_token_threshold)
        start = scheduled[1]
        offset, end = self._layout.offset[occurrence], self._layout.end[occurrence]
        return offset < start + most and start + least < end
