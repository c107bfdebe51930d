"""Cases about references: *free* at moments of a request's progress, and calls on a book."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from spec.errors import InputError
from spec.record.feature import Feature, require_sorted_and_disjoint, rows_by_identifier

_STRICT = {"extra": "forbid", "strict": True}


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

    A ``take`` that is no hit is held to two limits (rows). ``encoder_budget``: what the encoder may
    still compute in this pass; ``None`` is as much as needed. ``num_rows_chosen``: what the same
    scheduling call chose before and has not allocated yet; room is made for that too.
    """

    action: Literal["take", "drop", "finish", "end_pass", "reset"]
    request: int = 0
    feature: int = 0
    encoder_budget: int | None = None
    num_rows_chosen: int = 0

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
            InputError: an unknown request or feature, an item larger than the cache, one identifier
                with two row counts although ``content_is_hashed``, or a limit that is negative or
                not on a take.
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
            _require_limits(operation, f"book case, operation {index}")
            if operation.action in ("end_pass", "reset"):
                continue
            exists = operation.request < len(self.requests) and (
                operation.action == "finish"
                or operation.feature < len(self.requests[operation.request])
            )
            if not exists or operation.request < 0 or operation.feature < 0:
                raise InputError(
                    f"book case, operation {index}: no feature {operation.feature} of request "
                    f"{operation.request}"
                )


def _require_limits(operation: BookOperation, where: str) -> None:
    budget, chosen = operation.encoder_budget, operation.num_rows_chosen
    if operation.action != "take" and (budget is not None or chosen != 0):
        raise InputError(
            f"{where}: {operation.action} with an encoder budget or rows chosen before; only a "
            "take is held to them"
        )
    if (budget is not None and budget < 0) or chosen < 0:
        raise InputError(
            f"{where}: encoder budget {budget} and {chosen} rows chosen before; neither can be "
            "negative"
        )
