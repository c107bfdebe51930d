"""Observations: what a target was seen to do with a case. Raw data, never a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from spec.record.steps import ErrorSeen


def request_name(index: int) -> str:
    """Name under which targets know the request with the given index in a case."""
    return f"request-{index}"


@dataclass(frozen=True)
class RowIdentity:
    """One row of one encoder output, recognised by its values. Row -1: not a row anyone stored."""

    identifier: str
    row: int


@dataclass(frozen=True)
class GatherObservation:
    """What a gather returned, or the error it raised.

    Attributes:
        rows: identities of all returned rows, concatenated in the order returned.
        slices: rows of each returned tensor.
        mask: for each flattened position of the batch, whether a row replaces it.
        merged: what the model reads at each position after the merge: a row, or ``None`` for that
            position's own token embedding.
        error: the exception, in which case the others are empty.
    """

    rows: tuple[RowIdentity, ...] = ()
    slices: tuple[int, ...] = ()
    mask: tuple[bool, ...] = ()
    merged: tuple[RowIdentity | None, ...] = ()
    error: ErrorSeen | None = None


@dataclass(frozen=True)
class BookState:
    """A book's contents as it reports them.

    Attributes:
        references: for each entry, in any order, the requests that hold a reference. Empty for the
            encoder-decoder book, which keeps no entries.
        num_free_slots: rows neither referenced nor freeable.
        num_freeable_slots: rows free now or after evicting all unreferenced entries; ``None`` where
            the book does not keep it.
    """

    references: tuple[tuple[str, tuple[str, ...]], ...]
    num_free_slots: int
    num_freeable_slots: int | None


@dataclass(frozen=True)
class FreeMoment:
    """What one run of *free* did: the features let go, and the book after it.

    ``dropped`` holds indices of features in the order in which they were let go.
    """

    dropped: tuple[int, ...]
    book: BookState


@dataclass(frozen=True)
class FreeObservation:
    """One :class:`FreeMoment` for each moment of the case, up to an error."""

    moments: tuple[FreeMoment, ...]
    error: ErrorSeen | None = None


Answer: TypeAlias = Literal["hit", "allocated", "refused", "rejected", "done"]
"""What a book said: ``rejected`` means that the row counts of one identifier differ."""


@dataclass(frozen=True)
class BookStep:
    """A book's answer to one operation, the notices it handed out, and its state afterwards."""

    answer: Answer
    notices: tuple[str, ...]
    book: BookState


@dataclass(frozen=True)
class BookObservation:
    """One :class:`BookStep` per operation, up to an error."""

    steps: tuple[BookStep, ...]
    error: ErrorSeen | None = None


@dataclass(frozen=True)
class RangeObservation:
    """A half-open range of indices that a search or a row count returned."""

    low: int
    high: int
    error: ErrorSeen | None = None


@dataclass(frozen=True)
class SchedulingPass:
    """What one pass did for a request (tokens, and indices of its features).

    Attributes:
        num_computed_tokens: its progress before the pass.
        num_asked_tokens: what it could have got for its tokens alone.
        num_kept_tokens: what its encoder inputs left of them.
        num_scheduled_tokens: what it got, after the reservation near the prefill's end.
        hits: features found in the book.
        chosen: features to be encoded.
        duplicates: features reported to repeat a chosen one.
        refused: features for which there was no room or no encoder budget.
        book: the book at the end of the pass.
    """

    num_computed_tokens: int
    num_asked_tokens: int
    num_kept_tokens: int
    num_scheduled_tokens: int
    hits: tuple[int, ...]
    chosen: tuple[int, ...]
    duplicates: tuple[int, ...]
    refused: tuple[int, ...]
    book: BookState


@dataclass(frozen=True)
class SchedulingObservation:
    """The passes of a case up to one without tokens, the prefill's end, or an error."""

    passes: tuple[SchedulingPass, ...]
    error: ErrorSeen | None = None


Observation: TypeAlias = (
    GatherObservation | FreeObservation | BookObservation | RangeObservation | SchedulingObservation
)
