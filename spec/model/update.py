"""The update of a pass, and what comes from outside: how progress falls, and references go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from spec.model.layout import Layout
from spec.model.schedule import free_by_progress
from spec.model.state import (
    ABSENT,
    ABSENT_REQUEST,
    DROPPED,
    FINISHED,
    LIVE,
    WAITING,
    Entry,
    OutcomeSeen,
    RequestState,
    State,
    UpdateRecord,
)
from spec.model.working import Begin, NoReferenceError, Working
from spec.rules import turn

tokens_emitted = cache(turn.tokens_emitted)

_NO_LOADS: Mapping[int, Sequence[int]] = {}


def initial_state(layout: Layout) -> State:
    """No request has arrived, and the cache is empty."""
    size = layout.config.encoder_cache_size
    requests = (ABSENT_REQUEST,) * layout.num_requests
    return State(requests, (), (), 0, 0, (), size, size, 0, 0, (), (), 0)


def arrive(layout: Layout, state: State, request: int) -> State:
    """Let a request arrive, behind those that wait."""
    work = Working(layout, state)
    rank = 0
    if layout.config.policy == "priority":
        rank = sum(other.status != ABSENT for other in state.requests)
    work.requests[request] = RequestState(WAITING, 0, 0, 0, layout.prompt[request], 0, 0, rank)
    if layout.config.policy == "priority":
        work.insert(request)
    else:
        work.waiting.append(request)
    return work.freeze()


def abort(
    layout: Layout, state: State, request: int, begin: Begin = Working
) -> tuple[State, str | None]:
    """Abort a request; nothing if it has ended. The second value is what that raised."""
    if state.requests[request].status == FINISHED:
        return state, None
    work = begin(layout, state)
    try:
        work.finish(request)
    except NoReferenceError as raised:
        return state, f"request {raised} holds no reference"
    return work.freeze(), None


def reset(layout: Layout, state: State) -> State:
    """Reset the cache, on the book and on the worker."""
    size = layout.config.encoder_cache_size
    return state._replace(
        held=0, entries=0, freeable=(), free=size, freeable_slots=size, worker=0, taken=0
    )


def is_due(layout: Layout, state: State, has_scheduled: bool) -> bool:
    """Whether the oldest pass in flight is updated after a pass that ran something, or nothing."""
    if len(state.in_flight) > layout.config.async_depth:
        return True
    return not has_scheduled and bool(state.in_flight)


def update(
    layout: Layout,
    state: State,
    accepted: Sequence[int],
    loads: Mapping[int, Sequence[int]] = _NO_LOADS,
    begin: Begin = Working,
) -> tuple[State, UpdateRecord]:
    """Update the oldest pass in flight.

    Args:
        layout: what never changes.
        state: with at least one pass in flight.
        accepted: drafts accepted of each request of the pass, at most those that it ran.
        loads: falls of progress that are reported: to how many tokens, by request.
        begin: as of :func:`spec.model.schedule.schedule`.
    """
    work = begin(layout, state)
    batch = work.in_flight[0]
    work.in_flight = work.in_flight[1:]
    outcomes: list[OutcomeSeen] = []
    freed = 0
    for place, entry in enumerate(batch):
        if entry.standing == DROPPED:
            outcomes.append(OutcomeSeen(entry.request, 0, 0, dropped=True))
            continue
        try:
            if entry.standing == LIVE and loads and _fall(work, entry.request, loads, outcomes):
                continue
            freed |= _update_request(work, entry, accepted[place], outcomes)
        except NoReferenceError as raised:
            error = f"request {raised} holds no reference"
            return state, UpdateRecord(tuple(outcomes), freed, error)
    if work.taken:
        work.forget_passed()
    return work.freeze(), UpdateRecord(tuple(outcomes), freed, None)


def _fall(
    work: Working, request: int, loads: Mapping[int, Sequence[int]], outcomes: list[OutcomeSeen]
) -> bool:
    """Let progress fall where KV turns out to be missing; whether it did."""
    status, computed, placeholders, _, known_tokens, blocks, starts, rank = work.requests[request]
    for load in loads.get(request, ()):
        left = min(load, known_tokens - 1)
        if left < computed - placeholders:
            work.requests[request] = RequestState(
                status, left, 0, 0, known_tokens, blocks, starts, rank
            )
            work.mark_outputs(request, DROPPED)
            work.let_all_go(request)
            work.taken &= ~work.layout.own[request]
            outcomes.append(OutcomeSeen(request, 0, 0, dropped=True, fell_to=left))
            return True
    return False


def _update_request(work: Working, entry: Entry, accepted: int, outcomes: list[OutcomeSeen]) -> int:
    """Take back what was rejected, let go of what is passed, append what was sampled."""
    request, _, num_drafts, samples, standing = entry
    layout = work.layout
    status, computed, placeholders, drafts, known_tokens, blocks, starts, rank = work.requests[
        request
    ]
    is_live = standing == LIVE
    freed = 0
    if is_live:
        if num_drafts > accepted and layout.rules.takes_rejections_back:
            rejected = num_drafts - accepted
            computed -= rejected
            if placeholders:
                placeholders -= rejected
            work.requests[request] = RequestState(
                status, computed, placeholders, drafts, known_tokens, blocks, starts, rank
            )
        if layout.rules.frees == "in-update" and work.held:
            freed = free_by_progress(work, request)
    if not samples:
        outcomes.append(OutcomeSeen(request, accepted, 0, dropped=False))
        return freed
    sampled = 1 + accepted
    limit = layout.limit[request]
    emitted = tokens_emitted(sampled, known_tokens, limit)
    outcomes.append(OutcomeSeen(request, accepted, emitted, dropped=False))
    known_tokens += emitted
    if known_tokens >= limit:
        work.finish(request)
        return freed
    if is_live:
        computed -= sampled - emitted
        if placeholders:
            placeholders -= sampled
        if not layout.config.async_depth:
            drafts = layout.config.num_speculative_tokens
    work.requests[request] = RequestState(
        status, computed, placeholders, drafts, known_tokens, blocks, starts, rank
    )
    return freed
