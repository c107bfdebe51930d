"""Hypothesis strategies of valid cases, aimed at the edges where guards differ.

Everything drawn is valid by construction: nothing is filtered away, so that shrinking is free to
delete features, requests, moments and operations one by one. Numbers are small and identifiers are
``A``, ``B``, ``C``...: what a guard does at 4 and 5 it does at 400 and 401, and a person reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from string import ascii_uppercase
from typing import TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from spec.functions.cases import (
    BookCase,
    BookOperation,
    EncoderOutput,
    FreeCase,
    GatherCase,
    GatherRequest,
    Progress,
    RowRangeCase,
    WindowCase,
)
from spec.functions.gather import read_features
from spec.record.feature import Feature

_Limits: TypeAlias = tuple[int | None, int]
"""Encoder budget past the item's rows (``None``: as much as needed), and rows chosen before."""

_NO_LIMITS: _Limits = (None, 0)
_LIMITS: tuple[_Limits, ...] = (
    *(_NO_LIMITS,) * 8,
    *((0, 0), (0, 0), (1, 0), (-1, 0), (-1, 0)),
    *((None, 1),) * 4,
    *((None, 2), (0, 1), (1, 1)),
)


@dataclass
class _Taken:
    """What each request has taken, so that operations come in an order that an engine can make.

    A request asks for its features from the first one that progress has not passed; its references
    go in order; *finish* (an abort, a preemption, a give-back) lets it start again.
    """

    requests: Sequence[Sequence[Feature]]
    passed: dict[int, int] = field(default_factory=dict)
    held: dict[int, set[int]] = field(default_factory=dict)

    def take(
        self, request: int, choice: int, limits: _Limits, *, again: bool
    ) -> BookOperation | None:
        """Ask for a feature that progress has not passed; ``again``: also for one that is held.

        A request that holds nothing and has passed everything starts again, as one that was
        preempted does.
        """
        spare, chosen = limits
        held = self.held.setdefault(request, set())
        features = range(len(self.requests[request]))
        if not held and self.passed.get(request, 0) == len(features):
            self.passed[request] = 0
        ahead = [
            index for index in features[self.passed.get(request, 0) :] if again or index not in held
        ]
        if not ahead:
            return None
        feature = ahead[choice % len(ahead)]
        held.add(feature)
        budget = None if spare is None else self.requests[request][feature].num_rows + spare
        return BookOperation("take", request, feature, budget, chosen)

    def drop(self, choice: int, *, skipped: bool = False) -> BookOperation | None:
        """One request drops its first reference, or a feature before it that it never took.

        A request that starts behind a cached prefix has passed features without taking them.
        """
        holders = sorted(request for request, held in self.held.items() if held)
        if not holders:
            return None
        request = holders[choice % len(holders)]
        held = self.held[request]
        first = min(held)
        passed = self.passed.get(request, 0)
        if skipped and passed < first:
            self.passed[request] = passed + 1
            return BookOperation("drop", request, passed)
        held.discard(first)
        self.passed[request] = first + 1
        return BookOperation("drop", request, first)

    def finish(self, request: int) -> BookOperation:
        self.passed.pop(request, None)
        self.held.pop(request, None)
        return BookOperation("finish", request)

    def reset(self) -> BookOperation:
        self.held.clear()
        return BookOperation("reset")


_ACTIONS = (
    "nothing",
    *("take",) * 5,
    *("visit",) * 4,
    *("drop",) * 4,
    *("end_pass",) * 3,
    *("finish", "drop_skipped", "reset"),
)
"""A visit takes a feature and lets the first one go: it leaves an entry that may be evicted."""

MAX_REQUESTS = 3
_UNLIMITED, _LIMITED = (
    tuple(product(_ACTIONS, range(MAX_REQUESTS), range(3), limits))
    for limits in ((_NO_LIMITS,), _LIMITS)
)
"""What to do, which request, which feature, under which limits; read modulo what the case has."""


