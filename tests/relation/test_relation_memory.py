"""What a projection only remembers of the past: no guard of a transition may read it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spec.relation.change import changed
from spec.relation.guards import CORRECT
from spec.relation.moves import TRANSITIONS
from spec.relation.runs.shown import OF_RUNNING, REMEMBERED
from spec.relation.state import Scope, State, initial

SCOPE = Scope(6, 2, 1, 2, 1, 1, 1, True, True)
_BOOLEANS = {name for name, value in initial(SCOPE)._asdict().items() if isinstance(value, bool)}
STATES = st.builds(
    lambda values: changed(initial(SCOPE), **values),
    st.fixed_dictionaries(
        {name: st.booleans() if name in _BOOLEANS else st.integers(0, 4) for name in State._fields}
    ),
)


ARGUMENTS = st.tuples(st.lists(st.integers(0, 3), min_size=3, max_size=3), st.integers(0, 31))
"""Integers that a transition is told, and the bits of its truth values."""


def _guards(transition: str, state: State, arguments: tuple[list[int], int]) -> dict[str, bool]:
    kind, (integers, bits) = TRANSITIONS[transition], arguments
    values: dict[str, int | bool] = dict(zip(kind.integers, integers, strict=False))
    values |= {name: bool(bits >> place & 1) for place, name in enumerate(kind.booleans)}
    guards = kind.move(SCOPE, state, CORRECT, **values).guards
    return {name: bool(holds) for name, holds in guards.items()}


@given(state=STATES, arguments=ARGUMENTS)
def test_no_guard_reads_what_is_only_remembered(
    state: State, arguments: tuple[list[int], int]
) -> None:
    """Wrong: two ways to a state would be called alike although a later step tells them apart."""
    for transition in TRANSITIONS:
        guards = _guards(transition, state, arguments)
        for name in REMEMBERED:
            changed_state = changed(state, **{name: not getattr(state, name)})
            assert guards == _guards(transition, changed_state, arguments)


@given(state=STATES, arguments=ARGUMENTS)
def test_no_guard_reads_the_counts_of_who_does_not_run(
    state: State, arguments: tuple[list[int], int]
) -> None:
    """Wrong: the same, of a request that waits; of guards that hold only of who runs no matter."""
    waits = changed(state, running=False, trying=False, scheduled=0, held=False)
    for transition in TRANSITIONS:
        guards = _guards(transition, waits, arguments)
        for name in OF_RUNNING:
            changed_guards = _guards(transition, changed(waits, **{name: 7}), arguments)
            assert all(guards.values()) == all(changed_guards.values())


def test_fields_that_guards_do_read_are_told_apart() -> None:
    """Wrong: the two tests above cannot fail."""
    state = changed(initial(SCOPE), in_pass=True, running=True)
    arguments = {"num_tokens": 1, "num_drafts": 0, "stopped_at": 0}
    for name in ("computed", "asked"):
        move = TRANSITIONS["advance"].move
        changed_state = changed(state, **{name: 1})
        assert (
            move(SCOPE, state, CORRECT, samples=False, is_stopped=False, **arguments).guards
            != move(
                SCOPE, changed_state, CORRECT, samples=False, is_stopped=False, **arguments
            ).guards
        )
