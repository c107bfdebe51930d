"""Every way to change one value of a recorded trace, one at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, get_args

from spec.record.scenario import Scenario
from spec.record.steps import Ending, ErrorSeen, Event, Method, Read, Status, Step, Trace

UNKNOWN = "no such hash"

NOT_SEEN = (
    {("Trace", "scenario"), ("Trace", "kind")}
    | {(step, "kind") for step in ("EventSeen", "PassSeen", "UpdateSeen")}
    | {("ErrorSeen", "type"), ("ErrorSeen", "message")}
)
"""The scenario is what was chosen, not what was seen; kinds say which class it is; no recording
that is changed here has an error."""

_CHOICES: dict[str, tuple[str, ...]] = {
    "method": get_args(Method),
    "status": get_args(Status),
    "event": get_args(Event),
    "ending": get_args(Ending),
    "runner": ("V1", "V2"),
}
_SOME: dict[str, Any] = {
    "answer": True,
    "rewound": 0,
    "num_freeable_slots": 0,
    "merged": (),
    "error": ErrorSeen("RuntimeError", "made up"),
    "drafter": Read(),
}
"""What stands in the place of ``None``."""


@dataclass(frozen=True)
class Mutation:
    """A change: ``kind`` says how the field of the class was changed, ``value`` is the result."""

    owner: str
    field: str
    kind: str
    value: Any


@dataclass(frozen=True)
class _Names:
    """Names of hashes that occur."""

    hashes: tuple[str, ...]

    def other(self, field: str, value: str) -> Iterator[tuple[str, str]]:
        if field in _CHOICES:
            for choice in _CHOICES[field]:
                if choice != value:
                    yield f"to {choice}", choice
            return
        yield "to unknown", UNKNOWN
        for name in self.hashes:
            if name != value:
                yield "to another", name
                return


def _of_value(field: str, value: Any, names: _Names) -> Iterator[tuple[str, Any]]:
    """Changes of a value that is no dataclass, or of one as a whole."""
    if value is None:
        yield "from None", _SOME[field]
    elif isinstance(value, bool):
        yield "flip", not value
    elif isinstance(value, int):
        yield "+1", value + 1
        yield "-1", value - 1
    elif isinstance(value, str):
        yield from names.other(field, value)
    elif isinstance(value, tuple):
        yield from _of_tuple(field, value, names)
    if field in _SOME and value is not None:
        yield "to None", None


def _of_tuple(field: str, value: tuple[Any, ...], names: _Names) -> Iterator[tuple[str, Any]]:
    for index, element in enumerate(value):
        head, tail = value[:index], value[index + 1 :]
        yield "drop", (*head, *tail)
        yield "repeat", (*head, element, element, *tail)
        if tail and tail[0] != element:
            yield "swap", (*head, tail[0], element, *tail[1:])
        if isinstance(element, tuple):
            for kind, changed in _of_pair(field, element, names):
                yield kind, (*head, changed, *tail)
        elif not is_dataclass(element):
            for kind, changed in _of_value(field, element, names):
                yield f"element {kind}", (*head, changed, *tail)


def _of_pair(field: str, pair: tuple[Any, ...], names: _Names) -> Iterator[tuple[str, Any]]:
    """Changes of one half of a pair; a pair has two halves, whatever happens to it."""
    for index, half in enumerate(pair):
        for kind, changed in _of_value(field, half, names):
            name = kind.removeprefix("element ")
            place = ("first", "second")[index]
            yield f"{place} {name}", (*pair[:index], changed, *pair[index + 1 :])


def _within(owner: Any, names: _Names) -> Iterator[Mutation]:
    """Changes of each field of a dataclass, and of all dataclasses in it."""
    for field in fields(owner):
        name = field.name
        if (type(owner).__name__, name) in NOT_SEEN:
            continue
        value = getattr(owner, name)
        for kind, changed in _of_value(name, value, names):
            yield Mutation(type(owner).__name__, name, kind, replace(owner, **{name: changed}))
        if is_dataclass(value):
            for inner in _within(value, names):
                yield replace(inner, value=replace(owner, **{name: inner.value}))
        elif isinstance(value, tuple):
            for index, element in enumerate(value):
                if not is_dataclass(element):
                    continue
                for inner in _within(element, names):
                    changed = (*value[:index], inner.value, *value[index + 1 :])
                    yield replace(inner, value=replace(owner, **{name: changed}))


def _hashes(scenario: Scenario) -> _Names:
    found = {f.identifier for r in scenario.requests for f in r.all_features()}
    return _Names(tuple(sorted(found)))


def _with_step(trace: Trace, index: int, step: Step) -> Trace:
    return replace(trace, steps=(*trace.steps[:index], step, *trace.steps[index + 1 :]))


def mutations(trace: Trace, most: int) -> list[Mutation]:
    """Changed traces: of each kind of change at most so many, spread evenly over the trace."""
    names = _hashes(trace.scenario)
    found: dict[tuple[str, str, str], list[Mutation]] = defaultdict(list)
    for index, step in enumerate(trace.steps):
        for mutation in _within(step, names):
            key = (mutation.owner, mutation.field, mutation.kind)
            found[key].append(replace(mutation, value=(index, mutation.value)))
    chosen = []
    for all_of_kind in found.values():
        for mutation in _spread(all_of_kind, most):
            index, step = mutation.value
            chosen.append(replace(mutation, value=_with_step(trace, index, step)))
    whole = replace(trace, steps=())
    for mutation in _within(whole, names):
        chosen.append(replace(mutation, value=replace(mutation.value, steps=trace.steps)))
    steps: dict[str, list[Any]] = defaultdict(list)
    for kind, changed in _of_tuple("steps", trace.steps, names):
        steps[kind].append(changed)
    for kind, all_changed in steps.items():
        for changed in _spread(all_changed, most):
            chosen.append(Mutation("Trace", "steps", kind, replace(trace, steps=changed)))
    return chosen


def _spread(values: Sequence[Any], most: int) -> list[Any]:
    if len(values) <= most:
        return list(values)
    return [values[place * len(values) // most] for place in range(most)]
