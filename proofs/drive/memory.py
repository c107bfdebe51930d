"""What a process still holds after many runs: what a run leaves behind grows with their number."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from impl.target import RUNNERS, LoopTarget
from proofs.run.record import record
from proofs.search.runs.draws import draw
from proofs.search.runs.results import LoopCheckSettings
from spec.monitor.monitor import LoopMonitor
from spec.record.scenario import Scenario

KINDS: Mapping[str, tuple[str, ...]] = {
    "schedulers": ("Scheduler", "AsyncScheduler"),
    "requests": ("Request", "SchedulerRequest"),
    "books": ("EncoderCacheManager", "EncoderDecoderCacheManager"),
    "traces": ("Trace", "PassSeen", "UpdateSeen", "EventSeen"),
    "monitors": ("LoopMonitor", "History"),
    "scenarios": ("Scenario",),
    "KV settings": ("KVCacheConfig", "KVCacheGroupSpec"),
}
"""Objects that belong to one run, by the names of their classes."""

_PASSES = 300


@dataclass(frozen=True)
class Held:
    """What a process holds after so many scenarios.

    Attributes:
        num_scenarios: scenarios run so far, each on both runners with recorder and monitor.
        resident_bytes: memory of the process that is resident (bytes).
        objects: live objects of each of :data:`KINDS`.
        num_objects: all live objects that the collector knows of.
    """

    num_scenarios: int
    resident_bytes: int
    objects: Mapping[str, int]
    num_objects: int


def held_after(target: LoopTarget, counts: Sequence[int]) -> Iterator[Held]:
    """Run drawn scenarios one after the other, and look at the process after each of the counts.

    Args:
        counts: numbers of scenarios, ascending.
    """
    done = 0
    for count in counts:
        for number in range(done, count):
            _run(target, draw(LoopCheckSettings(), number).scenario)
        done = count
        yield _held(count)


def _run(target: LoopTarget, scenario: Scenario) -> None:
    for runner in RUNNERS:
        if target.missing(scenario, runner) is None:
            monitor = LoopMonitor(scenario, runner)
            record(target, scenario, runner, monitor=monitor, max_passes=_PASSES)


def _held(num_scenarios: int) -> Held:
    gc.collect()
    objects = gc.get_objects()
    names = Counter(type(thing).__name__ for thing in objects)
    kinds = {kind: sum(names[name] for name in classes) for kind, classes in KINDS.items()}
    return Held(num_scenarios, _resident_bytes(), kinds, len(objects))


def _resident_bytes() -> int:
    """Resident memory as Linux tells it; 0 elsewhere."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
