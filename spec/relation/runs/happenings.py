"""What a step of a run did, one after the other, before any projection looks at it.

The same few things happen again and again in runs that share their beginning, and in runs of one
small scope: what they mean in a projection is worked out once for each state that they meet.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from spec.relation.runs.book_ledger import Act


class Happened(NamedTuple):
    """A transition that all projections take, or those of one request.

    Attributes:
        transition: its name.
        request: the request; -1 for all.
        arguments: names and values of what it is given.
    """

    transition: str
    request: int = -1
    arguments: tuple[tuple[str, int | bool], ...] = ()


class Scheduled(NamedTuple):
    """A request of the batch (tokens).

    Attributes:
        request: the request.
        started: whether it came from the waiting queue.
        start: its progress before the pass.
        num_tokens: tokens that run.
        num_drafts: drafts among them.
        samples: whether the step reaches the end of what is known.
        stopped_at: offset of the feature at which the search for encoder inputs stopped, if it did.
    """

    request: int
    started: bool
    start: int
    num_tokens: int
    num_drafts: int
    samples: bool
    stopped_at: int | None


class Applied(NamedTuple):
    """What a pass told the worker: raw data by occurrence, dropped requests, and hashes."""

    received: frozenset[tuple[int, int]]
    forgotten: tuple[int, ...]
    announced: frozenset[str]
    encoded: frozenset[str]


class Rewound(NamedTuple):
    """A request whose progress fell to so many tokens, and what it let go."""

    request: int
    left: int
    act: Act


Event: TypeAlias = Act | Happened | Scheduled | Applied | Rewound
"""Something that a step did; what it means depends on the projection. Those of two kinds are never
equal: they differ in their number of fields, or in the type of the first one."""


class Happenings:
    """Events one after the other; one object for all that are equal, which is found quickly."""

    __slots__ = ("events",)

    def __init__(self, events: tuple[Event, ...]) -> None:
        self.events = events
