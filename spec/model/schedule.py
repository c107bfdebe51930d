"""A pass: what is scheduled, what counts as computed, and what the worker then holds."""

from __future__ import annotations

from functools import cache

from spec.model.batch import PassUnderWay
from spec.model.layout import Layout
from spec.model.state import LIVE, Batch, Entry, PassRecord, RequestState, Scheduled, State
from spec.model.working import Begin, NoReferenceError, Working
from spec.rules import free
from spec.rules.releases import in_tokens

may_drop_reference = cache(free.may_drop_reference)


def schedule(layout: Layout, state: State, begin: Begin = Working) -> tuple[State, PassRecord]:
    """Schedule one pass and run it on the worker; progress advances at once.

    Args:
        layout: what never changes.
        state: where the pass begins.
        begin: what takes the state apart; another one keeps the calls.
    """
    work = begin(layout, state)
    now = PassUnderWay(work)
    try:
        now.schedule_running()
        if not now.preempted:
            now.schedule_waiting()
    except NoReferenceError as raised:
        return state, _record(now, (), (), (0, 0), f"request {raised} holds no reference")
    notices = work.notices()
    scheduled = now.batch()
    if scheduled:
        work.in_flight = (*work.in_flight, _advance(work, scheduled))
    dropped = 0
    if layout.rules.frees == "in-pass":
        for request in now.chunks:
            dropped |= free_by_progress(work, request)
    _run_worker(work, now, notices)
    duplicates = 0
    if now.hits or now.allocated:
        duplicates = _note_taken(work, now, scheduled)
    if work.taken:
        work.forget_passed()
    return work.freeze(), _record(now, scheduled, notices, (dropped, duplicates), None)


def _record(
    now: PassUnderWay,
    scheduled: tuple[Scheduled, ...],
    notices: tuple[int, ...],
    dropped_and_duplicates: tuple[int, int],
    error: str | None,
) -> PassRecord:
    return PassRecord(
        scheduled,
        tuple([occurrence for _, occurrence in now.inputs]) if now.inputs else (),
        notices,
        tuple(now.preempted),
        now.hits,
        now.allocated,
        now.refused,
        *dropped_and_duplicates,
        tuple(now.tries),
        error,
    )


def _advance(work: Working, scheduled: tuple[Scheduled, ...]) -> Batch:
    """Count the pass as computed, and let it be in flight."""
    config = work.layout.config
    batch = []
    for request, start, num_tokens, num_drafts, placeholders, known_tokens, _ in scheduled:
        status, _, _, _, _, blocks, starts, rank = work.requests[request]
        end = start + num_tokens
        samples = end >= known_tokens + placeholders
        drafts = 0
        if samples and config.async_depth:
            placeholders += 1 + end - known_tokens - placeholders
            drafts = config.num_speculative_tokens
        work.requests[request] = RequestState(
            status,
            end,
            placeholders,
            drafts,
            known_tokens,
            blocks,
            starts,
            rank,
        )
        batch.append(Entry(request, num_tokens, num_drafts, samples, LIVE))
    return tuple(batch)


def free_by_progress(work: Working, request: int) -> int:
    """Let go of what confirmed progress has passed; the occurrences that went."""
    layout = work.layout
    held = work.held & layout.own[request]
    if not held:
        return 0
    margin = in_tokens(layout.rules.margin, layout.config.scheduler_lookahead)
    state = work.requests[request]
    gone = 0
    for occurrence in range(layout.first[request], layout.first[request + 1]):
        if held >> occurrence & 1:
            offset = layout.offset[occurrence]
            length = layout.end[occurrence] - offset
            if may_drop_reference(offset, length, state.computed, state.placeholders, margin):
                work.let_go(request, occurrence)
                gone |= 1 << occurrence
    return gone


def _run_worker(work: Working, now: PassUnderWay, notices: tuple[int, ...]) -> None:
    """Apply the output: what ended, what was evicted, what is encoded, in this order."""
    layout = work.layout
    if work.ended:
        for request in work.ended:
            for occurrence in range(layout.first[request], layout.first[request + 1]):
                work.worker &= ~(1 << layout.hash_of[occurrence])
        work.ended = ()
    for name in notices:
        work.worker &= ~(1 << name)
    for request, occurrence in now.inputs:
        if layout.rules.resends_payload or work.payload >> request & 1:
            work.worker |= 1 << layout.hash_of[occurrence]


def _note_taken(work: Working, now: PassUnderWay, scheduled: tuple[Scheduled, ...]) -> int:
    """Remember what the pass took, for the claims; the occurrences met as duplicates."""
    layout = work.layout
    taken = now.hits | now.allocated
    duplicates = 0
    if now.allocated:
        for request, start, num_tokens, *_ in scheduled:
            allocated = now.allocated & layout.own[request]
            if allocated:
                duplicates |= _duplicates(layout, request, start, num_tokens, taken, allocated)
    work.taken |= (taken | duplicates) & layout.owned_by(tuple(work.running))
    return duplicates


def _duplicates(
    layout: Layout, request: int, start: int, num_tokens: int, taken: int, allocated: int
) -> int:
    """Occurrences in the window whose hash the request allocated in the pass."""
    names = layout.hashes_of(allocated)
    window = start + num_tokens + layout.config.scheduler_lookahead
    duplicates = 0
    for occurrence in range(layout.first_after[request][start], layout.first[request + 1]):
        if layout.offset[occurrence] >= window:
            break
        if names >> layout.hash_of[occurrence] & 1:
            if not taken >> occurrence & 1:
                duplicates |= 1 << occurrence
        elif not taken >> occurrence & 1 and layout.has_row_in(occurrence, start, window):
            # Behind what was refused or cut, a reference would keep the room from it.
            break
    return duplicates
