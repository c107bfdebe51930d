"""Realistic faults in a release's protocol code: what the record says is found is found again.

A sample of the recorded faults is put into the release anew, each in a fork, and asked on the draw
that the record names alone. The whole record is made at night.
"""

from __future__ import annotations

import ast
import json
from functools import cache
from random import Random

import pytest

from tests.recorders.record_protocol_faults import PER_KIND, SAME, recorded
from tests.support.protocol_fault_runs import SEED, LoopResult, result_of
from tests.support.protocol_faults import KINDS, PLACES, RELEASE, all_faults, sample
from tests.support.releases import ask, require_release

NUM_SAMPLED = 20

FAULTS = {entry["fault"]: entry for entry in recorded()["faults"]}
FOUND = {
    key: result.loop for key in FAULTS if (result := result_of(FAULTS[key])).loop.outcome == "found"
}
SAMPLED = tuple(sorted(Random(SEED).sample(sorted(FOUND), NUM_SAMPLED)))

OBSERVE = """
import json, sys
from dataclasses import asdict
from impl.vllm.launch.source import cache_folder, unpacked
from impl.vllm.runs.target import VllmLoop
from tests.support.protocol_fault_runs import Experiment
from tests.support.protocol_faults import all_faults

source = unpacked(cache_folder(), sys.argv[1])
wanted = json.load(sys.stdin)
faults = {fault.key: fault for fault in all_faults(source.package)}
experiment = Experiment(VllmLoop(source), sorted({draw for draw in wanted.values()}))
found = {key: asdict(experiment.ask_on(faults[key], draw)) for key, draw in wanted.items()}
print("RESULT" + json.dumps(found))
"""


@cache
def _found_again() -> dict[str, LoopResult]:
    require_release(RELEASE)
    given = json.dumps({key: FOUND[key].draw for key in SAMPLED})
    answers = ask(RELEASE, OBSERVE, given=given)
    return {key: LoopResult(**answer) for key, answer in answers.items()}


@pytest.mark.vllm
@pytest.mark.parametrize("key", SAMPLED)
def test_a_recorded_fault_is_found_again(key: str) -> None:
    """Wrong: the search no longer sees on a draw what it saw there of a fault."""
    before, after = FOUND[key], _found_again()[key]
    assert (after.outcome, after.claim, after.mechanism) == (
        "found",
        before.claim,
        before.mechanism,
    )


@pytest.mark.vllm
def test_the_record_holds_the_sample_of_all_faults() -> None:
    """Wrong: faults that were looked at were picked by hand, or are of another source."""
    faults = all_faults(require_release(RELEASE).package)
    assert [fault.key for fault in sample(faults, PER_KIND, SEED)] == list(FAULTS)


@pytest.mark.vllm
def test_faults_are_made_of_every_place_and_kind() -> None:
    """Wrong: a function was renamed and gets no faults any more, or a kind makes none."""
    faults = all_faults(require_release(RELEASE).package)
    assert {fault.place for fault in faults} == set(PLACES)
    assert {fault.kind for fault in faults} == KINDS.keys()
    named = {(place, function) for place in PLACES for function in place.functions}
    assert named == {(fault.place, fault.function) for fault in faults}


@pytest.mark.vllm
def test_making_faults_leaves_the_source_as_it_is() -> None:
    """Wrong: an edit changes the tree that the next fault is made of."""
    package = require_release(RELEASE).package
    faults = all_faults(package)
    roots = {id(fault.root): fault.root for fault in faults}.values()
    once = [ast.dump(root) for root in roots]
    again = {id(fault.root): fault.root for fault in all_faults(package)}.values()
    assert once == [ast.dump(root) for root in again]


def test_what_is_not_found_is_explained_or_counted() -> None:
    """Wrong: an excuse for a fault that is found, or that is not in the record."""
    alive = {key for key in FAULTS if FAULTS[key]["loop"]["outcome"] in ("same", "differs")}
    assert SAME.keys() <= alive
    assert all(SAME.values())
