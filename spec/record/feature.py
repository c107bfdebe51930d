"""A multimodal feature: one image, audio clip or video in a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from spec.errors import InputError
from spec.rules.geometry import count_rows_before


@dataclass(frozen=True)
class Feature:
    """Where one item sits in a prompt and which of its positions take an encoder row.

    Attributes:
        offset: first token position of the item in the prompt.
        length: tokens that the item spans.
        identifier: hash of the item's content. Features with equal identifiers share one cache
            entry.
        is_embed: for each of the ``length`` positions, whether it takes one row of the encoder
            output; ``None`` when all do. The others are text, such as break tokens.

    Raises:
        InputError: a negative offset or length, or a mask of another length.
    """

    offset: int
    length: int
    identifier: str
    is_embed: tuple[bool, ...] | None = None

    __pydantic_config__ = {"extra": "forbid", "strict": True}

    def __post_init__(self) -> None:
        """Refuse what no engine could have produced."""
        if self.offset < 0 or self.length < 0:
            raise InputError(
                f"feature {self.identifier!r}: offset {self.offset} and length {self.length} must "
                "not be negative"
            )
        if self.is_embed is not None and len(self.is_embed) != self.length:
            raise InputError(
                f"feature {self.identifier!r}: its mask has {len(self.is_embed)} entries but the "
                f"feature spans {self.length} tokens; give one entry per token"
            )

    @property
    def end(self) -> int:
        """The position after the feature's last one."""
        return self.offset + self.length

    @cached_property
    def num_rows(self) -> int:
        """Rows of the feature's encoder output."""
        return count_rows_before(self.is_embed, self.length)

    def takes_row_at(self, position: int) -> bool:
        """Whether the prompt position lies in the feature and takes an encoder row."""
        if not self.offset <= position < self.end:
            return False
        return self.is_embed is None or self.is_embed[position - self.offset]

    def row_at(self, position: int) -> int:
        """Row of the encoder output for a prompt position that takes one."""
        return count_rows_before(self.is_embed, position - self.offset)

    def has_row_in(self, start: int, end: int) -> bool:
        """Whether any position of ``[start, end)`` takes a row of this feature."""
        low, high = max(start, self.offset), min(end, self.end)
        return any(self.takes_row_at(position) for position in range(low, high))

    def has_row_at_or_past(self, position: int) -> bool:
        """Whether a row is taken at or past the given prompt position."""
        return self.has_row_in(position, self.end)

    def describe(self) -> str:
        """The feature as a person writes it: ``A[4,8)`` with its mask as T and F."""
        mask = ""
        if self.is_embed is not None:
            mask = " mask " + "".join("T" if takes_row else "F" for takes_row in self.is_embed)
        return f"{self.identifier}[{self.offset},{self.end}){mask}"


def require_sorted_and_disjoint(features: Sequence[Feature], where: str) -> None:
    """Check the order that every engine assumes of a request's features.

    Raises:
        InputError: two neighbours out of order or overlapping.
    """
    for index, (left, right) in enumerate(pairwise(features)):
        if right.offset < left.offset:
            raise InputError(
                f"{where}: feature {index + 1} ({right.describe()}) starts before feature {index} "
                f"({left.describe()}); sort features by offset"
            )
        if right.offset < left.end:
            raise InputError(
                f"{where}: features {index} ({left.describe()}) and {index + 1} "
                f"({right.describe()}) overlap; nested and interleaved features are not covered"
            )


def rows_by_identifier(features: Sequence[Feature]) -> dict[str, int]:
    """Rows of each cache entry that the features name.

    Raises:
        InputError: one identifier with two row counts (assumption ``hash-is-content``).
    """
    rows: dict[str, int] = {}
    for feature in features:
        num_rows = rows.setdefault(feature.identifier, feature.num_rows)
        if num_rows != feature.num_rows:
            raise InputError(
                f"feature {feature.describe()} has {feature.num_rows} rows but its identifier was "
                f"seen with {num_rows}; an identifier stands for one content"
            )
    return rows
