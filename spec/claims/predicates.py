"""The claims themselves: what must hold of one request, feature, entry and pass.

Read this page first. Each function is one claim over :mod:`spec.algebra`, so that the same text is

* judged on the numbers of every recorded run (:mod:`spec.monitor`),
* judged on every transition of the finite model (:mod:`spec.model`),
* proved of the unbounded relation (:mod:`spec.relation`, :mod:`proofs.theorems.runs`), and
* proved of a release's own source on symbolic integers (:mod:`proofs.source.passes`).

Nobody writes one of them again: a test changes each in place and sees all four turn red. A
function's first paragraph is the claim's sentence wherever claims are printed.

Positions and offsets are token indices in one request; sizes are rows of the encoder cache. A
*chunk* is what one pass runs of one request. *Lowest progress* is the position that a request can
fall back to when all its drafts in flight are rejected.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from spec.algebra import BoolTerm, IntTerm, and_, eq, iff, implies, max_, not_, or_
from spec.claims.register import states
from spec.rules import geometry


class Span(Protocol):
    """A feature as far as claims look at it: numbers of a run, or a solver's terms."""

    @property
    def offset(self) -> IntTerm:
        """First position."""

    @property
    def end(self) -> IntTerm:
        """The position after its last."""

    def has_row_in(self, start: Any, end: Any) -> BoolTerm:
        """Whether a position of ``[start, end)`` takes a row of its encoder output."""


class Chunk(NamedTuple):
    """The positions ``[start, end)`` that a pass runs of a request.

    ``look_ahead`` is how far the drafter reads ahead of the target (tokens).
    """

    start: IntTerm
    end: IntTerm
    look_ahead: IntTerm = 0


def target_reads(feature: Span, chunk: Chunk) -> BoolTerm:
    """Whether the target reads a row of the feature."""
    return feature.has_row_in(chunk.start, chunk.end)


def drafter_reads(feature: Span, chunk: Chunk) -> BoolTerm:
    """Whether the drafter reads a row of the feature."""
    return feature.has_row_in(chunk.start + chunk.look_ahead, chunk.end + chunk.look_ahead)


def is_at_boundary(feature: Span, chunk: Chunk) -> BoolTerm:
    """Whether the feature starts at or past the processed end: only the drafter can reach it."""
    return geometry.is_at_boundary(feature.offset, chunk.end)


# What a pass reads


@states("target-resident")
def target_resident(feature: Span, chunk: Chunk, resident: BoolTerm) -> BoolTerm:
    """Every row that the target reads in its window is resident."""
    return implies(target_reads(feature, chunk), resident)


@states("drafter-resident-or-boundary")
def drafter_resident_or_boundary(feature: Span, chunk: Chunk, resident: BoolTerm) -> BoolTerm:
    """Every feature the drafter reads at position p+1 is resident or lies at the boundary."""
    return implies(drafter_reads(feature, chunk), or_(resident, is_at_boundary(feature, chunk)))


@states("need-agrees")
def need_agrees(feature: Span, chunk: Chunk, asked: BoolTerm, search_ended: BoolTerm) -> BoolTerm:
    """Every feature a gather reads in a pass was asked for in that pass: it was hit, allocated or a
    duplicate, or it was refused, or lies behind one that was or behind the cut before a whole item.

    Args:
        feature: the feature.
        chunk: what the pass runs.
        asked: whether it was hit, allocated, met as a duplicate or refused in the pass.
        search_ended: whether the scheduler's search for inputs ended before it or at it: at a
            feature that was refused, or at :func:`cut_before_whole_item`.
    """
    reads = or_(target_reads(feature, chunk), drafter_reads(feature, chunk))
    return implies(reads, or_(asked, and_(is_at_boundary(feature, chunk), search_ended)))


def cut_before_whole_item(feature: Span, start: IntTerm, least: IntTerm, most: IntTerm) -> BoolTerm:
    """Whether a pass had to end a chunk before an item, since it had no tokens to finish it.

    Args:
        feature: the item; chunking of items is off.
        start: where the chunk starts.
        least: the fewest tokens that the pass may have had left for the chunk when it was cut.
        most: the most.
    """
    return and_(feature.offset < start + most, start + least < feature.end)


