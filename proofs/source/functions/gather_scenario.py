"""One symbolic batch for a gather: its inputs, the paths of the code, and what each must return."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import z3

from impl.target import Runner
from proofs.source.ask.features import SymbolicFeatures
from proofs.source.code.gather import (
    GatherInput,
    GatherOutcome,
    RequestInput,
    call_gather,
)
from proofs.source.code.recorders import Write
from proofs.source.code.release import ReleaseSource
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import AnyInt, SymbolicInt
from proofs.symbolic.tree import Tree
from spec.algebra import BoolTerm, and_, eq, min_, not_, or_
from spec.rules import geometry


@dataclass(frozen=True)
class Shape:
    """What is enumerated rather than symbolic: dense or masked features, and equal hashes.

    ``identifiers`` holds one hash per feature, none of which is a word that a message may contain.
    ``decode_beside`` puts a request without features in
    front, which the runner may take for a decode.
    """

    dense: tuple[bool, ...]
    identifiers: tuple[str, ...]
    decode_beside: bool

    def describe(self) -> str:
        """Words for reports."""
        kinds = ", ".join("dense" if dense else "masked" for dense in self.dense)
        shared = "" if len(set(self.identifiers)) == len(self.identifiers) else ", shared hash"
        return f"{len(self.dense)} feature(s): {kinds}{shared}"


def hashes(letters: str) -> tuple[str, ...]:
    """A hash for each letter."""
    return tuple(f"h{letter}" for letter in letters)


def shapes(max_features: int) -> Iterable[Shape]:
    """Every shape up to a number of features.

    All mixtures of dense and masked features with different hashes; every pattern of equal hashes
    among dense features, and two masked features of one hash. Equal hashes only tie residencies
    that are otherwise free, and every mixture was explored with them free.
    """
    for count in range(1, max_features + 1):
        letters = "ABC"[:count]
        for dense in product((True, False), repeat=count):
            yield Shape(dense, hashes(letters), decode_beside=count == 1)
    for pattern in ("AA", "AAB", "ABA", "ABB", "AAA"):
        if len(pattern) <= max_features:
            for is_dense in (True, False) if len(pattern) == 2 else (True,):
                yield Shape((is_dense,) * len(pattern), hashes(pattern), decode_beside=False)


class GatherScenario:
    """A symbolic batch of one shape, explored once.

    Symbolic and unbounded: computed and scheduled tokens, look-ahead, prefill length, offsets,
    lengths, masks, residency, and how many tokens stand before the request in the batch.
    """

    def __init__(self, release: ReleaseSource, runner: Runner, shape: Shape) -> None:
        self.shape = shape
        self.exploration = Exploration()
        integer = self.exploration.integer
        self.computed, self.scheduled = integer("num_computed"), integer("num_scheduled")
        self.look_ahead, self.prefill = integer("look_ahead"), integer("prefill_len")
        self.before = integer("tokens_before")
        self.features = SymbolicFeatures(self.exploration, shape.identifiers, shape.dense)
        self.resident = {h: self.exploration.boolean(f"resident_{h}") for h in shape.identifiers}
        self._assume_legal()
        given = self._input()
        self.tree: Tree[GatherOutcome] = self.exploration.explore(
            lambda: call_gather(release, runner, given)
        )

    def _assume_legal(self) -> None:
        assume = self.exploration.assume
        assume(self.computed >= 0, self.scheduled >= 1, self.look_ahead >= 0)
        assume(self.before >= 1)
        assume(self.features.end <= self.prefill)

    def _input(self) -> GatherInput:
        integer = self.exploration.integer
        if self.shape.decode_beside:
            other_computed, other_prefill = integer("other_computed"), integer("other_prefill")
            self.exploration.assume(other_computed >= 0, other_prefill >= 1)
        else:
            # A text request that is certainly prefilling: it only shifts the batch positions.
            other_computed = SymbolicInt(z3.IntVal(0, self.exploration.context))
            other_prefill = self.look_ahead + 1
        first = RequestInput(other_computed, self.before, other_prefill, ())
        request = RequestInput(self.computed, self.scheduled, self.prefill, self.features.inputs())
        return GatherInput((first, request), lambda h: self.resident[h], self.look_ahead)

    @property
    def premises(self) -> list[z3.BoolRef]:
        """Assumptions on the inputs and laws of masks; ask after the claims were built."""
        return [*self.exploration.assumptions, *self.exploration.facts]

    def window(self) -> tuple[AnyInt, AnyInt]:
        """Positions whose embeddings are gathered."""
        return geometry.drafter_window(self.computed, self.scheduled, self.look_ahead)

    @cached_property
    def position(self) -> AnyInt:
        """An arbitrary position of the batch."""
        return self.exploration.integer("any_position")

    @cached_property
    def interior_misses(self) -> list[BoolTerm]:
        """For each feature, whether it is read, not resident, and not at the boundary."""
        return [
            and_(self.is_read(i), not_(self.is_resident(i)), not_(self.is_at_boundary(i)))
            for i in range(len(self.features.offsets))
        ]

    @cached_property
    def any_interior_miss(self) -> BoolTerm:
        """Whether the oracle has an error."""
        return or_(*self.interior_misses)

    def bounds(self, index: int) -> tuple[AnyInt, AnyInt]:
        """The part of a feature inside the window, counted from its first position."""
        return geometry.slice_bounds(
            self.features.offsets[index], self.features.lengths[index], *self.window()
        )

    def rows(self, index: int) -> tuple[AnyInt, AnyInt]:
        """Encoder rows of that part."""
        return self._rows[index]

    def is_read(self, index: int) -> BoolTerm:
        """Whether a row of the feature lies in the window."""
        return self._reads[index]

    # Terms that every path's claims repeat are built once: building dominates the time otherwise.
    @cached_property
    def _rows(self) -> list[tuple[AnyInt, AnyInt]]:
        return [
            geometry.row_range(mask.rows_before, *self.bounds(index))
            for index, mask in enumerate(self.features.masks)
        ]

    @cached_property
    def _reads(self) -> list[BoolTerm]:
        return [
            and_(
                geometry.meets(offset, length, *self.window()),
                self.rows(index)[0] < self.rows(index)[1],
            )
            for index, (offset, length) in enumerate(
                zip(self.features.offsets, self.features.lengths, strict=True)
            )
        ]

    def is_at_boundary(self, index: int) -> BoolTerm:
        """Whether the feature starts at or past the processed end."""
        processed_to = geometry.processed_end(self.computed, self.scheduled)
        return geometry.is_at_boundary(self.features.offsets[index], processed_to)

    def is_resident(self, index: int) -> BoolTerm:
        """Whether the worker holds the feature's output."""
        return self.resident[self.shape.identifiers[index]]

    @cached_property
    def mask_at_position(self) -> BoolTerm:
        """Whether the oracle has a row at :attr:`position`."""
        position = self.position
        start, _ = self.window()
        token = position - self.before + start
        in_request = and_(position >= self.before, position < self.before + self.scheduled)
        rows = [
            and_(
                self.is_resident(index),
                self.features.masks[index].takes_row(token - self.features.offsets[index]),
            )
            for index in range(len(self.features.offsets))
        ]
        return and_(in_request, or_(*rows))

    def written_at_position(self, outcome: GatherOutcome) -> BoolTerm:
        """Whether the code's writes leave the batch mask true at :attr:`position`."""
        assert outcome.mask is not None
        position = self.position
        value: BoolTerm = False
        for write in outcome.mask.writes:
            written = self._write_value(write, position)
            new = or_(value, written) if write.mode == "or" else written
            inside = and_(position >= write.start, position < write.stop)
            value = or_(and_(inside, new), and_(not_(inside), value))
        return value

    def lengths_agree(self, outcome: GatherOutcome) -> BoolTerm:
        """Whether each part of a feature's mask is as long as what it is written to.

        A slice is clamped to the mask that it is taken from, as tensors do it.
        """
        assert outcome.mask is not None
        agree: list[BoolTerm] = []
        for write in outcome.mask.writes:
            if write.value is not True:
                length = self.features.lengths[write.value.feature]
                low = write.value.start
                high = write.value.stop
                taken = min_(high, length) - low
                written = write.stop - write.start
                agree.append(and_(low >= 0, eq(taken, written)))
        return and_(*agree)

    def _write_value(self, write: Write, position: AnyInt) -> BoolTerm:
        if write.value is True:
            return True
        place = write.value.start + position - write.start
        return self.features.masks[write.value.feature].takes_row(place)
