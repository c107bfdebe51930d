"""Progress: a run neither stands still nor turns in a circle, and holds up nobody needlessly.

A state is all that ``schedule()`` reads. It is compared only over stretches in which nothing came
from outside and no request got further, so that a run that makes progress costs a few comparisons
of integers per pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from spec.monitor.progress.budget import check_uses_budget
from spec.monitor.progress.causes import describe_stall, describe_thrash
from spec.monitor.progress.conserving import NOTHING, check_work_conserving
from spec.monitor.progress.hidden_state import ACTIVE, HiddenState, has_active, state_key
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario
from spec.record.steps import (
    Ending,
    EngineState,
    EventSeen,
    LoopBookState,
    PassSeen,
    Step,
    UpdateSeen,
)


class ProgressMonitor:
    """Check ``no-stall``, ``no-thrash``, ``work-conserving`` and ``pass-uses-budget`` by step.

    A finding is not repeated while the run goes on standing still or turning in the same circle,
    nor for the same two requests, nor for a request that loses tokens in the same way again.

    Args:
        scenario: what was chosen from outside.

    Attributes:
        premises: how often the premise of each claim happened.
        settled: whether the run was seen to stand still or to turn in a circle, so that nothing
            new will come of it.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._last_event = scenario.last_event
        self._hidden = HiddenState(scenario)
        book = LoopBookState((), (), scenario.config.encoder_cache_size, None)
        self._state = EngineState((), (), (), book)
        self._marks = [0] * len(scenario.requests)
        self._moved = True  # an event came, or a mark grew, since the last pass began
        self._round: PassSeen | None = None
        # The start of the running round, its key built only when there is need to compare it.
        self._start: tuple[EngineState, Hashable] = (self._state, self._hidden.rest())
        self._start_key: Hashable = None
        self._may_stall = False
        # Since an event came or a mark grew: states in which passes began, and those passes.
        self._left: dict[Hashable, int] = {}
        self._passes: list[PassSeen] = []
        self._reported: set[str] = set()
        self._held_up: set[tuple[int, int]] = set()
        self._short: set[tuple[int | None, str]] = set()
        self._refused: set[int | None] = set()
        self.premises: Counter[str] = Counter()
        self.settled = False

    def observe(self, step: Step) -> tuple[LoopFinding, ...]:
        """Take the next step and return what it shows to be wrong."""
        if step.kind == "pass":
            return self._observe_pass(step)
        if step.kind == "update":
            return self._observe_update(step)
        return self._observe_event(step)

    def finish(self, ending: Ending) -> tuple[LoopFinding, ...]:
        """Check that a run that came to rest left nobody behind.

        The last round is not judged otherwise: its updates may be missing.
        """
        last = self._round
        if ending != "idle" or last is None or "no-stall" in self._reported:
            return ()
        active = [state.request for state in self._state.requests if state.status in ACTIVE]
        if not active:
            return ()
        names = " and ".join(f"request {request}" for request in active)
        return (
            LoopFinding(
                claim="no-stall",
                pass_index=last.index,
                request=active[0],
                feature=None,
                observed=f"the run came to rest while {names} had not ended",
                expected="passes go on until every request has ended or is paused for input",
                mechanism="the run comes to rest while a request has not ended",
            ),
        )

    def _observe_event(self, step: EventSeen) -> tuple[LoopFinding, ...]:
        self._hidden.observe_event(step)
        self._moved = True
        self._may_stall = False
        self._state = step.state
        return ()

    def _observe_update(self, step: UpdateSeen) -> tuple[LoopFinding, ...]:
        self._hidden.observe_update(step)
        self._state = step.state
        for outcome in step.outcomes:
            # A failed load is the world's doing: what it takes back may come again.
            if outcome.num_emitted or outcome.rewound is not None:
                self._moved = True
        if step.error is not None:
            self._may_stall = False
        last = self._round
        if self._may_stall and last is not None and step.index == last.index:
            return self._check_stall(last)
        return ()

    def _observe_pass(self, step: PassSeen) -> tuple[LoopFinding, ...]:
        findings = self._end_round()
        before = self._state
        if step.error is None:
            findings += self._check_work_conserving(step, before)
            findings += self._check_uses_budget(step, before, findings)
        self._refused.update(step.rejected)
        self._hidden.observe_pass(step, before)
        self._round = step
        self._passes.append(step)
        self._state = step.state
        self._may_stall = False
        if step.error is None and self._hidden.only_in_flight(step.index):
            # A failed load reported by this very pass's update concerns nobody if nobody ran.
            pending = self._last_event > step.index
            if not pending and (step.scheduled or has_active(before.requests)):
                self.premises["no-stall"] += 1
                self._may_stall = not step.scheduled
        return findings

    def _end_round(self) -> tuple[LoopFinding, ...]:
        """Judge the round that ends here, and remember the state in which the next one begins."""
        if self._marks_grew():
            self._moved = True
        last, start_key = self._round, self._start_key
        start, self._start = self._start, (self._state, self._hidden.rest())
        if self._moved or last is None:
            self._moved = False
            self._left.clear()
            self._passes.clear()
            self._reported.clear()
            self._start_key = None
            return ()
        if start_key is None:
            start_key = state_key(*start)
            self._left[start_key] = last.index
        self._start_key = key = state_key(*self._start)
        if key == start_key and not last.scheduled:
            # Never left: the run waits, or it stands still.
            self._passes.pop()
            return self._stall(last) if self._may_stall else ()
        self.premises["no-thrash"] += 1
        first = self._left.setdefault(key, last.index + 1)
        if first > last.index:
            return ()
        if "no-thrash" in self._reported:
            self._passes.clear()
            return ()
        self._reported.add("no-thrash")
        self.settled = True
        loop = [step for step in self._passes if step.index >= first]
        return (describe_thrash(loop, self._state),)

    def _marks_grew(self) -> bool:
        grew = False
        marks = self._marks
        for state in self._state.requests:
            mark = state.num_computed_tokens - state.num_output_placeholders
            if mark > marks[state.request]:
                marks[state.request] = mark
                grew = True
        return grew

    def _check_stall(self, step: PassSeen) -> tuple[LoopFinding, ...]:
        if self._start_key is None:
            self._start_key = state_key(*self._start)
            self._left[self._start_key] = step.index
        if state_key(self._state, self._hidden.rest()) != self._start_key:
            return ()
        return self._stall(step)

    def _stall(self, step: PassSeen) -> tuple[LoopFinding, ...]:
        if "no-stall" in self._reported:
            return ()
        self._reported.add("no-stall")
        self.settled = True
        return (describe_stall(step, self._state, self._hidden, self._scenario.config),)

    def _check_work_conserving(
        self, step: PassSeen, before: EngineState
    ) -> tuple[LoopFinding, ...]:
        found = check_work_conserving(step, before, self._hidden, self._scenario.config)
        if found is NOTHING:
            return ()
        self.premises["work-conserving"] += found.premises
        findings = []
        for head, finding in found.violations:
            pair = (head, finding.request if finding.request is not None else -1)
            if pair not in self._held_up:
                self._held_up.add(pair)
                findings.append(finding)
        return tuple(findings)

    def _check_uses_budget(
        self, step: PassSeen, before: EngineState, held_up: tuple[LoopFinding, ...]
    ) -> tuple[LoopFinding, ...]:
        """Judge what the pass gave to whom, apart from those that a refused request holds up."""
        seen = check_uses_budget(step, before, self._hidden, self._scenario.config)
        self.premises["pass-uses-budget"] += seen.premises
        # A request that was refused for good waits for the update that ends it.
        named = {finding.request for finding in held_up} | self._refused
        findings = []
        for finding in seen.violations:
            key = (finding.request, finding.mechanism)
            if finding.request not in named and key not in self._short:
                self._short.add(key)
                findings.append(finding)
        return tuple(findings)
