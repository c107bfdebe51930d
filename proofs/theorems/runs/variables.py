"""The relations' constants and states as variables of a formula, and as concrete data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from proofs.smt.vocabulary import Value, Vocabulary
from spec.algebra import BoolTerm, and_
from spec.relation.cross_attention import ITEM_INVARIANTS, ItemScope, nothing_yet
from spec.relation.cross_attention_moves import CORRECT_ITEMS
from spec.relation.guards import CORRECT
from spec.relation.invariants import INVARIANTS
from spec.relation.moves import ITEM_TRANSITIONS, TRANSITIONS, Transition
from spec.relation.state import Scope, initial

SIZES = "sizes-not-negative"
"""The one premise on constants that some proofs use."""


@dataclass(frozen=True)
class World:
    """One of the two relations, as formulas are built of it.

    Attributes:
        scope: its constants, as numbers that say which are truth values.
        state: its state, likewise.
        guards: the guards of a correct engine.
        plain: what constants are like in a run.
    """

    scope: Any
    state: Any
    transitions: Mapping[str, Transition[Any]]
    invariants: Mapping[str, Callable[[Any, Any], BoolTerm]]
    guards: Any
    plain: Callable[[Any], BoolTerm]

    def a_scope(self, v: Vocabulary) -> Any:
        """Constants of a run."""
        return _variables(v, self.scope)

    def a_state(self, v: Vocabulary) -> Any:
        """A state, whether a run can reach it or not."""
        return _variables(v, self.state)

    def arguments(self, v: Vocabulary, transition: str) -> dict[str, Any]:
        """What a transition is given beside scope, state and guards."""
        names = self.transitions[transition]
        return {name: v.integer(name) for name in names.integers} | {
            name: v.boolean(name) for name in names.booleans
        }

    def all_invariants(self, scope: Any, state: Any) -> BoolTerm:
        """Every invariant, so that the state is one that the proof reckons with."""
        return and_(*(invariant(scope, state) for invariant in self.invariants.values()))

    def plain_state(self, state: Any) -> BoolTerm:
        """No count is negative."""
        counts = self.state._fields
        return and_(
            *(
                getattr(state, name) >= 0
                for name in counts
                if not isinstance(getattr(self.state, name), bool)
            )
        )

    def completed(self, named: Mapping[str, Value]) -> dict[str, Value]:
        """Data of a formula: what is named, and 0 or false for all else of constants and state.

        The arguments of the transition have to be named.
        """
        data: dict[str, Value] = {}
        for data_class in (self.scope, self.state):
            for name, kind in data_class._asdict().items():
                data[name] = type(kind)(0)
        return {**data, **named}


def values(**named: Value) -> dict[str, Value]:
    """A state and the arguments of a transition, by name; what is not named is 0 or false."""
    return named


def _variables(v: Vocabulary, kinds: Any) -> Any:
    made = {
        name: v.boolean(name) if isinstance(kind, bool) else v.integer(name)
        for name, kind in kinds._asdict().items()
    }
    return type(kinds)(**made)


def _plain_feature(scope: Scope) -> BoolTerm:
    """A feature of some length that fits the cache, and p in it."""
    return and_(
        scope.cache_size >= scope.rows,
        scope.rows >= 1,
        scope.offset >= 0,
        scope.offset <= scope.position,
        scope.position < scope.end,
        scope.gather_lookahead >= 0,
        scope.scheduler_lookahead >= 0,
    )


def _plain_item(scope: ItemScope) -> BoolTerm:
    """An item of some rows that fits the cache."""
    return and_(scope.cache_size >= scope.rows, scope.rows >= 1)


_A_FEATURE = Scope(0, 0, 0, 0, 0, 0, 0, False, False)
_AN_ITEM = ItemScope(0, 0)

DECODER_ONLY = World(
    _A_FEATURE, initial(_A_FEATURE), TRANSITIONS, INVARIANTS, CORRECT, _plain_feature
)
CROSS_ATTENTION = World(
    _AN_ITEM, nothing_yet(_AN_ITEM), ITEM_TRANSITIONS, ITEM_INVARIANTS, CORRECT_ITEMS, _plain_item
)


def sizes_not_negative(scope: Any) -> BoolTerm:
    """No size of the cache or of the entry is below 0."""
    return and_(scope.rows >= 0, scope.cache_size >= 0)
