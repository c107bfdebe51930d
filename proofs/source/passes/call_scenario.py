"""One symbolic call of a release's scheduling of encoder inputs, of each kind that there is."""

from __future__ import annotations

from dataclasses import dataclass

import z3

from proofs.source.ask.masks import SymbolicCumulativeCounts, SymbolicMask
from proofs.source.ask.question import number_in
from proofs.source.code.call import CallInput, CallSeen, call_scheduling
from proofs.source.code.encoder_passes import has_reservation
from proofs.source.code.gather import FeatureInput
from proofs.source.code.recorders import FeatureMask
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import feature_input
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import AnyInt, SymbolicBool, SymbolicInt
from proofs.symbolic.tree import Tree
from spec.record.feature import Feature


@dataclass(frozen=True)
class CallShape:
    """What is enumerated: equal letters are equal hashes."""

    identifiers: str
    dense: bool = True
    is_encoder_decoder: bool = False
    has_store: bool = False


SHAPES = (
    CallShape(""),
    CallShape("A"),
    CallShape("A", dense=False),
    CallShape("A", is_encoder_decoder=True),
    CallShape("A", has_store=True),
    CallShape("AA"),
    CallShape("AB"),
)
"""Two features show what becomes of those behind one that is chosen, refused or cut off."""


class CallScenario:
    """One symbolic call, explored once; every integer is unbounded."""

    def __init__(self, release: ReleaseSource, shape: CallShape) -> None:
        self.shape = shape
        self.exploration = Exploration()
        integer, boolean = self.exploration.integer, self.exploration.boolean
        names = [f"_{i}" for i in range(len(shape.identifiers))]
        self.offsets = [integer(f"offset{name}") for name in names]
        self.lengths = [integer(f"length{name}") for name in names]
        self.start, self.asked = integer("num_computed"), integer("num_asked")
        self.known, self.shift = integer("num_known"), integer("scheduler_shift")
        self.budget, self.freeable = integer("encoder_budget"), integer("freeable_slots")
        self.whole_items = boolean("whole_items")
        letters = sorted(set(shape.identifiers))
        self.cached = {name: boolean(f"cached_{name}") for name in letters}
        self.stored = {name: boolean(f"stored_{name}") for name in letters}
        self._assume_layout()
        self.masks = [
            SymbolicMask(self.exploration, i, length, dense=shape.dense)
            for i, length in enumerate(self.lengths)
        ]
        self.rows = [
            mask.rows_before(length) for mask, length in zip(self.masks, self.lengths, strict=True)
        ]
        by_name = dict(zip(shape.identifiers, self.rows, strict=True))
        for name, rows in zip(shape.identifiers, self.rows, strict=True):
            self.exploration.assume(rows >= 1, rows == by_name[name])
        self.has_reservation = has_reservation(release)
        if not self.has_reservation:
            self.exploration.assume(self.shift.term <= 1)
        given = self._input()
        self.tree: Tree[CallSeen] = self.exploration.explore(
            lambda: call_scheduling(release, given)
        )

    def _assume_layout(self) -> None:
        assume = self.exploration.assume
        end: AnyInt = 0
        for offset, length in zip(self.offsets, self.lengths, strict=True):
            assume(length >= 1, offset >= end)
            end = offset + length
            if self.shape.is_encoder_decoder:
                assume(offset == 0)
        counts = (self.start, self.asked, self.known, self.shift, self.budget, self.freeable)
        assume(*(value >= 0 for value in counts))

    def _input(self) -> CallInput:
        dense = self.shape.dense
        features = tuple(
            FeatureInput(
                offset,
                length,
                identifier,
                None if dense else FeatureMask(index),
                None if dense else SymbolicCumulativeCounts(mask, length),
            )
            for index, (offset, length, identifier, mask) in enumerate(
                zip(self.offsets, self.lengths, self.shape.identifiers, self.masks, strict=True)
            )
        )
        return CallInput(
            features,
            self.known,
            self.start,
            self.asked,
            self.budget,
            self.freeable,
            self.shift,
            self.whole_items,
            self.cached,
            self.stored if self.shape.has_store else None,
            self.shape.is_encoder_decoder,
        )

    @property
    def sizes(self) -> list[z3.ArithRef]:
        """The integers of a difference, to be made small."""
        values: list[SymbolicInt] = [
            self.asked,
            self.start,
            *self.lengths,
            *self.offsets,
            self.shift,
            self.known,
            self.freeable,
            self.budget,
        ]
        return [value.term for value in values]

    def in_model(self, model: z3.ModelRef) -> CallInput:
        """The call on plain integers that a model describes."""

        def number(value: SymbolicInt) -> int:
            return number_in(model, value.term)

        def truth(value: SymbolicBool) -> bool:
            return bool(z3.is_true(model.eval(value.term, model_completion=True)))

        features = tuple(
            feature_input(
                index, Feature(number(offset), number(length), name, mask.in_model(model))
            )
            for index, (offset, length, name, mask) in enumerate(
                zip(self.offsets, self.lengths, self.shape.identifiers, self.masks, strict=True)
            )
        )
        return CallInput(
            features,
            number(self.known),
            number(self.start),
            number(self.asked),
            number(self.budget),
            number(self.freeable),
            number(self.shift),
            truth(self.whole_items),
            {name: truth(value) for name, value in self.cached.items()},
            {name: truth(value) for name, value in self.stored.items()}
            if self.shape.has_store
            else None,
            self.shape.is_encoder_decoder,
        )
