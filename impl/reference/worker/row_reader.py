"""The gathers on integers: which rows of which encodings a gather returns, without tensors.

A run without tensors needs the rows' identities alone. The readers answer as
:class:`impl.reference.worker.runner_v1.RunnerV1` and
:class:`impl.reference.worker.runner_v2.RunnerV2` would, errors included, from the same guards, and
have the same methods for a fault to replace. Positions are in tokens; ranges are half-open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from impl.harness.rows import true_ranges
from impl.reference.scheduling import guards
from impl.reference.scheduling.request import MultiModalFeature
from spec.functions.observations import request_name
from spec.record.steps import ScheduledRequest


class HeldOutput(NamedTuple):
    """An encoder output on the worker: the number of its encoding, and its rows."""

    encoding: int
    num_rows: int


Piece: TypeAlias = tuple[int, int, int]
"""Encoding, first row and the row after the last: one tensor that a gather returns."""

Ranges: TypeAlias = list[tuple[int, int]]
"""Half-open ranges, ascending and apart."""


def cut(output: HeldOutput, first_row: int, last_row: int) -> Piece:
    """The rows that slicing the output's tensor returns: those past its end do not exist."""
    encoding, num_rows = output
    return encoding, min(first_row, num_rows), min(last_row, num_rows)


class CachedRequest:
    """What the worker keeps of a request.

    Attributes:
        features: all its features, sorted by offset and disjoint.
        offsets: first position of each feature.
        ends: position after each feature.
        last_end: position after the last feature; no window that starts there or later meets one.
        raw_inputs: indices of the features whose raw data is at hand.
    """

    __slots__ = ("_taking", "ends", "features", "last_end", "offsets", "raw_inputs")

    def __init__(self, features: Sequence[MultiModalFeature], raw_inputs: Iterable[int]) -> None:
        self.features = features
        self.offsets = [feature.mm_position.offset for feature in features]
        self.ends = [feature.mm_position.end for feature in features]
        self.last_end = max(self.ends, default=0)
        self.raw_inputs = set(raw_inputs)
        self._taking: dict[int, Ranges] = {}

    def taking(self, feature: int, first: int, last: int) -> Iterable[tuple[int, int]]:
        """Which of a feature's positions ``[first, last)`` take a row, from its first one on."""
        mask = self.features[feature].mm_position.is_embed
        if mask is None:
            return ((first, last),)
        ranges = self._taking.get(feature)
        if ranges is None:
            ranges = self._taking[feature] = list(true_ranges(mask))
        return [
            (max(low, first), min(high, last))
            for low, high in ranges
            if low < last and first < high
        ]


class RowReaderV1:
    """Reads as V1 does: tests each feature of a request for overlap.

    Args:
        requests: the requests that the worker knows, by index.
        outputs: the encoder outputs that it holds, by hash.
    """

    def __init__(
        self, requests: Mapping[int, CachedRequest], outputs: Mapping[str, HeldOutput]
    ) -> None:
        self.requests = requests
        self.outputs = outputs

    def gather(
        self, batch: Sequence[ScheduledRequest], shift_computed_tokens: int = 0
    ) -> tuple[list[Piece], Ranges]:
        """Find the rows that the batch's reader needs.

        Args:
            batch: the scheduled requests in their order.
            shift_computed_tokens: how far the reader looks ahead of the target (tokens); 0 for the
                target itself.

        Returns:
            The rows in the order of their positions, and the batch's positions that take them.

        Raises:
            KeyError: the worker does not know a request.
            RuntimeError: an output inside the processed range is not resident; names the hash.
        """
        pieces: list[Piece] = []
        mask: Ranges = []
        first_of_request = 0
        for scheduled in batch:
            cached = self.requests.get(scheduled.request)
            if cached is None:
                raise KeyError(request_name(scheduled.request))
            start = scheduled.num_computed_tokens + shift_computed_tokens
            # A decoding request is past its features: nothing to test.
            if start < cached.last_end:
                self._gather_request(scheduled, cached, start, first_of_request, pieces, mask)
            first_of_request += scheduled.num_scheduled_tokens
        return pieces, mask

    def _gather_request(
        self,
        scheduled: ScheduledRequest,
        cached: CachedRequest,
        start: int,
        first_of_request: int,
        pieces: list[Piece],
        mask: Ranges,
    ) -> None:
        end = start + scheduled.num_scheduled_tokens
        for index, feature in enumerate(cached.features):
            place = feature.mm_position
            if not guards.overlaps(place.offset, place.length, start, end):
                continue
            first, last = guards.slice_bounds(place.offset, place.length, start, end)
            first_row, last_row = place.rows_in_range(first, last)
            if first_row == last_row:
                continue
            output = self.outputs.get(feature.identifier)
            if output is None:
                if self._tolerates_miss(feature, scheduled):
                    continue
                raise RuntimeError(
                    f"encoder output {feature.identifier} of {request_name(scheduled.request)} is "
                    "not resident although this step processes its positions"
                )
            at = first_of_request + place.offset - start
            self._mark(mask, at, cached, index, first, last)
            pieces.append(self._take(output, (first, last), (first_row, last_row)))

    def _tolerates_miss(self, feature: MultiModalFeature, scheduled: ScheduledRequest) -> bool:
        return guards.tolerates_miss_v1(
            feature.mm_position.offset,
            scheduled.num_computed_tokens,
            scheduled.num_scheduled_tokens,
        )

    def _mark(
        self, mask: Ranges, at: int, cached: CachedRequest, feature: int, first: int, last: int
    ) -> None:
        for low, high in cached.taking(feature, first, last):
            add_range(mask, at + low, at + high)

    def _take(self, output: HeldOutput, positions: tuple[int, int], rows: tuple[int, int]) -> Piece:
        return cut(output, *rows)


