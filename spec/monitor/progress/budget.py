"""A pass uses what it has: who could run got its tokens, or something that it needs is used up.

Two things are judged: a request that could run and got no tokens, and a chunk that is shorter than
what the pass had left for it. What a victim of the same pass was to run comes back with it, so that
those whose turn comes later have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spec.claims.predicates import pass_uses_budget
from spec.monitor.progress.conserving import Rest, is_ready, kind_of, wanted_tokens
from spec.monitor.progress.hidden_state import HiddenState
from spec.monitor.progress.least_chunk import Wish, least_chunk
from spec.record.config import EngineConfig
from spec.record.run_findings import LoopFinding
from spec.record.steps import EngineState, PassSeen, RequestState, ScheduledRequest

CLAIM = "pass-uses-budget"


@dataclass(frozen=True)
class UsesBudget:
    """What one pass shows; ``premises`` counts the ready requests of a pass with tokens left."""

    premises: int = 0
    violations: tuple[LoopFinding, ...] = ()


ALL_USED = UsesBudget()
"""What a pass shows that has no token left."""


def check_uses_budget(
    step: PassSeen, before: EngineState, hidden: HiddenState, config: EngineConfig
) -> UsesBudget:
    """Judge one pass.

    Args:
        step: the pass.
        before: the state in which it began.
        hidden: what all steps before the pass left behind.
        config: the engine's settings.
    """
    rest = Rest(step, before, hidden, config)
    if config.gather_lookahead > config.scheduler_lookahead:
        # A drafter that is a model of its own may take a slot of the budget for each request.
        rest.tokens -= len(step.scheduled)
    if rest.tokens <= 0:
        return ALL_USED
    judge = _Judge(step, before, hidden, config, rest)
    entries = {entry.request: entry for entry in step.scheduled}
    premises = 0
    violations = []
    for state in before.requests:
        entry = entries.get(state.request)
        if entry is None and not is_ready(state, hidden):
            continue
        if state.request in step.preempted or state.request in step.rejected:
            continue
        premises += 1
        finding = judge.without_tokens(state) if entry is None else judge.served(state, entry)
        if finding is not None:
            violations.append(finding)
    return UsesBudget(premises, tuple(violations))


class _Judge:
    """Judges the requests of one pass."""

    def __init__(
        self,
        step: PassSeen,
        before: EngineState,
        hidden: HiddenState,
        config: EngineConfig,
        rest: Rest,
    ) -> None:
        self._step = step
        self._before = before
        self._hidden = hidden
        self._config = config
        self._rest = rest
        self._served = {entry.request for entry in step.scheduled}

    def served(self, state: RequestState, entry: ScheduledRequest) -> LoopFinding | None:
        """Judge a chunk."""
        start, num_tokens = entry.num_computed_tokens, entry.num_scheduled_tokens
        wanted = entry.prefill_len - start if entry.started else wanted_tokens(state)
        if num_tokens >= wanted:
            return None
        wish = self._wish(state, start, wanted)
        tokens = self._rest.tokens + num_tokens - self._returned_after(state)
        least = least_chunk(wish, tokens, self._config)
        if pass_uses_budget(num_tokens, least, False):
            return None
        return self._finding(
            state,
            f"runs {num_tokens} of {wanted} tokens",
            f"at least {least} tokens: nothing ends its chunk before",
            f"a {kind_of(state)} request gets fewer tokens than there are for it",
        )

    def without_tokens(self, state: RequestState) -> LoopFinding | None:
        """Judge a ready request that got none."""
        state = self._rest.when_tried(state)
        start = self._hidden.start(state)
        wanted = wanted_tokens(state) if state.status == "running" else state.num_tokens - start
        wish = self._wish(state, start, wanted)
        tokens = self._rest.tokens - self._returned_after(state)
        least = least_chunk(wish, tokens, self._config)
        if pass_uses_budget(0, least, least > 0 and self._lacks(state)):
            return None
        tried = "tried in vain" if self._rest.was_tried(state.request) else "not tried"
        return self._finding(
            state,
            f"is {tried} and gets no tokens",
            f"at least {least} tokens: it lacks nothing",
            f"a {kind_of(state)} request that is {tried} gets no tokens and lacks nothing",
        )

    def _wish(self, state: RequestState, start: int, wanted: int) -> Wish:
        features = self._hidden.prompts.features(state.request)
        refused = [
            features[call.feature].offset
            for call in self._step.calls
            if call.request == state.request
            and call.method == "can_allocate"
            and call.answer is False
        ]
        num_tokens = state.num_tokens
        return Wish(start, wanted, num_tokens, state.status == "running", features, refused)

    def _lacks(self, state: RequestState) -> bool:
        """Whether anything but tokens is used up that the request needs."""
        rest = self._rest
        if state.status != "running":
            if rest.lacks_sequence_slot() or self._admissions_ended(state):
                return True
        elif self._lacks_kv_blocks(state):
            return True
        return rest.lacks_encoding(state)

    def _lacks_kv_blocks(self, state: RequestState) -> bool:
        """Whether it or a running request before it got no KV blocks and had nobody to preempt."""
        running = self._before.running
        if state.request not in running:
            return True  # The trace contradicts itself, which counts-agree says.
        return self._rest.was_refused_slots(running[: running.index(state.request) + 1])

    def _admissions_ended(self, state: RequestState) -> bool:
        """Whether one that goes before it ended the admissions of the pass.

        Engines end them when they had to preempt, for want of KV blocks, and where a decode or an
        aligned chunk lacks tokens. A refused item should hold up nobody: that is for
        work-conserving. By priority, a release looks at two queues in turn, so that any other
        waiting request may go before it.
        """
        if self._step.preempted:
            return True
        waiting = self._before.waiting
        if state.request not in waiting:
            return True
        if self._config.policy == "fcfs":
            waiting = waiting[: waiting.index(state.request) + 1]
        if self._rest.was_refused_slots(waiting):
            return True
        states = {other.request: other for other in self._before.requests}
        return any(
            self._was_refused(other) or self._rest.lacks_tokens(states[other])
            for other in waiting
            if other != state.request
            and other not in self._served
            and is_ready(states[other], self._hidden)
        )

    def _was_refused(self, request: int) -> bool:
        """Whether it was refused an item, or refused for good."""
        if request in self._step.rejected:
            return True
        return any(
            not call.answer
            for call in self._step.calls
            if call.request == request
            and (call.method == "can_allocate" or call.answer is None)
            and call.method in ("can_allocate", "check_and_update_cache")
        )

    def _returned_after(self, state: RequestState) -> int:
        """Tokens of victims that came back in the pass after the request's turn, or may have."""
        step = self._step
        if not step.preempted:
            return 0
        turn = self._turn(state.request)
        progress = {other.request: other.num_computed_tokens for other in self._before.requests}
        return sum(
            granted - progress[victim]
            for victim, granted, freed_at in self._victims()
            if freed_at > turn
        )

    def _victims(self) -> Iterator[tuple[int, int, int]]:
        """Each victim that was to run, how far, and when it was preempted: as a place in calls."""
        calls = self._step.calls
        for victim in self._step.preempted:
            granted = freed_at = -1
            for place, call in enumerate(calls):
                if call.request == victim and call.method == "allocate_slots" and call.answer:
                    granted = call.budget
                elif call.request == victim and call.method == "free":
                    freed_at = place
            if granted >= 0:
                # Where nobody says when, it may have been at the end.
                yield victim, granted, len(calls) if freed_at < 0 else freed_at

    def _turn(self, request: int) -> int:
        """When the request's turn came: its first call, or after the last of those before it."""
        own = [
            place
            for place, call in enumerate(self._step.calls)
            if call.request == request and call.method != "free"
        ]
        if own:
            return own[0]
        running = self._before.running
        if request not in running:
            return len(self._step.calls)
        earlier = running[: running.index(request)]
        return max(
            (
                place
                for place, call in enumerate(self._step.calls)
                if call.request in earlier and call.method != "free"
            ),
            default=-1,
        )

    def _finding(
        self, state: RequestState, observed: str, expected: str, mechanism: str
    ) -> LoopFinding:
        rest = self._rest
        return LoopFinding(
            claim=CLAIM,
            pass_index=self._step.index,
            request=state.request,
            feature=None,
            observed=(
                f"request {state.request} ({state.status}) {observed}, with {rest.tokens} tokens, "
                f"{rest.encoder_budget} rows of encoder budget and {rest.room} slots left"
            ),
            expected=f"request {state.request} gets {expected}",
            mechanism=mechanism,
        )
