"""What of a run has to do with its contradiction: the step, the requests, and the steps to show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from spec.monitor.monitor import LoopMonitor
from spec.record.prompts import Prompts
from spec.record.run_findings import LoopFinding
from spec.record.steps import Step, Trace

MOST_STEPS = 64
"""A longer run is cut; so many steps are shown at most."""

MOST_REQUESTS = 12
"""Of more requests those are shown that have to do with the contradiction."""

_LAST_STEPS = 40
_FIRST_STEPS = 8
_TOUCHING_STEPS = 12


@dataclass(frozen=True)
class Focus:
    """What to show of a run.

    Attributes:
        step: index of the step in which the contradiction shows; ``None`` where none is to be
            marked.
        steps: indices of the steps to show, ascending.
        requests: the requests to show, ascending.
        hashes: the hashes in question.
    """

    step: int | None
    steps: tuple[int, ...]
    requests: tuple[int, ...]
    hashes: frozenset[str]


def place_of(step: Step) -> int:
    """The pass that a step is, updates, or comes before."""
    return step.before if step.kind == "event" else step.index


def focus(trace: Trace, finding: LoopFinding | None, mark_step: int | None = None) -> Focus:
    """What has to do with a contradiction.

    Args:
        trace: the run.
        finding: what it contradicts; ``None`` where a step alone is to be marked, or nothing.
        mark_step: index of the step to mark, where it is known already.
    """
    step = mark_step
    if step is None and finding is not None:
        step = step_of(trace, finding)
    last = len(trace.steps) - 1 if step is None else step
    if finding is not None and finding.loop is not None:
        end = finding.loop[1]
        last = max(last, *(i for i, later in enumerate(trace.steps) if place_of(later) <= end))
    hashes = _hashes(trace, finding, last)
    requests = _requests(trace, finding, hashes, last)
    return Focus(step, _steps(trace, finding, hashes, requests, last), requests, hashes)


def step_of(trace: Trace, finding: LoopFinding) -> int:
    """Index of the step in which a finding shows: where a monitor finds it.

    Where none does, since it takes two runs to see, it is the last step of the finding's pass.
    """
    wanted = replace(finding, shape="")
    alike = None
    monitor = LoopMonitor(trace.scenario, trace.runner)
    for index, step in enumerate(trace.steps):
        for found in monitor.observe(step):
            if found == wanted:
                return index
            if alike is None and (found.claim, found.mechanism) == (wanted.claim, wanted.mechanism):
                alike = index
    if alike is not None:
        return alike
    places = [i for i, step in enumerate(trace.steps) if place_of(step) <= finding.pass_index]
    passes = [i for i in places if trace.steps[i].kind == "pass"]
    return max(passes or places, default=0)


def _hashes(trace: Trace, finding: LoopFinding | None, last: int) -> frozenset[str]:
    """The hash of the feature concerned, else those that the finding's words name."""
    if finding is None:
        return frozenset()
    prompts = Prompts(trace.scenario)
    for step in trace.steps[: last + 1]:
        prompts.observe(step)
    named: set[str] = set()
    if finding.request is not None and finding.feature is not None:
        features = prompts.features(finding.request)
        if finding.feature < len(features):
            named.add(features[finding.feature].identifier)
    for request in range(len(trace.scenario.requests)):
        for feature in prompts.features(request):
            if repr(feature.identifier) in finding.observed or (
                feature.describe() in finding.observed
            ):
                named.add(feature.identifier)
    return frozenset(named)


def _requests(
    trace: Trace, finding: LoopFinding | None, hashes: frozenset[str], last: int
) -> tuple[int, ...]:
    """The request concerned, those that share a hash in question, then those that ran last."""
    total = len(trace.scenario.requests)
    if total <= MOST_REQUESTS:
        return tuple(range(total))
    chosen: dict[int, None] = {}
    if finding is not None and finding.request is not None:
        chosen[finding.request] = None
    for step in trace.steps[last : last + 1]:
        for name, holders in step.state.book.references:
            if name in hashes:
                chosen |= dict.fromkeys(holders)
    for index, request in enumerate(trace.scenario.requests):
        if any(feature.identifier in hashes for feature in request.all_features()):
            chosen[index] = None
    for step in reversed(trace.steps[: last + 1]):
        if len(chosen) >= MOST_REQUESTS:
            break
        chosen |= dict.fromkeys(_touched(step))
    return tuple(sorted(list(chosen)[:MOST_REQUESTS]))


def _touched(step: Step) -> list[int]:
    if step.kind == "pass":
        return [entry.request for entry in step.scheduled]
    if step.kind == "update":
        return [outcome.request for outcome in step.outcomes]
    return [step.request] if step.request >= 0 else []


def _steps(
    trace: Trace,
    finding: LoopFinding | None,
    hashes: frozenset[str],
    requests: tuple[int, ...],
    last: int,
) -> tuple[int, ...]:
    """All steps of a short run; of a long one its end, and before that what led there."""
    if last + 1 <= MOST_STEPS:
        return tuple(range(last + 1))
    chosen = set(range(last + 1 - _LAST_STEPS, last + 1))
    concerned = set(requests)
    if finding is not None and finding.request is not None:
        concerned = {finding.request}
    first = (i for i, step in enumerate(trace.steps) if concerned & set(_touched(step)))
    chosen |= set(_first(first, _FIRST_STEPS))
    touching = [i for i in range(last + 1) if _changes(trace, i, hashes)]
    half = _TOUCHING_STEPS // 2
    chosen |= {*touching[:half], *touching[-half:]}
    if finding is not None and finding.loop is not None:
        start = finding.loop[0]
        chosen |= set(_first((i for i, s in enumerate(trace.steps) if place_of(s) >= start), 2))
    return tuple(sorted(i for i in chosen if i <= last))


def _first(indices: Iterable[int], most: int) -> list[int]:
    found: list[int] = []
    for index in indices:
        if len(found) == most:
            break
        found.append(index)
    return found


def _changes(trace: Trace, index: int, hashes: frozenset[str]) -> bool:
    """Whether a step changes who holds a hash in question, or whether it is in the book."""
    if not hashes or not index:
        return False
    before = trace.steps[index - 1].state.book.references
    after = trace.steps[index].state.book.references
    if before == after:
        return False
    kept, now = dict(before), dict(after)
    return any(kept.get(name) != now.get(name) for name in hashes)
