"""A process that runs many scenarios holds on to none of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from impl.target import Runner
from impl.targets.runs import ReferenceLoop
from proofs.drive.memory import Held, held_after
from spec.claims.witnesses import TWO_ITEMS
from spec.monitor.monitor import LoopMonitor
from spec.record.scenario import Scenario
from tests.support.releases import ask, require_release

OBSERVE = """
import json, sys
from impl.vllm.runs.target import VllmLoop
from impl.vllm.launch.source import cache_folder, unpacked
from proofs.drive.memory import held_after

target = VllmLoop(unpacked(cache_folder(), sys.argv[1]))
print("RESULT" + json.dumps([dict(held.objects) for held in held_after(target, [25, 50, 100])]))
"""


class Hoarder(ReferenceLoop):
    """Keeps what it ran, as a cache without a limit does."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[object] = []

    def missing(self, scenario: Scenario, runner: Runner) -> str | None:
        """Nothing is missing."""
        self.kept.append(LoopMonitor(scenario, runner))
        return None


def live(held: Held) -> Mapping[str, int]:
    return held.objects


def test_the_reference_and_the_monitor_leave_nothing_behind() -> None:
    """Else memory grows with the number of examples, and a long search dies of it."""
    first, second, third = held_after(ReferenceLoop(), [25, 50, 100])
    assert live(first) == live(second) == live(third)
    assert (third.num_objects - second.num_objects) / 50 < 1


def test_what_is_kept_is_seen() -> None:
    """Else the test above could not fail."""
    first, second = held_after(Hoarder(), [5, 10])
    # Each scenario runs on both runners.
    assert live(second)["monitors"] - live(first)["monitors"] >= 10
    assert live(second)["scenarios"] > live(first)["scenarios"]


def test_kept_traces_are_seen() -> None:
    """Else only monitors are counted, and not the runs themselves."""
    (before,) = held_after(ReferenceLoop(), [1])
    kept = list(ReferenceLoop().run(TWO_ITEMS, "V1"))
    (after,) = held_after(ReferenceLoop(), [1])
    assert live(after)["traces"] - live(before)["traces"] == len(kept)


@pytest.mark.vllm
def test_a_release_leaves_nothing_behind() -> None:
    """Else its schedulers, requests or our hooks on them stay, run after run."""
    require_release("0.33.0")
    first, second, third = ask("0.33.0", OBSERVE)
    assert first == second == third
