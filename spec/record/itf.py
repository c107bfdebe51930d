"""A trace in the Informal Trace Format, which Apalache and Quint and their tools read.

The format is Apalache's ADR-015 in its revision of 2023: every integer is a ``#bigint``. One state
for each step, with the few variables that a model of the protocol would have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from spec.record.steps import PassSeen, Step, Trace

Value: TypeAlias = dict[str, Any] | list[Any] | str
"""A value of the format."""

FORMAT_DESCRIPTION = "https://apalache-mc.org/docs/adr/015adr-trace.html"

VARIABLES = {
    "step": "Str",
    "pass": "Int",
    "status": "Int -> Str",
    "num_computed_tokens": "Int -> Int",
    "num_scheduled_tokens": "Int -> Int",
    "encoder_inputs": "Seq(<<Int, Int>>)",
    "references": "Str -> Set(Int)",
    "freeable": "Seq(Str)",
    "num_free_slots": "Int",
    "notices": "Seq(Str)",
    "resident": "Set(Str)",
}
"""Variables of a state with their types in Apalache's notation.

``step`` is ``pass``, ``update``, or the event's name; ``pass`` the pass concerned, or of an event
the one that follows; ``resident`` the hashes on the worker after the last pass so far, before the
first none. Requests are named by their index.
"""


def to_itf(trace: Trace) -> dict[str, Any]:
    """The trace as JSON data in the Informal Trace Format."""
    states = []
    resident: list[str] = []
    for index, step in enumerate(trace.steps):
        if step.kind == "pass" and step.worker is not None:
            resident = [identifier for identifier, _ in step.worker.contents]
        states.append({"#meta": {"index": index}, **_state(step, resident)})
    return {
        "#meta": {
            "format": "ITF",
            "format-description": FORMAT_DESCRIPTION,
            "description": f"{trace.target}, runner {trace.runner}; ends: {trace.ending}",
            "varTypes": VARIABLES,
        },
        "params": [],
        "vars": list(VARIABLES),
        "states": states,
    }


def _state(step: Step, resident: Iterable[str]) -> dict[str, Value]:
    book = step.state.book
    requests = step.state.requests
    batch = step.scheduled if isinstance(step, PassSeen) else ()
    inputs = step.encoder_inputs if isinstance(step, PassSeen) else ()
    notices = step.notices if isinstance(step, PassSeen) else ()
    return {
        "step": step.event if step.kind == "event" else step.kind,
        "pass": _integer(step.before if step.kind == "event" else step.index),
        "status": _map({r.request: r.status for r in requests}),
        "num_computed_tokens": _map({r.request: _integer(r.num_computed_tokens) for r in requests}),
        "num_scheduled_tokens": _map({s.request: _integer(s.num_scheduled_tokens) for s in batch}),
        "encoder_inputs": [
            {"#tup": [_integer(request), _integer(feature)]} for request, feature in inputs
        ],
        "references": _map(
            {
                identifier: _set(_integer(request) for request in sorted(set(holders)))
                for identifier, holders in book.references
            }
        ),
        "freeable": list(book.freeable),
        "num_free_slots": _integer(book.num_free_slots),
        "notices": list(notices),
        "resident": _set(sorted(set(resident))),
    }


def _integer(number: int) -> Value:
    return {"#bigint": str(number)}


def _set(elements: Iterable[Value]) -> Value:
    return {"#set": list(elements)}


def _map(pairs: Mapping[int, Value] | Mapping[str, Value]) -> Value:
    """A function: pairs of an argument and a value."""
    return {
        "#map": [
            [_integer(key) if isinstance(key, int) else key, value]
            for key, value in sorted(pairs.items())
        ]
    }
