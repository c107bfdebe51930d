"""Recorded traces with one value changed are no record of a correct engine, and are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from proofs.run.record import record
from spec.errors import InputError
from spec.monitor.monitor import check_trace
from spec.record import steps as seen
from spec.record.consistency import require_consistent
from spec.record.steps import Trace
from tests.support.mutated_scenarios import SCENARIOS, WITH_TENSORS
from tests.support.trace_mutations import NOT_SEEN, mutations

MOST = 3
"""Changed traces of each kind of change, of each recording."""

_ORDER = "any order says the same: "
_NOTHING = "what holds nothing lets nothing go"
_WANTED = "a request that gets no KV blocks may have asked for as many or as few"

WITHOUT_MEANING: dict[tuple[str, str, str], str] = {
    ("Call", "answer", "flip"): "whether there was room for a request that then gets no KV blocks "
    "and gives everything back",
    ("Call", "budget", "+1"): "room for more tokens than run may be made; and: " + _WANTED,
    ("Call", "budget", "-1"): _WANTED,
    ("Call", "method", "to cancel"): _NOTHING + "; or a reference goes by either method",
    ("Call", "method", "to free_encoder_input"): _NOTHING,
    ("Call", "request", "+1"): _NOTHING,
    ("EngineState", "requests", "swap"): _ORDER + "each state names its request",
    ("EngineState", "waiting", "swap"): "the order of those that wait is the scheduler's choice",
    ("EventSeen", "calls", "drop"): _NOTHING,
    ("EventSeen", "calls", "repeat"): "letting go twice is letting go",
    ("LoopBookState", "freeable", "swap"): "which of two entries let go in one step is the next to "
    "be evicted, and that the next one is evicted, is judged on the book alone",
    ("LoopBookState", "references", "swap"): _ORDER + "entries",
    ("LoopBookState", "references", "second swap"): _ORDER + "holders",
    ("PassSeen", "calls", "drop"): _NOTHING,
    ("PassSeen", "calls", "repeat"): "asking, taking or letting go twice changes nothing",
    ("PassSeen", "calls", "swap"): _ORDER + "calls for different requests, or hits",
    ("PassSeen", "notices", "drop"): "the item is encoded again in the pass, over the old tensor",
    ("PassSeen", "notices", "element to another"): "as one that is left out; an encoder-decoder "
    "item may be let go of more than once",
    ("PassSeen", "notices", "repeat"): "dropping twice is dropping",
    ("PassSeen", "scheduled", "swap"): "the batch may have any order where no row is read",
    ("Read", "slices", "swap"): "the merge joins all tensors; their rows are judged one by one",
    ("RequestState", "num_draft_tokens", "+1"): "drafts of a turn that ended may stay on a request "
    "that does not run: nobody schedules them",
    ("UpdateSeen", "calls", "drop"): _NOTHING + ", and another occurrence may hold the entry",
    ("UpdateSeen", "calls", "repeat"): "letting go twice is letting go",
    ("UpdateSeen", "calls", "swap"): _ORDER + "all of them let go",
    ("UpdateSeen", "outcomes", "swap"): _ORDER + "requests are updated apart",
    ("WorkerSeen", "contents", "swap"): _ORDER + "tensors by their hash",
    ("WorkerSeen", "forgotten", "drop"): "data of a preempted request may stay: V1 keeps it",
    ("WorkerSeen", "forgotten", "swap"): _ORDER + "requests",
    ("WorkerSeen", "received", "drop"): "data of an item that nobody encodes",
    ("WorkerSeen", "received", "swap"): _ORDER + "inputs",
    ("Trace", "ending", "to limit"): "why the driver stopped; a run at rest may stop there too",
    ("Trace", "ending", "to stopped"): "why the driver stopped; a run at rest may stop there too",
    ("Trace", "runner", "to V1"): "both runners read the same",
    ("Trace", "runner", "to V2"): "both runners read the same",
    ("Trace", "target", "to another"): "a name for people",
    ("Trace", "target", "to unknown"): "a name for people",
}
"""Changes that the monitor may let pass, with the reason why they say nothing else."""

ALL_WITHOUT_MEANING = {("Trace", "runner"), ("Trace", "target")}
"""Fields of which no change has a meaning."""

HOLDS_FIELDS = {"EngineState", "LoopBookState", "Read", "WorkerSeen | None"}
"""Types of fields that are judged field by field, and not as a whole."""


def recordings() -> Iterator[Trace]:
    for name, scenario in SCENARIOS.items():
        for runner in RUNNERS:
            yield recorded(name, runner, None)
            if name in WITH_TENSORS:
                yield recorded(name, runner, TensorSettings())
        scenario.validate()


def recorded(name: str, runner: Runner, tensors: TensorSettings | None) -> Trace:
    return record(ReferenceLoop(), SCENARIOS[name], runner, tensors=tensors).trace


def is_rejected(trace: Trace) -> bool:
    try:
        require_consistent(trace)
    except InputError:
        return True
    return bool(check_trace(trace))


@pytest.fixture(scope="module")
def judged() -> tuple[Counter[tuple[str, str, str]], Counter[tuple[str, str, str]]]:
    """How many changes of each kind were rejected, and how many passed."""
    rejected: Counter[tuple[str, str, str]] = Counter()
    passed: Counter[tuple[str, str, str]] = Counter()
    for trace in recordings():
        for mutation in mutations(trace, MOST):
            key = (mutation.owner, mutation.field, mutation.kind)
            (rejected if is_rejected(mutation.value) else passed)[key] += 1
    return rejected, passed


def test_recordings_are_clean():
    """Otherwise a changed trace may be rejected for what was wrong before."""
    for trace in recordings():
        assert not is_rejected(trace)
        assert trace.ending == "idle"


def test_change_that_has_a_meaning_is_rejected(judged):
    """Otherwise a target could show something else, and nobody would notice."""
    _, passed = judged
    assert not passed.keys() - WITHOUT_MEANING.keys()


def test_reasons_are_used(judged):
    """Otherwise the table excuses what the monitor notices by now."""
    _, passed = judged
    assert not WITHOUT_MEANING.keys() - passed.keys()


def test_each_field_is_judged(judged):
    """Otherwise a field could hold anything; also one that no recording uses."""
    rejected, _ = judged
    classes = [value for value in vars(seen).values() if is_dataclass(value)]
    recorded = {
        (owner.__name__, field.name)
        for owner in classes
        if owner.__module__ == seen.__name__
        for field in fields(owner)
        if field.type not in HOLDS_FIELDS
    }
    assert len(recorded) > 60
    noticed = {(owner, field) for owner, field, _ in rejected}
    assert noticed >= recorded - NOT_SEEN - ALL_WITHOUT_MEANING
    assert not noticed & ALL_WITHOUT_MEANING
