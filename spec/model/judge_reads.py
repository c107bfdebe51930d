"""What the gathers of a pass find on the worker, and whether the scheduler asked for it."""

from __future__ import annotations

from spec.claims import predicates as claims
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
from spec.record.feature import Feature


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
        absent = layout.without(after.worker)
        missed = reads.target_lost & absent | reads.target_wrong & ~absent
        if missed:
            broken |= TARGET_RESIDENT
        # A tensor that the target misses already is one effect, and counts there.
        if (reads.drafter_lost & absent | reads.drafter_wrong & ~absent) & ~missed:
            broken |= DRAFTER_RESIDENT
        if reads.needed & absent:
            broken |= self._judge_misses(reads, absent)
        if reads.boundary & ~absent:
            self.premises |= BOUNDARY_USED
            if not claims.boundary_used_when_resident(True, True, layout.rules.reads_boundary):
                broken |= BOUNDARY_USED
        asked = record.hits | record.allocated | record.refused | record.duplicates
        unasked = reads.unasked & ~asked | reads.asked_wrong
        if unasked and self._never_asked(scheduled, reads, record, asked):
            broken |= NEED_AGREES
        return broken

    def _judge_misses(self, reads: Reads, absent: int) -> int:
        """What becomes of occurrences that are read and not resident."""
        rules = self._layout.rules
        interior, broken = (reads.target | reads.interior) & absent, 0
        if interior:
            self.premises |= INTERIOR_RAISES
            if not claims.interior_miss_raises(False, False, rules.raises_interior):
                broken |= INTERIOR_RAISES
        if reads.boundary & absent:
            self.premises |= BOUNDARY_TOLERATED
            # Where something inside is missing as well, that is what the error names.
            raises = not rules.tolerates_boundary and not reads.interior & absent
            if not claims.boundary_miss_tolerated(True, False, raises):
                broken |= BOUNDARY_TOLERATED
        return broken

    def _never_asked(
        self, scheduled: Scheduled, reads: Reads, record: PassRecord, asked: int
    ) -> bool:
        """Whether something is read that the scheduler neither asked for nor had to leave out."""
        layout, chunk = self._layout, reads.chunk
        request = scheduled.request
        search_ended = False
        for occurrence in range(
            layout.first_after[request][chunk.start], layout.first[request + 1]
        ):
            feature = layout.spans[occurrence]
            if feature.offset >= chunk.end + chunk.look_ahead:
                break
            was_asked = bool(asked >> occurrence & 1)
            cut = (
                not was_asked
                and claims.is_at_boundary(feature, chunk)
                and self._was_cut(scheduled, feature, record)
            )
            search_ended = search_ended or cut
            if not claims.need_agrees(feature, chunk, was_asked, search_ended):
                return True
            # The scheduler looks no further once a feature was refused.
            search_ended = search_ended or bool(record.refused >> occurrence & 1)
        return False

    def _was_cut(self, scheduled: Scheduled, feature: Feature, record: PassRecord) -> bool:
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
                others += other.num_tokens
                before += other.num_tokens if is_before else 0
        budget = config.max_num_batched_tokens
        # What victims had run came back when the range was cut, or only after that.
        most, least = budget - before, 0 if record.preempted else budget - others
        if config.long_prefill_token_threshold:
            most = min(most, config.long_prefill_token_threshold)
            least = min(least, config.long_prefill_token_threshold)
        cut: bool = claims.cut_before_whole_item(feature, scheduled.start, least, most)
        return cut
