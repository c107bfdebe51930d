"""A run as a picture holds it: what lies where and when, without any drawing.

Positions are token positions of a request, ``[start, end)`` as everywhere. Rows of the picture are
steps of the trace, one each, in the order in which they happened. Everything is taken from the
trace; :mod:`proofs.report.story.timeline_build` fills it in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from proofs.report.story.reasons import Reason


class Positions(NamedTuple):
    """Token positions of a request, ``[start, end)``."""

    start: int
    end: int


@dataclass(frozen=True)
class Entry:
    """One hash, and how every picture of it is told from the others.

    Attributes:
        identifier: the hash, whole.
        letter: its short name; the hash itself where all hashes are short.
        order: number of the hash, from 0: pattern and colour follow from it.
    """

    identifier: str
    letter: str
    order: int


@dataclass(frozen=True)
class Bar:
    """A feature at its place.

    Attributes:
        request: the request.
        feature: index of the feature.
        entry: index of its hash in :attr:`Timeline.entries`.
        span: its positions.
        rows: those of its positions that take a row, as runs.
    """

    request: int
    feature: int
    entry: int
    span: Positions
    rows: tuple[Positions, ...]

    @property
    def num_rows(self) -> int:
        """Rows of its encoder output."""
        return sum(end - start for start, end in self.rows)


@dataclass(frozen=True)
class RequestTrack:
    """One request over all positions that are shown.

    Attributes:
        request: the request.
        num_prompt_tokens: length of its first prompt.
        bars: its features that are shown, by position.
        num_hidden_bars: its features that no shown step has to do with.
    """

    request: int
    num_prompt_tokens: int
    bars: tuple[Bar, ...]
    num_hidden_bars: int = 0


ReadState: TypeAlias = Literal["resident", "missing", "missing at the boundary"]


@dataclass(frozen=True)
class FeatureRead:
    """A feature with a row in a reader's window, and whether the worker has its tensor."""

    reader: Literal["target", "drafter"]
    feature: int
    state: ReadState


@dataclass(frozen=True)
class Lane:
    """What a pass does for one request.

    Attributes:
        request: the request.
        processed: what the target reads; empty, at the progress, where nothing runs.
        drafter: what the drafter reads; ``None`` where there is none.
        num_draft_tokens: drafts among the tokens that run.
        refused: features that were asked for and refused room or budget.
        reads: the features that are read.
        preempted: whether the request is preempted in the pass.
    """

    request: int
    processed: Positions
    drafter: Positions | None
    num_draft_tokens: int
    refused: tuple[int, ...]
    reads: tuple[FeatureRead, ...]
    preempted: bool = False

    @property
    def num_tokens(self) -> int:
        """Tokens that run; below 0 only where an engine lost count."""
        return self.processed.end - self.processed.start


EntryName: TypeAlias = Literal["referenced", "freeable", "evicted", "worker only"]


@dataclass(frozen=True)
class EntryState:
    """One entry after a step.

    Attributes:
        entry: index of its hash.
        rows: rows that it takes.
        holders: requests that hold a reference.
        state: in the book with or without a reference, evicted in this step, or known to the
            worker alone.
        resident: whether the worker has its tensor.
        encoded: whether it was encoded in this step.
    """

    entry: int
    rows: int
    holders: tuple[int, ...]
    state: EntryName
    resident: bool
    encoded: bool = False


@dataclass(frozen=True)
class Cache:
    """The encoder cache after a step (rows).

    Attributes:
        size: its capacity.
        entries: what is in it, and what left it in this step.
        num_taken: rows of the entries that the book holds.
        num_free: rows of no entry, as the book reports them.
        room: rows that are free or can be freed, as the book reports them.
        true_room: the same, added up: all but those of referenced entries.
        num_on_worker: rows of the tensors that the worker holds.
    """

    size: int
    entries: tuple[EntryState, ...]
    num_taken: int
    num_free: int
    room: int
    true_room: int
    num_on_worker: int

    @property
    def drifted(self) -> bool:
        """Whether the book's counts are not the true ones."""
        return self.num_taken + self.num_free != self.size or self.room != self.true_room


@dataclass(frozen=True)
class Mark:
    """The contradiction, in the step in which it shows.

    Attributes:
        request: the request concerned, or ``None``.
        feature: index of the feature concerned, or ``None``.
        span: positions concerned; ``None`` where it is not about positions.
        in_cache: whether it shows in the cache and not at a position.
        text: the contradiction in a few words.
    """

    request: int | None
    feature: int | None
    span: Positions | None
    in_cache: bool
    text: str


@dataclass(frozen=True)
class StepRow:
    """One step.

    Attributes:
        number: its index in the trace.
        kind: event, pass or update.
        pass_index: the pass that it is, updates, or comes before.
        title: what it is, in a few words.
        lanes: of a pass, the requests that ran or were asked for, in their order.
        num_hidden_lanes: of a pass, further requests that ran and have nothing to do with it.
        standing: ``(request, status, progress, known tokens)`` of each shown request that lives.
        cache: the cache after it.
        reasons: what happened and why, in order.
        repeats: of a pass, the earlier one in which just the same happened, if there is one.
        mark: the contradiction, if it shows here.
        passed_over: of a pass, ``(request, feature)`` of what got room and was not encoded.
    """

    number: int
    kind: Literal["event", "pass", "update"]
    pass_index: int
    title: str
    lanes: tuple[Lane, ...]
    num_hidden_lanes: int
    standing: tuple[tuple[int, str, int, int], ...]
    cache: Cache
    reasons: tuple[Reason, ...]
    repeats: int | None = None
    mark: Mark | None = None
    passed_over: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Gap:
    """Steps that are left out between two rows."""

    first: int
    last: int

    @property
    def num_steps(self) -> int:
        """How many."""
        return self.last - self.first + 1


Row: TypeAlias = StepRow | Gap


@dataclass(frozen=True)
class Lasso:
    """The circle of a stuck run: after the last step comes the first again.

    Attributes:
        first: index in :attr:`Timeline.rows` of the first row of the circle.
        last: index of the row in which its state was seen to be back.
        text: what it is, in a few words.
    """

    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Timeline:
    """Everything that the picture of a run shows.

    Attributes:
        entries: all hashes, in order of appearance.
        tracks: the requests that are shown.
        num_hidden_requests: requests that have nothing to do with it.
        num_positions: positions across, of the longest shown request.
        rows: the steps, and gaps where some are left out.
        num_steps: steps of the whole trace.
        lasso: the circle of a stuck run.
        gather_lookahead: how far the drafter reads ahead (tokens).
        is_encoder_decoder: whether items are the encoder's input and lie in no prompt.
    """

    entries: tuple[Entry, ...]
    tracks: tuple[RequestTrack, ...]
    num_hidden_requests: int
    num_positions: int
    rows: tuple[Row, ...]
    num_steps: int
    lasso: Lasso | None
    gather_lookahead: int
    is_encoder_decoder: bool = False

    @property
    def contradiction(self) -> int:
        """Index of the row with the mark."""
        return next(
            index
            for index, row in enumerate(self.rows)
            if isinstance(row, StepRow) and row.mark is not None
        )

    @property
    def num_left_out(self) -> int:
        """Steps of the trace that no row shows: those between, and those after the last one."""
        return self.num_steps - sum(isinstance(row, StepRow) for row in self.rows)

    def bar(self, request: int, feature: int) -> Bar | None:
        """The bar of a feature, where it is shown."""
        for track in self.tracks:
            if track.request == request:
                return next((bar for bar in track.bars if bar.feature == feature), None)
        return None
