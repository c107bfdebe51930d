"""Violations for the tests of reports: of each switch that shows in the loop, and drawn ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from impl.faults.switches import FAULTS, fault
from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from proofs.drive.origin import Origin
from proofs.report.near.rerun import reference_rerun
from proofs.report.pages.account import Account, account_of
from proofs.run.record import record
from proofs.search.runs.draws import draw
from proofs.search.runs.results import LoopCheckSettings, LoopCounterexample
from spec.monitor.monitor import LoopMonitor, compare_runners
from spec.record.scenario import Scenario

SWITCHES = tuple(fault.name for fault in FAULTS if fault.scenario is not None)

_MAX_PASSES = 60


def violations(
    scenario: Scenario,
    faults: tuple[str, ...],
    runner: Runner = "V1",
    max_passes: int = _MAX_PASSES,
) -> list[LoopCounterexample]:
    """All violations that one run of the reference shows."""
    monitor = LoopMonitor(scenario, runner)
    target = ReferenceLoop(faults)
    recording = record(target, scenario, runner, max_passes=max_passes, monitor=monitor)
    return [LoopCounterexample(f, recording.trace, (runner,)) for f in recording.findings]


@cache
def of_switch(name: str) -> tuple[LoopCounterexample, ...]:
    """The violations that a switch's own scenario shows."""
    switch = fault(name)
    assert switch.scenario is not None
    if switch.breaks_in_loop == ("runners-agree",):
        target = ReferenceLoop((name,))
        first, second = (record(target, switch.scenario, runner).trace for runner in RUNNERS)
        return tuple(LoopCounterexample(f, first, RUNNERS) for f in compare_runners(first, second))
    return tuple(violations(switch.scenario, (name,), switch.runner or "V1"))


def drawn(number: int) -> Iterator[LoopCounterexample]:
    """Violations in drawn scenarios, each with a switch in turn."""
    settings = LoopCheckSettings(seed=6, large_every=0)
    for index in range(number):
        name = SWITCHES[index % len(SWITCHES)]
        yield from violations(draw(settings, index).scenario, (name,), fault(name).runner or "V1")


@cache
def account_of_switch(name: str, claim: str) -> Account:
    """What is told of a switch's violation of a claim."""
    example = next(
        counterexample
        for counterexample in of_switch(name)
        if counterexample.finding.claim == claim
    )
    origin = Origin(example.trace.target, faults=(name,), seed=0)
    return account_of(example, origin, reference_rerun(example, (name,)))
