"""The denotational oracle: what a gather must return, position by position.

Independent of any algorithm: it walks the flattened positions of the batch and says what the reader
must find there. No windows are searched and nothing is sliced.
"""

from __future__ import annotations

from dataclasses import dataclass

from spec.functions.cases import GatherCase, GatherRequest
from spec.functions.observations import RowIdentity
from spec.record.feature import Feature
from spec.rules.geometry import drafter_window, is_at_boundary, processed_end


@dataclass(frozen=True)
class InteriorMiss:
    """The first feature of the processed range that is read but not resident."""

    request: int
    feature: int
    identifier: str
    position: int


@dataclass(frozen=True)
class Gathered:
    """For each flattened position, the row that the reader finds, or ``None``: token embedding."""

    positions: tuple[RowIdentity | None, ...]

    @property
    def mask(self) -> tuple[bool, ...]:
        """Positions that take a row."""
        return tuple(row is not None for row in self.positions)

    @property
    def rows(self) -> tuple[RowIdentity, ...]:
        """The rows in the order of their positions."""
        return tuple(row for row in self.positions if row is not None)


@dataclass(frozen=True)
class ReadFeature:
    """A feature with a row in a request's window."""

    request: int
    feature: int
    spec: Feature
    resident: bool
    boundary: bool


def window_of(request: GatherRequest, look_ahead: int) -> tuple[int, int]:
    """Token positions of the request that the reader's batch positions stand for."""
    return drafter_window(request.num_computed_tokens, request.num_scheduled_tokens, look_ahead)


def read_features(case: GatherCase) -> tuple[ReadFeature, ...]:
    """Every feature with at least one row in its request's window, in order of reading."""
    resident = {output.identifier for output in case.resident}
    return tuple(
        ReadFeature(
            request=request_index,
            feature=feature_index,
            spec=feature,
            resident=feature.identifier in resident,
            boundary=is_at_boundary(
                feature.offset,
                processed_end(request.num_computed_tokens, request.num_scheduled_tokens),
            ),
        )
        for request_index, request in enumerate(case.requests)
        for feature_index, feature in enumerate(request.features)
        if feature.has_row_in(*window_of(request, case.draft_lookahead))
    )


def expected_gather(case: GatherCase) -> Gathered | InteriorMiss:
    """What the batch's reader must find (the invariant of pull request 46315).

    A position that takes a row of a resident feature reads that row. A position of a feature that
    is not resident and lies at the boundary reads its token embedding. The first feature that is
    not resident and lies inside the processed range is an error that names it.
    """
    for read in read_features(case):
        if not read.resident and not read.boundary:
            start, end = window_of(case.requests[read.request], case.draft_lookahead)
            position = next(p for p in range(start, end) if read.spec.takes_row_at(p))
            return InteriorMiss(read.request, read.feature, read.spec.identifier, position)
    resident = {output.identifier for output in case.resident}
    positions: list[RowIdentity | None] = []
    for request in case.requests:
        start, end = window_of(request, case.draft_lookahead)
        for position in range(start, end):
            readers = (f for f in request.features if f.takes_row_at(position))
            feature = next(readers, None)
            if feature is None or feature.identifier not in resident:
                positions.append(None)
            else:
                positions.append(RowIdentity(feature.identifier, feature.row_at(position)))
    return Gathered(tuple(positions))
