"""What the model's states and steps are made of: named tuples of integers.

Tuples are compared and hashed at C speed, and unpacked by name where many fields are read.
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


class RequestState(NamedTuple):
    """One request; all zero but the status once it ended.

    Attributes:
        status: as above.
        computed: tokens computed, placeholders included.
        placeholders: output placeholders (tokens).
        drafts: drafts to schedule (tokens).
        known_tokens: prompt and generated tokens.
        blocks: KV blocks.
        starts: prefix hits used up.
        rank: place among the arrivals, by priority only.
    """

    status: int
    computed: int
    placeholders: int
    drafts: int
    known_tokens: int
    blocks: int
    starts: int
    rank: int


ABSENT_REQUEST = RequestState(ABSENT, 0, 0, 0, 0, 0, 0, 0)
ENDED_REQUEST = RequestState(FINISHED, 0, 0, 0, 0, 0, 0, 0)


class Entry(NamedTuple):
    """One request of a pass in flight, its tokens and drafts; of a dropped one only the request."""

    request: int
    num_tokens: int
    num_drafts: int
    samples: bool
    standing: int


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


class Scheduled(NamedTuple):
    """One request of a batch; progress and placeholders as before the pass (tokens)."""

    request: int
    start: int
    num_tokens: int
    num_drafts: int
    placeholders: int
    known_tokens: int
    started: bool


class Try(NamedTuple):
    """A request that was tried in a pass.

    Attributes:
        request: the request.
        first_asked: the first occurrence that it asked for, or -1.
        refused: the occurrence that it was refused, or -1.
        got_blocks: whether it got its KV blocks, 1 or 0; -1 where it did not ask.
    """

    request: int
    first_asked: int
    refused: int
    got_blocks: int


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


class OutcomeSeen(NamedTuple):
    """What an update did to a request; ``fell_to`` is where progress fell to (tokens), or -1."""

    request: int
    num_accepted: int
    num_emitted: int
    dropped: bool
    fell_to: int = -1


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