@st.composite
def book_operations(
    draw: DrawFn, requests: Sequence[Sequence[Feature]], *, is_encoder_decoder: bool
) -> tuple[BookOperation, ...]:
    """Calls by the requests with the given features.

    Each request takes, lets go and starts again in an order that progress allows; what is drawn but
    impossible is left out, so that deleting any call leaves a valid sequence. In one case of three,
    half of the takes have an encoder budget or rows chosen before.
    """
    taken = _Taken(requests)
    again = not is_encoder_decoder
    operations: list[BookOperation | None] = []
    choices = draw(st.sampled_from((_UNLIMITED, _UNLIMITED, _LIMITED)))
    raw = draw(st.lists(st.sampled_from(choices), min_size=8, max_size=40))
    for action, any_request, choice, limits in raw:
        request = any_request % len(requests)
        match action:
            case "take":
                operations.append(taken.take(request, choice, limits, again=again))
            case "visit":
                operations.append(taken.take(request, choice, limits, again=again))
                operations.append(taken.drop(any_request))
            case "drop":
                operations.append(taken.drop(any_request))
            case "drop_skipped":
                operations.append(taken.drop(any_request, skipped=True))
            case "finish":
                operations.append(taken.finish(request))
            case "reset":
                operations.append(taken.reset())
            case "end_pass":
                operations.append(BookOperation("end_pass"))
    return tuple(operation for operation in operations if operation is not None)


_NUM_CONTENTS = 3
"""Few contents, so that requests share them; those that nobody uses leave no trace in a case."""

_GAPS = (0, 1, 2)
_LOOK_AHEADS = (0, 1, 1, 2, 3)
"""1 is drawn twice as often: it is what both runners use in every release."""

Shape = tuple[int, tuple[bool, ...] | None]
"""Length (tokens) and mask of a content."""


_DENSE: tuple[Shape, ...] = tuple((length, None) for length in range(1, 5))

_MASKED: tuple[Shape, ...] = tuple(
    (len(mask), mask)
    for size in range(4)
    for more in product((True, False), repeat=size)
    for leading in range(3)
    for trailing in range(3)
    for mask in [(False,) * leading + (True, *more) + (False,) * trailing]
)
"""Masks with at least one True, most of them with leading and trailing False."""

_ROWLESS: tuple[Shape, ...] = tuple((length, (False,) * length) for length in range(1, 4))


_WITH_ROWS = _DENSE * 25 + _MASKED
_WITH_ROWLESS = _WITH_ROWS + _ROWLESS * 5
"""Dense and masked shapes alike often, some without a row; simple ones first, to shrink to.

Tables rather than lists of Booleans: one choice for a whole shape draws several times faster.
"""


def _contents(*, with_rowless: bool, count: int = _NUM_CONTENTS) -> SearchStrategy[list[Feature]]:
    """Distinct contents, each as a feature at offset 0."""
    shapes = st.sampled_from(_WITH_ROWLESS if with_rowless else _WITH_ROWS)
    return st.tuples(*[shapes] * count).map(
        lambda drawn: [
            Feature(0, length, ascii_uppercase[index], mask)
            for index, (length, mask) in enumerate(drawn)
        ]
    )


@st.composite
def _layouts(
    draw: DrawFn, contents: Sequence[Feature], *, max_size: int = 3
) -> tuple[Feature, ...]:
    """A request's features: contents placed one after the other, adjacent or with a gap.

    A content drawn again is a duplicate within the request.
    """
    places = st.sampled_from([(gap, content) for gap in _GAPS for content in contents])
    features: list[Feature] = []
    end = 0
    for gap, content in draw(st.lists(places, min_size=1, max_size=max_size)):
        features.append(replace(content, offset=end + gap))
        end = features[-1].end
    return tuple(features)


def edges_of(features: Iterable[Feature]) -> set[int]:
    """Positions where something changes: starts and ends of features and of their rows."""
    edges: set[int] = set()
    for feature in features:
        edges |= {feature.offset, feature.end}
        rows = [p for p in range(feature.offset, feature.end) if feature.takes_row_at(p)]
        if rows:
            edges |= {rows[0], rows[-1] + 1}
    return edges


