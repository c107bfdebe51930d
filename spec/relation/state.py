"""What the relation sees of a run: its constants and its state.

All values are integers or truth values of :mod:`spec.algebra`: numbers of a recorded run, or terms.
*r*, *f*, *p* and *h* are the request, its feature, a position of it that takes a row, and the entry
of its hash. An *occurrence* is a request with one of its features.
"""

from __future__ import annotations

from typing import NamedTuple

from spec.algebra import BoolTerm, IntTerm, and_, or_
from spec.claims.predicates import Chunk


class Scope(NamedTuple):
    """What stays the same in a run (tokens, unless said otherwise).

    Attributes:
        cache_size: capacity of the encoder cache (rows).
        rows: rows of the entry h.
        offset: first position of the feature f.
        length: its length.
        position: p, a position of f that takes a row.
        scheduler_lookahead: how far past a chunk the scheduler asks for encoder inputs.
        gather_lookahead: how far the drafter reads ahead of the target.
        is_async: whether passes are scheduled before the update of an earlier one.
        is_whole: whether chunking of items is off.
    """

    cache_size: IntTerm
    rows: IntTerm
    offset: IntTerm
    length: IntTerm
    position: IntTerm
    scheduler_lookahead: IntTerm
    gather_lookahead: IntTerm
    is_async: BoolTerm
    is_whole: BoolTerm

    @property
    def end(self) -> IntTerm:
        """The position after the feature's last."""
        return self.offset + self.length

    def has_row_in(self, start: IntTerm, end: IntTerm) -> BoolTerm:
        """Whether the range has the position p, which stands for any row of the feature."""
        return and_(start <= self.position, self.position < end)


class State(NamedTuple):
    """The projected state: a tuple, since replays of runs make, compare and look up so many.

    Attributes:
        running: r is among the running requests.
        trying: r waits, and the pass has begun to ask for its encoder inputs.
        computed: ``num_computed_tokens`` of r.
        placeholders: ``num_output_placeholders`` of r.
        drafts: draft tokens of r in passes since it last started that are not yet updated.
        passes: those passes.
        sampling: those among them that sample.
        settling: tokens confirmed by the update in progress that are still placeholders.
        taken: r took the occurrence f since it last started, was rewound or the cache was reset.
        passed: progress let the occurrence f go since r last started.
        payload: the raw data of f is on the worker.
        started: r came from the waiting queue in this pass.
        entry: h is in the book.
        held: the book keeps h for the occurrence f of r.
        others: further occurrences for which it keeps h, of r or of anybody.
        free: the book's count of free slots (rows).
        freeable: its count of slots free now or after all evictions (rows).
        referenced_rows: rows of all other referenced entries.
        idle_rows: rows of all other unreferenced entries.
        in_pass: a pass is being scheduled, or has just run.
        promised: rows for which the book made room in the call in progress, not yet allocated.
        promised_here: h is among them.
        evicted: h was evicted in this pass.
        chosen: this pass's output has h encoded.
        asked: r hit or allocated f, or met it as a duplicate, in this pass.
        start: progress of r at the start of this pass.
        scheduled: tokens of r in this pass; 0 where it does not run.
        resident: the worker holds the tensor of h.
        fresh: that tensor was encoded since the cache was last reset.
    """

    running: BoolTerm
    trying: BoolTerm
    computed: IntTerm
    placeholders: IntTerm
    drafts: IntTerm
    passes: IntTerm
    sampling: IntTerm
    settling: IntTerm
    taken: BoolTerm
    passed: BoolTerm
    payload: BoolTerm
    started: BoolTerm
    entry: BoolTerm
    held: BoolTerm
    others: IntTerm
    free: IntTerm
    freeable: IntTerm
    referenced_rows: IntTerm
    idle_rows: IntTerm
    in_pass: BoolTerm
    promised: IntTerm
    promised_here: BoolTerm
    evicted: BoolTerm
    chosen: BoolTerm
    asked: BoolTerm
    start: IntTerm
    scheduled: IntTerm
    resident: BoolTerm
    fresh: BoolTerm

    @property
    def referenced(self) -> BoolTerm:
        """Whether anybody holds h."""
        return or_(self.held, self.others >= 1)

    def chunk(self, look_ahead: IntTerm = 0) -> Chunk:
        """What the pass runs of r; nothing where it does not run."""
        return Chunk(self.start, self.start + self.scheduled, look_ahead)

    @property
    def lowest_progress(self) -> IntTerm:
        """The position that progress can fall back to when all drafts in flight are rejected."""
        return self.computed - self.drafts


class Move(NamedTuple):
    """A transition from a state.

    Attributes:
        guards: named conditions on the state before and on what the transition is given.
        after: the state after it.
    """

    guards: dict[str, BoolTerm]
    after: State


def initial(scope: Scope) -> State:
    """The state before anything happened."""
    return State(
        running=False,
        trying=False,
        computed=0,
        placeholders=0,
        drafts=0,
        passes=0,
        sampling=0,
        settling=0,
        taken=False,
        passed=False,
        payload=False,
        started=False,
        entry=False,
        held=False,
        others=0,
        free=scope.cache_size,
        freeable=scope.cache_size,
        referenced_rows=0,
        idle_rows=0,
        in_pass=False,
        promised=0,
        promised_here=False,
        evicted=False,
        chosen=False,
        asked=False,
        start=0,
        scheduled=0,
        resident=False,
        fresh=False,
    )
