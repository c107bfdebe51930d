"""The first step in which two runs of one scenario differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from spec.record.steps import LoopBookState, Read, Step, WorkerSeen

_IN_ANY_ORDER = {
    (LoopBookState, "references"),
    (WorkerSeen, "contents"),
}
"""Fields whose order says nothing."""


@dataclass(frozen=True)
class Difference:
    """Where two runs part, and what each shows there.

    Attributes:
        step: index of the step in both runs.
        place: the field, as a path from the step; empty where one run has no such step.
        first: what the first run shows.
        second: what the second run shows.
    """

    step: int
    place: str
    first: str
    second: str


def first_difference(first: Sequence[Step], second: Sequence[Step]) -> Difference | None:
    """Where the second run first differs from the first; ``None`` where it never does.

    What only one of them recorded, as only runs with tensors record what was merged, is left out.
    """
    for index, (first_value, second_value) in enumerate(zip(first, second, strict=False)):
        found = _difference(first_value, second_value, ())
        if found is not None:
            path, left, right = found
            return Difference(index, ".".join(path), str(left), str(right))
    if len(first) == len(second):
        return None
    shorter = min(len(first), len(second))
    return Difference(shorter, "", f"{len(first)} steps", f"{len(second)} steps")


def _difference(
    first_value: Any, second_value: Any, path: tuple[str, ...]
) -> tuple[tuple[str, ...], Any, Any] | None:
    if first_value == second_value:
        return None
    if is_dataclass(first_value) and type(first_value) is type(second_value):
        for field in fields(first_value):
            left, right = getattr(first_value, field.name), getattr(second_value, field.name)
            if (type(first_value), field.name) in _IN_ANY_ORDER:
                left, right = _ordered(left), _ordered(right)
            if isinstance(first_value, Read) and field.name == "merged" and None in (left, right):
                continue
            found = _difference(left, right, (*path, field.name))
            if found is not None:
                return found
        return None
    if (
        isinstance(first_value, tuple)
        and isinstance(second_value, tuple)
        and len(first_value) == len(second_value)
    ):
        for index, (left, right) in enumerate(zip(first_value, second_value, strict=True)):
            found = _difference(left, right, (*path, str(index)))
            if found is not None:
                return found
        return None
    if not path:
        return ("kind",), first_value.kind, second_value.kind
    return path, first_value, second_value


def _ordered(entries: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    """Entries by their identifiers, and the requests of each in order."""
    return tuple(
        (identifier, tuple(sorted(value)) if isinstance(value, tuple) else value)
        for identifier, value in sorted(entries)
    )