def _around(edges: Iterable[int], low: int, high: int) -> list[int]:
    """The edges and their neighbours inside ``[low, high]``, smallest first."""
    near = {edge + step for edge in edges for step in (-1, 0, 1)}
    return sorted(point for point in near if low <= point <= high)


@st.composite
def _gather_requests(draw: DrawFn, contents: Sequence[Feature], look_ahead: int) -> GatherRequest:
    is_text = draw(st.sampled_from((False,) * 5 + (True,)))
    features = () if is_text else draw(_layouts(contents))
    last = features[-1].end if features else 0
    prefill_len = max(1, last + draw(st.integers(0, 3)))
    if draw(st.sampled_from((False,) * 5 + (True,))):
        decoded, scheduled = draw(st.integers(0, 2)), draw(st.integers(1, 3))
        return GatherRequest(prefill_len + decoded, scheduled, prefill_len, features)
    edges = edges_of(features) | {prefill_len}
    edges |= {edge - look_ahead for edge in edges}
    ends = st.sampled_from(_around(edges, 1, prefill_len))
    at_boundary = _ends_before_boundary_feature(features, look_ahead)
    end = draw(st.sampled_from(at_boundary) | ends if at_boundary else ends)
    start = draw(st.just(0) | st.sampled_from(_around(edges | {1, end}, 0, end - 1)))
    return GatherRequest(start, end - start, prefill_len, features)


def _ends_before_boundary_feature(features: Iterable[Feature], look_ahead: int) -> list[int]:
    """Ends of a chunk of which a drafter reads rows of a feature that the chunk does not reach."""
    return sorted(
        end
        for feature in features
        for end in range(max(1, feature.offset - look_ahead), feature.offset + 1)
        if feature.has_row_in(end, end + look_ahead)
    )


@st.composite
def gather_cases(draw: DrawFn, *, max_requests: int = 3) -> GatherCase:
    """Batches to gather for.

    Chunks start and end on, before and after the edges of features and of their rows, seen by the
    target and by a drafter that looks 0 to 3 tokens ahead; a start inside a feature is a prefix
    hit. About one request in four decodes. Nothing to everything is resident; an output without
    rows is never stored, since no engine encodes for no row.
    """
    look_ahead = draw(st.sampled_from(_LOOK_AHEADS))
    contents = draw(_contents(with_rowless=True))
    requests = draw(
        st.lists(_gather_requests(contents, look_ahead), min_size=1, max_size=max_requests)
    )
    used = {f.identifier: f.num_rows for request in requests for f in request.features}
    stored = sorted(identifier for identifier, rows in used.items() if rows)
    reads = read_features(GatherCase(tuple(requests), (), look_ahead))
    interior = {read.spec.identifier for read in reads if not read.boundary}
    only_boundary = {read.spec.identifier for read in reads} - interior
    choices = (
        st.just(set[str]()),
        *[st.just(only_boundary)] * 3,
        *[_some_of(interior)] * 3,
        _some_of(stored),
        st.just(set(stored)),
    )
    missing = draw(draw(st.sampled_from(choices)))
    resident = tuple(EncoderOutput(name, used[name]) for name in stored if name not in missing)
    return GatherCase(tuple(requests), resident, look_ahead)


def _some_of(names: Iterable[str]) -> SearchStrategy[set[str]]:
    """One name or more, where there are any."""
    ordered = sorted(names)
    return st.sets(st.sampled_from(ordered), min_size=1) if ordered else st.just(set())


