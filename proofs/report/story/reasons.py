"""Why a run went as it did: what each step did, each with its test in small integers.

Every number is taken from the trace; nothing is known here of a target's source. Where the numbers
of a rule do not fit what was seen, the rule is not named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from proofs.describe.words import counted
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.steps import EngineState, RequestState


@dataclass(frozen=True)
class Reason:
    """One thing that happened.

    Attributes:
        text: what happened, as a sentence without a full stop.
        because: the test that decided it, with its numbers; empty where nothing did.
        short: the same in a few words, for a narrow column.
        is_bad: whether it is part of what goes wrong.
        is_detail: whether a story can do without it.
        request: whom it is about; ``None`` where it is about nobody or several.
    """

    text: str
    because: str = ""
    short: str = ""
    is_bad: bool = False
    is_detail: bool = False
    request: int | None = None


@dataclass(frozen=True)
class Before:
    """What was known when a step began.

    Attributes:
        state: the engine.
        entry_rows: rows of each entry of the book.
        items_held: of the encoder-decoder book, rows of each item ``(request, feature)`` it counts.
        batches: drafts of each request ``(pass, request)`` of the passes so far (tokens).
    """

    state: EngineState
    entry_rows: Mapping[str, int] = field(default_factory=dict)
    items_held: Mapping[tuple[int, int], int] = field(default_factory=dict)
    batches: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def request(self, request: int) -> RequestState | None:
        """A request's state; ``None`` before it arrived."""
        return next((state for state in self.state.requests if state.request == request), None)

    @property
    def room(self) -> int:
        """Rows that are free or can be freed, as the book reports them."""
        return room(self.state)


def room(state: EngineState) -> int:
    """Rows that are free or can be freed, as the book reports them."""
    book = state.book
    return book.num_free_slots if book.num_freeable_slots is None else book.num_freeable_slots


@dataclass(frozen=True)
class Words:
    """Names for what a trace holds.

    Attributes:
        letters: short name of each hash.
        features: features of a request, as its turns have begun so far.
        config: the engine's settings.
        is_alone: whether there is one request, which needs no number.
    """

    letters: Mapping[str, str]
    features: Callable[[int], tuple[Feature, ...]]
    config: EngineConfig
    is_alone: bool

    def request(self, request: int) -> str:
        """The request, to begin or go on with."""
        return "the request" if self.is_alone else f"request {request}"

    def feature(self, request: int, feature: int) -> Feature:
        """A feature of a request."""
        return self.features(request)[feature]

    def item(self, request: int, feature: int) -> str:
        """A feature with its place: ``A[0,4)``."""
        item = self.feature(request, feature)
        return f"{self.letters[item.identifier]}[{item.offset},{item.end})"

    def letter(self, request: int, feature: int) -> str:
        """The short name of a feature's hash."""
        return self.letters[self.feature(request, feature).identifier]

    def rows(self, request: int, feature: int) -> int:
        """Rows of a feature."""
        return self.feature(request, feature).num_rows


def rows_of(number: int) -> str:
    """``1 row``."""
    return counted(number, "row")


def tokens_of(number: int) -> str:
    """``1 token``."""
    return counted(number, "token")
