"""The random search finds each fault of the loop by itself, and shrinks it to what is known of it.

Deterministic: the same draws from the same seed, and a reduction without draws.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from impl.faults.switches import FAULTS, Fault
from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from proofs.describe.scenarios import describe_scenario
from proofs.run.judge import Judged, run_and_judge
from proofs.search.runs.draws import draw
from proofs.search.runs.reduce import reduce_scenario, size
from proofs.search.runs.results import LoopCheckSettings
from proofs.search.runs.search import find_again
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario

EXAMPLES = 500
"""Draws within which each claim of each fault must be found."""

_TRIES = 1500
_STARTS = 4
_LARGE = 100
"""Prompt tokens of a draw that is large."""

_SETTINGS = LoopCheckSettings(seed=3)

PUBLISHED = {
    "no-scheduler-shift": (1, 1, 9),
    "no-boundary-tolerance": (1, 2, 9),
    "boundary-never-encoded": (1, 1, 9),
    "masked-leading-gap": (1, 1, 9),
    "interior-miss-swallowed": (1, 1, 9),
    "deferred-free-margin": (1, 2, 9),
    "shifted-cut": (1, 2, 10),
    "align-after-cut": (1, 2, 11),
    "stalled-head-ends-pass": (3, 2, 16),
    "waiting-keeps-references": (3, 2, 16),
    "free-before-execution": (1, 1, 5),
    "dropped-at-first-occurrence": (1, 2, 8),
    "same-step-duplicate-unreferenced": (1, 2, 8),
    "stale-eviction-notice": (4, 4, 16),
    "own-size-free": (2, 2, 8),
    "encoder-decoder-credit": (3, 3, 12),
    "item-split-at-start": (2, 1, 9),
    "warm-item-split": (2, 2, 12),
}
"""Requests, items and prompt tokens of the scenario under which a fault became known, or of a
little more where the report leaves the others out that it needs."""


def _extent(scenario: Scenario) -> tuple[int, int, int]:
    """Requests, items and prompt tokens."""
    requests = scenario.requests
    items = sum(len(request.all_features()) for request in requests)
    tokens = sum(
        request.num_prompt_tokens + sum(turn.num_prompt_tokens for turn in request.continuations)
        for request in requests
    )
    return len(requests), items, tokens


def _bound(switch: Fault) -> tuple[int, ...]:
    """What is published, or twice the recorded scenario where the fault is of our own making."""
    assert switch.scenario is not None
    recorded = _extent(switch.scenario)
    return PUBLISHED.get(switch.name, tuple(2 * count for count in recorded))


def _findings(judged: Judged) -> list[LoopFinding]:
    return [*(f for found in judged.findings.values() for f in found), *judged.differences]


def _search(switch: Fault) -> dict[str, list[tuple[LoopFinding, Scenario]]]:
    """Findings of each claim of the fault, up to a few of each."""
    target = ReferenceLoop([switch.name])
    found: dict[str, list[tuple[LoopFinding, Scenario]]] = defaultdict(list)
    for number in range(EXAMPLES):
        drawn = draw(_SETTINGS, number)
        judged = run_and_judge(target, drawn.scenario, _runners(switch), None)
        for claim, finding in {f.claim: f for f in _findings(judged)}.items():
            if drawn.judges(claim):
                found[claim].append((finding, drawn.scenario))
        if all(len(found[claim]) >= _STARTS for claim in switch.breaks_in_loop):
            break
    return {claim: findings for claim, findings in found.items() if findings}


def _runners(switch: Fault) -> tuple[Runner, ...]:
    """Those that show it; one where both would."""
    if "runners-agree" in switch.breaks_in_loop:
        return RUNNERS
    return (switch.runner or "V1",)


@pytest.mark.parametrize(
    "switch", [f for f in FAULTS if f.breaks_in_loop], ids=lambda switch: switch.name
)
def test_the_search_finds_the_fault_and_makes_it_small(switch: Fault) -> None:
    """Wrong: a search that is blind to a fault or shows others, or a reducer that gives up."""
    found = _search(switch)
    assert set(switch.breaks_in_loop) <= set(found)
    assert set(found) <= {*switch.breaks_in_loop, *switch.may_also_break}
    target = ReferenceLoop([switch.name])
    # A large draw may have fewer things in it, and take far longer to make small.
    finding, start = min(
        found[switch.breaks_in_loop[0]],
        key=lambda each: (_extent(each[1])[2] > _LARGE, size(each[1])),
    )
    key = (finding.claim, finding.mechanism)

    def still_shows(scenario: Scenario) -> bool:
        return find_again(run_and_judge(target, scenario, _runners(switch), None), key) is not None

    smallest = reduce_scenario(start, still_shows, _TRIES)
    extents = zip(_extent(smallest), _bound(switch), strict=True)
    assert all(extent <= bound for extent, bound in extents), describe_scenario(smallest)


def test_published_scenarios_are_of_known_faults() -> None:
    """Wrong: a bound that was renamed away and binds nothing."""
    assert set(PUBLISHED) <= {f.name for f in FAULTS if f.breaks_in_loop}