@states("item-whole")
def item_whole(feature: Span, chunk: Chunk) -> BoolTerm:
    """With chunking of items off, a range that starts at or before an item does not end inside it.

    Asked of ranges with chunking of items off only.
    """
    starts_in = and_(chunk.start <= feature.offset, feature.offset < chunk.end)
    return implies(starts_in, feature.end <= chunk.end)


# What becomes of a gather, of each feature that it reads


@states("boundary-miss-tolerated")
def boundary_miss_tolerated(
    at_boundary: BoolTerm, resident: BoolTerm, raises: BoolTerm
) -> BoolTerm:
    """A boundary feature that is not resident is skipped, without an error.

    ``raises``: the gather raises an error for this feature.
    """
    return implies(and_(at_boundary, not_(resident)), not_(raises))


@states("interior-miss-raises")
def interior_miss_raises(at_boundary: BoolTerm, resident: BoolTerm, raises: BoolTerm) -> BoolTerm:
    """A miss inside the processed range is a clear error that names the hash.

    ``raises``: the gather raises such an error.
    """
    return implies(and_(not_(at_boundary), not_(resident)), raises)


@states("boundary-used-when-resident")
def boundary_used_when_resident(
    at_boundary: BoolTerm, resident: BoolTerm, is_used: BoolTerm
) -> BoolTerm:
    """A resident boundary feature is read, not skipped."""
    return implies(and_(at_boundary, resident), is_used)


@states("fresh-tensor")
def fresh_tensor(
    is_read: BoolTerm, is_own_content: BoolTerm, since_reset: BoolTerm, has_all_rows: BoolTerm
) -> BoolTerm:
    """Each row returned was encoded from the reader's own content since the last reset, and its
    tensor has as many rows as the reader's mask has true positions.

    Args:
        is_read: whether a reader finds the tensor.
        is_own_content: whether it was encoded from what the reader's hash stands for.
        since_reset: whether it was encoded since the cache was last reset.
        has_all_rows: whether it has the rows of the reader's mask.
    """
    return implies(is_read, and_(is_own_content, since_reset, has_all_rows))


# What the worker holds


@states("views-agree")
def views_agree(in_book: BoolTerm, on_worker: BoolTerm) -> BoolTerm:
    """After a pass the worker holds exactly the hashes that are in the pass's book."""
    return iff(in_book, on_worker)


@states("worker-bounded")
def worker_bounded(rows_on_worker: IntTerm, cache_size: IntTerm) -> BoolTerm:
    """The rows on the worker never exceed the cache size."""
    return rows_on_worker <= cache_size


@states("payload-available")
def payload_available(is_encoded: BoolTerm, has_raw_data: BoolTerm) -> BoolTerm:
    """An input is scheduled for encoding only if the worker has its raw data."""
    return implies(is_encoded, has_raw_data)


# What the book holds, and for whom


@states("slots-conserved")
def slots_conserved(
    free: IntTerm, freeable: IntTerm, occupied: IntTerm, referenced: IntTerm, cache_size: IntTerm
) -> BoolTerm:
    """Free and freeable slots equal the true sums, always, between 0 and the size.

    Args:
        free: the book's count of slots that no entry takes.
        freeable: its count of slots free now or after all evictions.
        occupied: rows of all entries.
        referenced: rows of the entries that somebody holds.
        cache_size: capacity.
    """
    return and_(eq(free, cache_size - occupied), eq(freeable, cache_size - referenced), free >= 0)


@states("slots-conserved")
def freeable_is_unreferenced(
    is_freeable: BoolTerm, in_book: BoolTerm, referenced: BoolTerm
) -> BoolTerm:
    """The entries that may be evicted are exactly those that nobody holds."""
    return iff(is_freeable, and_(in_book, not_(referenced)))


