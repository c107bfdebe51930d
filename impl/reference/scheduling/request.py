"""Requests and features as the scheduler and the workers hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from impl.late import torch
from impl.reference.scheduling import guards
from spec.errors import InputError


@dataclass(frozen=True, eq=False)
class PlaceholderRange:
    """Where a feature sits in its prompt, and which of its positions take an encoder row.

    Attributes:
        offset: first position (tokens).
        length: positions (tokens).
        is_embed: bool tensor of shape ``(length,)`` on the CPU: the positions that take a row; or
            ``None``: all do.

    Raises:
        InputError: the mask has another shape or dtype.
    """

    offset: int
    length: int
    is_embed: torch.Tensor | None = None

    def __post_init__(self) -> None:
        """Refuse a mask that does not belong to the range."""
        mask = self.is_embed
        if mask is not None and (mask.dtype != torch.bool or mask.shape != (self.length,)):
            raise InputError(
                f"placeholder range at {self.offset}: its mask is {mask.dtype} of shape "
                f"{tuple(mask.shape)}; give one bool per position, shape ({self.length},)"
            )

    @property
    def end(self) -> int:
        """The position after the last one."""
        return self.offset + self.length

    @cached_property
    def rows_before(self) -> Sequence[int]:
        """How many rows lie before each position, and before the end: ``length + 1`` counts."""
        if self.is_embed is None:
            return range(self.length + 1)
        return [0, *self.is_embed.cumsum(dim=0).tolist()]

    @property
    def num_rows(self) -> int:
        """Rows of the feature's encoder output."""
        return self.rows_before[-1]

    def rows_in_range(self, start: int, end: int) -> tuple[int, int]:
        """Rows of the positions ``[start, end)``, counted from the range's first position."""
        return guards.rows_in_range(self.rows_before, start, end)


@dataclass(frozen=True, eq=False)
class MultiModalFeature:
    """One item of a prompt: the hash of its content and its place."""

    identifier: str
    mm_position: PlaceholderRange

    def moved_by(self, tokens: int) -> MultiModalFeature:
        """The same item, so many tokens later."""
        if not tokens:
            return self
        place = self.mm_position
        moved = replace(place, offset=place.offset + tokens)
        return replace(self, mm_position=moved)


@dataclass(eq=False)
class Request:
    """A request.

    Attributes:
        mm_features: its features, sorted by offset and disjoint.
        num_computed_tokens: progress, tokens in flight included.
        num_output_placeholders: tokens counted in advance by an asynchronous scheduler.
    """

    request_id: str
    mm_features: Sequence[MultiModalFeature]
    num_computed_tokens: int = 0
    num_output_placeholders: int = 0

    def get_num_encoder_embeds(self, input_id: int) -> int:
        """Rows of the encoder output of one feature."""
        return self.mm_features[input_id].mm_position.num_rows


def features_in_window(
    features: Sequence[MultiModalFeature], start: int, end: int
) -> tuple[int, int]:
    """Indices ``[low, high)`` of the features that meet ``[start, end)`` (tokens)."""
    offsets = [feature.mm_position.offset for feature in features]
    ends = [feature.mm_position.end for feature in features]
    return guards.search_window(offsets, ends, start, end)
