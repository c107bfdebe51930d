"""Cases: everything that is chosen from outside for one call of one function under test.

Frozen data with a ``kind`` tag; :mod:`spec.functions.case_files` reads and writes them as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from spec.errors import InputError
from spec.functions.book_cases import BookCase, BookOperation, FreeCase, Progress
from spec.functions.scheduling_cases import SchedulingCase
from spec.record.feature import Feature, require_sorted_and_disjoint, rows_by_identifier
from spec.record.scenario import Scenario

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

"""Every kind of case that the functions of a target are given one at a time."""

AnyCase: TypeAlias = Case | SchedulingCase | Scenario
"""Every kind of case that a finding can be about: scheduling alone is shown on a release's source
only; whole passes are shown there, and on any target, by a scenario of the loop."""

__all__ = [
    "AnyCase",
    "BookCase",
    "BookOperation",
    "Case",
    "EncoderOutput",
    "FreeCase",
    "GatherCase",
    "GatherRequest",
    "Progress",
    "RowRangeCase",
    "SchedulingCase",
    "WindowCase",
]