@states("evicted-not-live")
def evicted_not_live(is_announced: BoolTerm, in_book: BoolTerm) -> BoolTerm:
    """An eviction notice never names an entry that is in the book at the end of its pass."""
    return implies(is_announced, not_(in_book))


@states("dropped-in-update")
def dropped_in_update(held_before: BoolTerm, held_after: BoolTerm, may_drop: BoolTerm) -> BoolTerm:
    """References go only in an update, a preemption, a give-back, a finish, an abort or a reset.

    ``may_drop``: one of these happened to the request in the step.
    """
    return implies(and_(held_before, not_(held_after)), may_drop)


@states("freed-not-needed")
def freed_not_needed(let_go: BoolTerm, needed_to: IntTerm, lowest_progress: IntTerm) -> BoolTerm:
    """An occurrence let go by progress ends at or before the lowest position that progress can fall
    back to.

    ``needed_to``: the feature's end; 1 for encoder-decoder models, of which the first step alone
    reads.
    """
    return implies(let_go, needed_to <= lowest_progress)


@states("held-until-last-use")
def held_until_last_use(taken: BoolTerm, is_needed: BoolTerm, referenced: BoolTerm) -> BoolTerm:
    """An entry is unreferenced only if no taken occurrence of it has a row at or past the lowest
    position that progress can fall back to.

    ``is_needed``: the occurrence has such a row.
    """
    return implies(and_(taken, is_needed), referenced)


@states("no-idle-references")
def no_idle_references(is_idle: BoolTerm, is_needed: BoolTerm, held: BoolTerm) -> BoolTerm:
    """After a pass a waiting or preempted request holds no reference, a paused one only for
    features with an unprocessed row, an idle engine none.

    ``is_idle``: the request waits, is preempted or paused. ``is_needed``: it is paused, and a row
    of the feature is unprocessed.
    """
    return implies(and_(is_idle, not_(is_needed)), not_(held))


@states("released")
def released(has_ended: BoolTerm, held: BoolTerm) -> BoolTerm:
    """A request that ended, or let go of all that it took, holds no reference any more; where a run
    ends, every reference was dropped.
    """
    return implies(has_ended, not_(held))


# What a pass gives to whom


@states("pass-uses-budget")
def pass_uses_budget(num_tokens: IntTerm, least: IntTerm, lacks: BoolTerm) -> BoolTerm:
    """Every request that could run in a pass got its tokens, or something that it needs was used
    up.

    Asked of requests that are ready when the pass begins and that it does not preempt.

    Args:
        num_tokens: what the pass runs of the request; 0 where it got nothing.
        least: the fewest tokens that a right engine runs of it, given what the pass had left.
        lacks: whether a sequence slot, KV blocks, encoder room or encoder budget was used up.
    """
    return or_(lacks, num_tokens >= least)


@states("threshold-kept")
def threshold_kept(
    num_tokens: IntTerm,
    known: IntTerm,
    threshold: IntTerm,
    whole_item: IntTerm,
    has_others: BoolTerm,
) -> BoolTerm:
    """While others run or wait, no chunk of a long prefill is longer than the threshold, unless it
    ends with a whole item on which it starts.

    Asked where there is a threshold.

    Args:
        num_tokens: what the pass runs of the request.
        known: its known tokens that are not computed: the prefill is long if these are more than
            the threshold.
        threshold: on long prefills.
        whole_item: tokens up to the end of such an item; 0 where there is none.
        has_others: whether another request ran or waited when the pass began.
    """
    return implies(and_(has_others, known > threshold), num_tokens <= max_(threshold, whole_item))


@states("reservation-kept")
def reservation_kept(left: IntTerm, shift: IntTerm, has_shorter: BoolTerm) -> BoolTerm:
    """A chunk that does not finish a prefill leaves as many of its tokens as the drafter's modules
    read ahead, or no shorter chunk could run.

    Args:
        left: known tokens behind the chunk.
        shift: how far past the chunk the scheduler looks for the modules.
        has_shorter: whether a shorter chunk, of a token at least, leaves enough.
    """
    return implies(and_(left > 0, has_shorter), left >= shift)
