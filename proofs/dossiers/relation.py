"""What became of a run in the relation, for people and as JSON."""

from __future__ import annotations

from typing import Any

from proofs.describe.visible import print_lines
from proofs.describe.words import counted
from proofs.drive.replay import Replayed
from spec.record.steps import Trace
from spec.relation.runs.outside import OutsideStep, outside_the_proof, why_not_covered


def print_relation(replayed: Replayed) -> None:
    """Print the steps of a run that lie outside the proof, or that none does."""
    if replayed.trace is None:
        return
    reason = why_not_covered(replayed.trace.scenario)
    if reason is not None:
        print_lines(f"{replayed.part}: the unbounded proofs say nothing of this run: {reason}")
        return
    outside = outside_the_proof(replayed.trace)
    if not outside:
        print_lines(
            f"{replayed.part}: every completed step lies in the relation that the proofs are about"
        )
        return
    print_lines(f"{replayed.part}: outside the proof: {counted(len(outside), 'difference')}")
    for one in outside:
        print_lines(f"  {one.describe()}")


def relation_to_json(trace: Trace) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "not_covered": why_not_covered(trace.scenario),
        "outside": [_to_json(one) for one in outside_the_proof(trace)],
    }


def _to_json(one: OutsideStep) -> dict[str, Any]:
    return {
        "step": one.step,
        "place": one.place,
        "request": one.request,
        "feature": one.feature,
        "transition": one.taken.transition,
        "told": dict(one.taken.told),
        "conjunct": one.conjunct,
        "text": one.describe(),
    }
