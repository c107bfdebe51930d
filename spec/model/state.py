"""What the model's states and steps are made of: plain tuples of integers.

Tuples are made, compared and hashed at C speed; the functions that use them unpack them by name.
Sets of occurrences and of hashes are bit masks: an *occurrence* is one feature of one request,
numbered over all requests; a *hash* is numbered in the order in which it first occurs.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

ABSENT, WAITING, RUNNING, PREEMPTED, FINISHED = range(5)
"""Statuses. A waiting request has never run, a preempted one waits to run again."""

STATUS_NAMES = ("absent", "waiting", "running", "preempted", "finished")

LIVE, STALE, DROPPED = range(3)
"""Standing of an output in flight: it counts; its request was preempted, and what it sampled is
still delivered; or nothing of it is used."""

RequestState: TypeAlias = tuple[int, int, int, int, int, int, int, int]
"""Status; computed tokens; output placeholders; drafts to schedule; known tokens; KV blocks; prefix
hits used up; place among the arrivals (by priority only). All zero but the status once it ended."""

ABSENT_REQUEST: RequestState = (ABSENT, 0, 0, 0, 0, 0, 0, 0)
ENDED_REQUEST: RequestState = (FINISHED, 0, 0, 0, 0, 0, 0, 0)

Entry: TypeAlias = tuple[int, int, int, bool, int]
"""One request of a pass in flight: request; tokens; drafts among them; whether it samples; its
standing. Of a dropped one only the request is kept."""

Batch: TypeAlias = tuple[Entry, ...]


class State(NamedTuple):
    """All that the next pass reads, and what the claims remember.

    Attributes:
        requests: each request of the scenario.
        waiting: the waiting queue.
        running: the running requests.
        held: occurrences whose reference is held.
        entries: hashes in the book.
        freeable: unreferenced entries, the next to be evicted first.
        free: rows of no entry.
        freeable_slots: rows free now or after evicting all unreferenced entries.
        worker: hashes on the worker.
        payload: requests whose raw data is on the worker.
        in_flight: passes that are not yet updated, the oldest first.
        ended: requests that ended since the last pass, where the worker acts on it.
        taken: occurrences taken that their request may still need; no rule reads it.
    """

    requests: tuple[RequestState, ...]
    waiting: tuple[int, ...]
    running: tuple[int, ...]
    held: int
    entries: int
    freeable: tuple[int, ...]
    free: int
    freeable_slots: int
    worker: int
    payload: int
    in_flight: tuple[Batch, ...]
    ended: tuple[int, ...]
    taken: int


Scheduled: TypeAlias = tuple[int, int, int, int, int, int, bool]
"""One request of a batch: request; progress before; tokens; drafts among them; placeholders before;
known tokens; whether it came from the waiting queue."""


Try: TypeAlias = tuple[int, int, int, int]
"""Request; the first occurrence it asked for, or -1; the one it was refused, or -1; whether it got
its KV blocks: 1 or 0, or -1 where it did not ask."""


class PassRecord(NamedTuple):
    """What a pass did.

    Attributes:
        scheduled: the batch.
        inputs: occurrences to encode, in order.
        notices: hashes that the worker is told to drop, in order.
        preempted: requests preempted, in order.
        hits: occurrences that were found in the book.
        allocated: occurrences that were allocated.
        refused: occurrences for which there was no room or budget.
        dropped: occurrences let go by progress in the pass, which only a departure does.
        duplicates: further occurrences of hashes that their request allocated in the pass.
        tries: what was asked for each request that was tried, in order.
        error: what the pass raised.
    """

    scheduled: tuple[Scheduled, ...]
    inputs: tuple[int, ...]
    notices: tuple[int, ...]
    preempted: tuple[int, ...]
    hits: int
    allocated: int
    refused: int
    dropped: int
    duplicates: int
    tries: tuple[Try, ...]
    error: str | None


OutcomeSeen: TypeAlias = tuple[int, int, int, bool, int]
"""Request; drafts accepted; tokens emitted; whether dropped; where progress fell to, or -1."""


class UpdateRecord(NamedTuple):
    """What an update did.

    Attributes:
        outcomes: one for each request of the batch.
        freed: occurrences let go by progress.
        error: what it raised.
    """

    outcomes: tuple[OutcomeSeen, ...]
    freed: int
    error: str | None