@st.composite
def free_cases(draw: DrawFn, *, features_in_prompt: bool = False) -> FreeCase:
    """Progress of a request past the ends of its features, drafts and placeholders in flight.

    Confirmed progress sits at, before and after the edges and never falls; the same content may
    occur twice; the scheduler's shift is 0 to 3. An encoder-decoder request has no drafter.

    Args:
        features_in_prompt: keep the assumption of that name: drafts are in flight only behind the
            last feature. Otherwise they may be inside and before features as well.
    """
    features = draw(_layouts(draw(_contents(with_rowless=False)), max_size=4))
    is_encoder_decoder = draw(st.sampled_from((False, False, False, True)))
    ends, last = [feature.end for feature in features], features[-1].end
    points = sorted([*ends, *ends, last, *_around(edges_of(features) | {0, last + 2}, 0, last + 2)])
    floors = sorted(draw(st.lists(st.sampled_from(points), min_size=1, max_size=4)))
    moments = []
    for floor in floors:
        prefills = features_in_prompt and floor < features[-1].end
        drafts = 0 if is_encoder_decoder or prefills else draw(st.integers(0, 3))
        num_others = draw(st.integers(0, 2))
        placeholders = drafts + min(num_others, floor)
        moments.append(Progress(floor + drafts, placeholders, drafts))
    entries = (
        [f.num_rows for f in features]
        if is_encoder_decoder
        else list({f.identifier: f.num_rows for f in features}.values())
    )
    return FreeCase(
        features,
        cache_size=sum(entries) + draw(st.integers(0, 2)),
        progress=tuple(moments),
        scheduler_shift=0 if is_encoder_decoder else draw(st.integers(0, 3)),
        is_encoder_decoder=is_encoder_decoder,
    )


@st.composite
def book_cases(draw: DrawFn, *, content_is_hashed: bool = True) -> BookCase:
    """Calls on the decoder-only book by up to three requests that share contents.

    The cache holds the largest item at least and all of them at most, so that entries are evicted
    and allocated again, within a pass too.

    Args:
        content_is_hashed: ``False`` gives one identifier several row counts, which breaks the
            assumption ``hash-is-content``.
    """
    contents = draw(_contents(with_rowless=False, count=4))
    if not content_is_hashed:
        variants = draw(_contents(with_rowless=False))
        contents = contents[:2] + variants[:2]
    requests = draw(st.lists(_layouts(contents, max_size=4), min_size=1, max_size=MAX_REQUESTS))
    used = {(f.identifier, f.num_rows) for request in requests for f in request}
    sizes = [rows for _, rows in used]
    return BookCase(
        cache_size=draw(_cache_sizes(sizes)),
        requests=tuple(requests),
        operations=draw(book_operations(requests, is_encoder_decoder=False)),
        content_is_hashed=content_is_hashed,
    )


def _cache_sizes(sizes: Sequence[int]) -> SearchStrategy[int]:
    """From the largest item to all of them; often the largest only, or all but the smallest."""
    largest, together = max(sizes), sum(sizes)
    all_but_one = max(largest, together - min(sizes))
    return st.sampled_from((largest,) * 3 + (all_but_one,) * 3 + tuple(range(largest, together)))


@st.composite
def encoder_decoder_book_cases(draw: DrawFn) -> BookCase:
    """Calls on the encoder-decoder book, which keeps no entries and counts slots only.

    No occurrence is taken twice in a row: an encoder-decoder request asks for its inputs once, in
    its first step.
    """
    contents = draw(_contents(with_rowless=False))
    requests = draw(st.lists(_layouts(contents), min_size=1, max_size=MAX_REQUESTS))
    sizes = [f.num_rows for request in requests for f in request]
    return BookCase(
        cache_size=draw(st.integers(max(sizes), sum(sizes))),
        requests=tuple(requests),
        operations=draw(book_operations(requests, is_encoder_decoder=True)),
        is_encoder_decoder=True,
    )


@st.composite
def window_cases(draw: DrawFn) -> WindowCase:
    """Searches whose window starts and ends on, before and after the edges of features."""
    features = draw(st.just(()) | _layouts(draw(_contents(with_rowless=True)), max_size=4))
    last = features[-1].end if features else 0
    edges = edges_of(features) | {0, last + 1}
    end = draw(st.sampled_from(_around(edges, 1, last + 2)))
    start = draw(st.sampled_from(_around(edges | {end}, 0, end - 1)))
    return WindowCase(features, start, end)


@st.composite
def row_range_cases(draw: DrawFn) -> RowRangeCase:
    """Ranges of positions under a mask, empty ranges included."""
    mask = tuple(draw(st.lists(st.booleans(), min_size=1, max_size=6)))
    bounds = st.integers(0, len(mask))
    start, end = sorted((draw(bounds), draw(bounds)))
    return RowRangeCase(mask, start, end)
