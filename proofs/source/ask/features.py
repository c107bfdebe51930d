"""The features of a symbolic request: where each lies, its length, which positions take rows."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from proofs.source.ask.masks import SymbolicCumulativeCounts, SymbolicMask
from proofs.source.ask.question import number_in
from proofs.source.code.gather import FeatureInput
from proofs.source.code.recorders import FeatureMask
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import AnyInt
from spec.record.feature import Feature


class SymbolicFeatures:
    """Features of any offset and length, in order and apart; what is enumerated is their number.

    Args:
        exploration: gets their integers, and what is assumed of them.
        identifiers: the hash of each.
        dense: for each, whether every position takes a row; else its mask is symbolic too.

    Attributes:
        offsets: first position of each (tokens).
        lengths: of each (tokens), at least 1.
        end: the first position behind the last one.
        masks: of each.
        rows: of each encoder output.
    """

    def __init__(
        self, exploration: Exploration, identifiers: Sequence[str], dense: Sequence[bool]
    ) -> None:
        self._exploration = exploration
        self.identifiers, self._dense = tuple(identifiers), tuple(dense)
        integer = exploration.integer
        count = len(self.identifiers)
        names = [""] if count == 1 else [f"_{i}" for i in range(count)]
        self.offsets = [integer(f"offset{name}") for name in names]
        self.lengths = [integer(f"length{name}") for name in names]
        self.end: AnyInt = 0
        for offset, length in zip(self.offsets, self.lengths, strict=True):
            exploration.assume(length >= 1, offset >= self.end)
            self.end = offset + length
        self.masks = [
            SymbolicMask(exploration, index, length, dense=is_dense)
            for index, (length, is_dense) in enumerate(zip(self.lengths, self._dense, strict=True))
        ]
        self.rows = [
            mask.rows_before(length) for mask, length in zip(self.masks, self.lengths, strict=True)
        ]

    @property
    def rows_by_hash(self) -> dict[str, AnyInt]:
        """Rows of the encoder output of each hash."""
        return dict(zip(self.identifiers, self.rows, strict=True))

    def assume_contents(self) -> None:
        """Assume that each has a row, and that equal hashes have equally many."""
        by_hash = self.rows_by_hash
        for identifier, rows in zip(self.identifiers, self.rows, strict=True):
            self._exploration.assume(rows >= 1, rows == by_hash[identifier])

    def inputs(self) -> tuple[FeatureInput, ...]:
        """Each as a release's code gets it."""
        return tuple(
            FeatureInput(
                offset,
                length,
                self.identifiers[index],
                None if self._dense[index] else FeatureMask(index),
                None if self._dense[index] else SymbolicCumulativeCounts(self.masks[index], length),
            )
            for index, (offset, length) in enumerate(zip(self.offsets, self.lengths, strict=True))
        )

    def in_model(self, model: z3.ModelRef) -> tuple[Feature, ...]:
        """Each on plain integers, as a model describes it."""
        return tuple(
            Feature(
                number_in(model, offset.term),
                number_in(model, length.term),
                identifier,
                mask.in_model(model),
            )
            for offset, length, identifier, mask in zip(
                self.offsets, self.lengths, self.identifiers, self.masks, strict=True
            )
        )

    @property
    def sizes(self) -> list[z3.ArithRef]:
        """Their integers, those first that are to be small first."""
        return [value.term for value in (*self.lengths, *self.offsets)]
