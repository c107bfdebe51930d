"""Cases: everything that is chosen from outside for one call of one function under test.

Frozen data with a ``kind`` tag; :mod:`spec.trace` reads and writes them as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal, TypeAlias

from spec.errors import InputError
from spec.feature import Feature, require_sorted_and_disjoint, rows_by_identifier

_STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True)
class EncoderOutput:
    """An encoder output that the worker holds: a tensor of shape ``(num_rows, hidden)``."""

    identifier: str
    num_rows: int

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class GatherRequest:
    """One scheduled request of a batch, as a gather sees it (all counts in tokens).

    ``prefill_len`` is the length up to which the request prefills: its prompt, or after a
    preemption the prompt and what was generated. Features lie inside it.
    """

    num_computed_tokens: int
    num_scheduled_tokens: int
    prefill_len: int
    features: tuple[Feature, ...]

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class GatherCase:
    """A batch to gather for, the outputs that are resident, and how far the reader looks ahead.

    ``draft_lookahead`` is 0 for the target's gather (tokens).
    """

    requests: tuple[GatherRequest, ...]
    resident: tuple[EncoderOutput, ...]
    draft_lookahead: int
    kind: Literal["gather"] = "gather"

    __pydantic_config__ = _STRICT

    @property
    def total_num_scheduled_tokens(self) -> int:
        """Flattened positions of the batch."""
        return sum(request.num_scheduled_tokens for request in self.requests)

    def validate(self) -> None:
        """Check what every gather may assume.

        Raises:
            InputError: features out of order, overlapping, empty or past the prefill; an output
                with the wrong number of rows; a batch without tokens.
        """
        if not self.requests or self.draft_lookahead < 0:
            raise InputError(
                "gather case: needs at least one request and a look-ahead of 0 or more"
            )
        for index, request in enumerate(self.requests):
            where = f"gather case, request {index}"
            if request.num_scheduled_tokens < 1 or request.num_computed_tokens < 0:
                raise InputError(
                    f"{where}: {request.num_scheduled_tokens} scheduled and "
                    f"{request.num_computed_tokens} computed tokens; a scheduled request runs at "
                    "least one token and progress is not negative"
                )
            require_sorted_and_disjoint(request.features, where)
            for feature in request.features:
                if feature.length == 0 or feature.end > request.prefill_len:
                    raise InputError(
                        f"{where}: feature {feature.describe()} must span a token and end by the "
                        f"prefill length {request.prefill_len}"
                    )
        rows = rows_by_identifier([f for request in self.requests for f in request.features])
        seen: set[str] = set()
        for output in self.resident:
            if output.identifier in seen:
                raise InputError(f"gather case: output {output.identifier!r} is listed twice")
            seen.add(output.identifier)
            expected = rows.get(output.identifier)
            if expected is not None and expected != output.num_rows:
                raise InputError(
                    f"gather case: output {output.identifier!r} has {output.num_rows} rows but its "
                    f"features take {expected}; an output has one row per True of the mask"
                )


@dataclass(frozen=True)
class Progress:
    """A request's progress when *free* runs (tokens).

    ``num_output_placeholders`` were counted in advance; ``num_drafts_in_flight`` of them are drafts
    whose acceptance is not yet known, so progress can still fall by that many.
    """

    num_computed_tokens: int
    num_output_placeholders: int = 0
    num_drafts_in_flight: int = 0

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class FreeCase:
    """One request whose features are all referenced, and the moments at which *free* runs.

    ``scheduler_shift`` is the look-ahead that the scheduler knows of (0: no drafter) and
    ``cache_size`` is in rows.
    """

    features: tuple[Feature, ...]
    cache_size: int
    progress: tuple[Progress, ...]
    scheduler_shift: int = 0
    is_encoder_decoder: bool = False
    kind: Literal["free"] = "free"

    __pydantic_config__ = _STRICT

    def validate(self) -> None:
        """Check that the features fit the cache and that progress is possible.

        Raises:
            InputError: anything else.
        """
        require_sorted_and_disjoint(self.features, "free case")
        rows = rows_by_identifier(self.features)
        entries = (
            [feature.num_rows for feature in self.features]
            if self.is_encoder_decoder
            else list(rows.values())
        )
        if sum(entries) > self.cache_size:
            raise InputError(
                f"free case: the features take {sum(entries)} rows but the cache has "
                f"{self.cache_size}; all are referenced at the start, so they must fit"
            )
        if self.scheduler_shift < 0 or not self.progress:
            raise InputError("free case: needs a shift of 0 or more and at least one moment")
        for index, moment in enumerate(self.progress):
            placeholders = moment.num_output_placeholders
            if not 0 <= moment.num_drafts_in_flight <= placeholders <= moment.num_computed_tokens:
                raise InputError(
                    f"free case, moment {index}: needs 0 <= drafts in flight <= placeholders <= "
                    f"computed tokens, got {moment.num_drafts_in_flight}, {placeholders} and "
                    f"{moment.num_computed_tokens}"
                )
        floors = [m.num_computed_tokens - m.num_drafts_in_flight for m in self.progress]
        for index, (earlier, later) in enumerate(pairwise(floors)):
            if later < earlier:
                raise InputError(
                    f"free case, moment {index + 1}: progress less drafts falls from {earlier} to "
                    f"{later}; progress falls by rejected drafts only"
                )


@dataclass(frozen=True)
class BookOperation:
    """One call on the book.

    ``take``: the request asks for the feature; it is hit, or room is asked for and it is allocated.
    ``drop``: the request's reference to the feature goes. ``finish``: all its references go.
    ``end_pass``: the pass ends and its eviction notices are collected. ``reset``: all is forgotten.
    """

    action: Literal["take", "drop", "finish", "end_pass", "reset"]
    request: int = 0
    feature: int = 0

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class BookCase:
    """A sequence of calls on a book of ``cache_size`` rows, by requests with the given features.

    ``content_is_hashed`` states whether an identifier stands for one content here; where it does
    not, the case shows what breaks without that assumption.
    """

    cache_size: int
    requests: tuple[tuple[Feature, ...], ...]
    operations: tuple[BookOperation, ...]
    is_encoder_decoder: bool = False
    content_is_hashed: bool = True
    kind: Literal["book"] = "book"

    __pydantic_config__ = _STRICT

    def validate(self) -> None:
        """Check that operations name existing features.

        Raises:
            InputError: an unknown request or feature, an item larger than the cache, or one
                identifier with two row counts although ``content_is_hashed``.
        """
        features = [feature for request in self.requests for feature in request]
        if self.content_is_hashed:
            rows_by_identifier(features)
        for feature in features:
            if feature.num_rows > self.cache_size:
                raise InputError(
                    f"book case: feature {feature.describe()} takes {feature.num_rows} rows, more "
                    f"than the cache's {self.cache_size}"
                )
        for index, operation in enumerate(self.operations):
            if operation.action in ("end_pass", "reset"):
                continue
            known = operation.request < len(self.requests) and (
                operation.action == "finish"
                or operation.feature < len(self.requests[operation.request])
            )
            if not known or operation.request < 0 or operation.feature < 0:
                raise InputError(
                    f"book case, operation {index}: no feature {operation.feature} of request "
                    f"{operation.request}"
                )


@dataclass(frozen=True)
class WindowCase:
    """A search for the features that meet ``[start, end)`` (tokens)."""

    features: tuple[Feature, ...]
    start: int
    end: int
    kind: Literal["window"] = "window"

    __pydantic_config__ = _STRICT

    def validate(self) -> None:
        """Check the preconditions of the search.

        Raises:
            InputError: features out of order, overlapping or empty, or an empty window.
        """
        require_sorted_and_disjoint(self.features, "window case")
        if any(feature.length == 0 for feature in self.features) or self.start >= self.end:
            raise InputError("window case: features and the window must span at least one token")


@dataclass(frozen=True)
class RowRangeCase:
    """Positions ``[start, end)`` of a feature with a mask, counted from its first position."""

    is_embed: tuple[bool, ...]
    start: int
    end: int
    kind: Literal["row_range"] = "row_range"

    __pydantic_config__ = _STRICT

    def validate(self) -> None:
        """Check that the range lies in the mask; empty ranges are allowed.

        Raises:
            InputError: it does not.
        """
        if not 0 <= self.start <= self.end <= len(self.is_embed):
            raise InputError(
                f"row range case: [{self.start},{self.end}) does not lie in a mask of "
                f"{len(self.is_embed)} positions"
            )


Case: TypeAlias = GatherCase | FreeCase | BookCase | WindowCase | RowRangeCase


class CaseKinds:
    """Case classes by their ``kind`` tag."""

    BY_KIND: ClassVar[dict[str, type[Case]]] = {
        "gather": GatherCase,
        "free": FreeCase,
        "book": BookCase,
        "window": WindowCase,
        "row_range": RowRangeCase,
    }
