"""A state with other values, made quickly: a transition changes a few of thirty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter

from spec.algebra import BoolTerm, IntTerm
from spec.record.quick import quick
from spec.relation.state import State

_make_state: Callable[..., State] = quick(State)
_PLACES = {field.name: place for place, field in enumerate(fields(State))}
_values = attrgetter(*_PLACES)


def changed(state: State, **changes: IntTerm | BoolTerm) -> State:
    """The state with other values; as :func:`dataclasses.replace`, in a quarter of its time."""
    values = list(_values(state))
    for name, value in changes.items():
        values[_PLACES[name]] = value
    return _make_state(*values)
