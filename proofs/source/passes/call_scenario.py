"""One symbolic call of a release's scheduling of encoder inputs, of each kind that there is."""

from __future__ import annotations

from dataclasses import dataclass

import z3

from proofs.source.ask.features import SymbolicFeatures
from proofs.source.ask.question import number_in
from proofs.source.code.call import CallInput, CallSeen, call_scheduling
from proofs.source.code.encoder_passes import has_reservation
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import feature_input
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import SymbolicBool, SymbolicInt
from proofs.symbolic.tree import Tree


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
        dense = [shape.dense] * len(shape.identifiers)
        self.features = SymbolicFeatures(self.exploration, shape.identifiers, dense)
        self.start, self.asked = integer("num_computed"), integer("num_asked")
        self.known, self.shift = integer("num_known"), integer("scheduler_shift")
        self.budget, self.freeable = integer("encoder_budget"), integer("freeable_slots")
        self.whole_items = boolean("whole_items")
        letters = sorted(set(shape.identifiers))
        self.cached = {name: boolean(f"cached_{name}") for name in letters}
        self.stored = {name: boolean(f"stored_{name}") for name in letters}
        self._assume_counts()
        self.features.assume_contents()
        self.has_reservation = has_reservation(release)
        if not self.has_reservation:
            self.exploration.assume(self.shift.term <= 1)
        given = self._input()
        self.tree: Tree[CallSeen] = self.exploration.explore(
            lambda: call_scheduling(release, given)
        )

    def _assume_counts(self) -> None:
        assume = self.exploration.assume
        if self.shape.is_encoder_decoder:
            assume(*(offset == 0 for offset in self.features.offsets))
        counts = (self.start, self.asked, self.known, self.shift, self.budget, self.freeable)
        assume(*(value >= 0 for value in counts))

    def _input(self) -> CallInput:
        return CallInput(
            self.features.inputs(),
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
        return [
            self.asked.term,
            self.start.term,
            *self.features.sizes,
            self.shift.term,
            self.known.term,
            self.freeable.term,
            self.budget.term,
        ]

    def in_model(self, model: z3.ModelRef) -> CallInput:
        """The call on plain integers that a model describes."""

        def number(value: SymbolicInt) -> int:
            return number_in(model, value.term)

        def truth(value: SymbolicBool) -> bool:
            return bool(z3.is_true(model.eval(value.term, model_completion=True)))

        features = tuple(
            feature_input(index, feature)
            for index, feature in enumerate(self.features.in_model(model))
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