class RowReaderV2:
    """Reads as V2 does: searches the features that meet the window, inside the prefill alone.

    Args:
        requests: the requests that the worker knows, by index.
        outputs: the encoder outputs that it holds, by hash.
    """

    def __init__(
        self, requests: Mapping[int, CachedRequest], outputs: Mapping[str, HeldOutput]
    ) -> None:
        self.requests = requests
        self.outputs = outputs

    def gather(
        self, batch: Sequence[ScheduledRequest], draft_lookahead: int = 0
    ) -> tuple[list[Piece], Ranges]:
        """As :meth:`RowReaderV1.gather`; requests that start past their prefill are not looked at.

        Raises:
            KeyError: the worker does not know a request.
            RuntimeError: an output inside the processed range is not resident; names the hash.
        """
        pieces: list[Piece] = []
        mask: Ranges = []
        query_start_loc = 0
        for scheduled in batch:
            query_start = scheduled.num_computed_tokens + draft_lookahead
            if query_start < scheduled.prefill_len:
                cached = self.requests.get(scheduled.request)
                if cached is None:
                    raise KeyError(request_name(scheduled.request))
                if query_start < cached.last_end:
                    query_end = query_start + scheduled.num_scheduled_tokens
                    low, high = self._search(cached, query_start, query_end)
                    for index in range(low, high):
                        place = cached.features[index].mm_position
                        first, last = guards.slice_bounds(
                            place.offset, place.length, query_start, query_end
                        )
                        first_row, last_row = place.rows_in_range(first, last)
                        if first_row == last_row:
                            continue
                        output = self._held(cached, index, draft_lookahead, query_end, scheduled)
                        if output is None:
                            continue
                        origin = query_start_loc + place.offset - query_start
                        for start, end in self._taking(cached, index, first, last):
                            add_range(mask, origin + start, origin + end)
                        pieces += self._pieces(output, (first, last), (first_row, last_row))
            query_start_loc += scheduled.num_scheduled_tokens
        return pieces, mask

    def _held(
        self,
        cached: CachedRequest,
        index: int,
        draft_lookahead: int,
        query_end: int,
        scheduled: ScheduledRequest,
    ) -> HeldOutput | None:
        """The output, or ``None`` for a miss that is tolerated."""
        feature = cached.features[index]
        output = self.outputs.get(feature.identifier)
        if output is None and not self._tolerates_miss(
            feature.mm_position.offset, draft_lookahead, query_end
        ):
            raise RuntimeError(
                f"encoder output {feature.identifier} is missing: request "
                f"{request_name(scheduled.request)} processes its positions in this step"
            )
        return output

    def _search(self, cached: CachedRequest, query_start: int, query_end: int) -> tuple[int, int]:
        return guards.search_window(cached.offsets, cached.ends, query_start, query_end)

    def _tolerates_miss(self, offset: int, draft_lookahead: int, query_end: int) -> bool:
        return guards.tolerates_miss_v2(offset, draft_lookahead, query_end)

    def _taking(
        self, cached: CachedRequest, feature: int, first: int, last: int
    ) -> Iterable[tuple[int, int]]:
        """Which of the positions ``[first, last)`` take a row."""
        return cached.taking(feature, first, last)

    def _pieces(
        self, output: HeldOutput, positions: tuple[int, int], rows: tuple[int, int]
    ) -> Iterable[Piece]:
        """The rows of one feature as they are returned."""
        return (cut(output, *rows),)


def add_range(ranges: Ranges, start: int, end: int) -> None:
    """Add a range that starts at or past the end of the last one; neighbours become one."""
    if ranges and ranges[-1][1] == start:
        ranges[-1] = (ranges[-1][0], end)
    else:
        ranges.append((start, end))
