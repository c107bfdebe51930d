"""A request that is refused an encoder input holds up nobody behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spec.monitor.progress.hidden_state import HiddenState
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.run_findings import LoopFinding
from spec.record.steps import Call, EngineState, PassSeen, RequestState


@dataclass(frozen=True)
class Conserving:
    """What one pass shows: ``violations`` are pairs of the refused request and a finding.

    ``premises`` counts the refused requests with a ready one behind them.
    """

    premises: int = 0
    violations: tuple[tuple[int, LoopFinding], ...] = ()


NOTHING = Conserving()
"""What a pass shows that refused nobody."""


def check_work_conserving(
    step: PassSeen, before: EngineState, hidden: HiddenState, config: EngineConfig
) -> Conserving:
    """Judge one pass.

    Args:
        step: the pass.
        before: the state in which it began: it has the order of the queues.
        hidden: of all steps before the pass.
        config: the engine's settings.
    """
    refusals = [
        call for call in step.calls if call.answer is False and call.method == "can_allocate"
    ]
    if not refusals:
        return NOTHING
    refused = {call.request: call for call in refusals}
    served = {entry.request for entry in step.scheduled}
    order = (*before.running, *before.waiting)
    states = {state.request: state for state in before.requests}
    rest = Rest(step, before, hidden, config)
    premises = 0
    # Of several refused requests, the last one before it stands for what holds a request up.
    violations: dict[int, tuple[int, LoopFinding]] = {}
    for position, request in enumerate(order):
        call = refused.get(request)
        if call is None or request in served or request in step.rejected:
            continue
        if request in step.preempted:
            continue  # It left the queue: what passes over those behind it is the preemption.
        if not _is_held_at(rest.when_tried(states[request]), call, step, hidden):
            continue
        behind = [other for other in order[position + 1 :] if is_ready(states[other], hidden)]
        premises += bool(behind)
        for other in behind:
            if other not in served and not rest.lacks_something(rest.when_tried(states[other])):
                finding = _finding(step, states[request], call, states[other], rest)
                violations[other] = (request, finding)
    return Conserving(premises, tuple(violations.values()))


def _is_held_at(state: RequestState, refusal: Call, step: PassSeen, hidden: HiddenState) -> bool:
    """Whether the first feature asked for was the one refused, and progress has reached it."""
    asked = next(
        call
        for call in step.calls
        if call.request == state.request
        and call.method in ("check_and_update_cache", "can_allocate")
    )
    feature = hidden.prompts.features(state.request)[refusal.feature]
    return asked.feature == refusal.feature and feature.offset <= hidden.start(state)


def is_ready(state: RequestState, hidden: HiddenState) -> bool:
    """Whether a pass that begins may run the request."""
    if state.status in ("waiting", "preempted"):
        # Engines hold back a request whose output from before its preemption is still to come.
        return not hidden.in_flight.of(state.request)
    if state.status != "running":
        return False
    return wanted_tokens(state) > 0 and not hidden.surely_ends(state)


def wanted_tokens(state: RequestState) -> int:
    """Tokens of a running request that are known, drafted or sampled, and not computed."""
    return (
        state.num_tokens
        + state.num_output_placeholders
        + state.num_draft_tokens
        - state.num_computed_tokens
    )


class Rest:
    """What a pass left over for a request that got nothing in it.

    Budgets and room only shrink within a pass, preemptions apart, so that whoever lacks something
    at its end may have lacked it when its turn came; the benefit of the doubt is the engine's.
    """

    def __init__(
        self, step: PassSeen, before: EngineState, hidden: HiddenState, config: EngineConfig
    ) -> None:
        self._step = step
        self._before = before
        self._hidden = hidden
        self._config = config
        used = sum(entry.num_scheduled_tokens for entry in step.scheduled)
        self.tokens = config.max_num_batched_tokens - used
        features = hidden.prompts.features
        encoded = sum(features(request)[index].num_rows for request, index in step.encoder_inputs)
        self.encoder_budget = config.encoder_compute_budget - encoded
        book = step.state.book
        self.room = (
            book.num_free_slots if book.num_freeable_slots is None else book.num_freeable_slots
        )

    def when_tried(self, state: RequestState) -> RequestState:
        """The request with the progress that it was left in the pass before its turn came.

        A running request may have taken its KV blocks, and with them its progress. One that runs
        itself loses them only afterwards, to those behind it.
        """
        if state.status == "running":
            return state
        for after in self._step.state.requests:
            if after.request == state.request:
                return replace(state, num_computed_tokens=after.num_computed_tokens)
        return state

    def lacks_something(self, state: RequestState) -> bool:
        """Whether the request, ready and without tokens, lacks anything that it needs to run."""
        return (
            state.request in self._step.rejected
            or self.lacks_tokens(state)
            or (state.status != "running" and self.lacks_sequence_slot())
            or (state.status != "running" and self._is_behind_one_without_tokens(state))
            or self._lacks_kv_blocks(state)
            or self.lacks_encoding(state)
        )

    def was_tried(self, request: int) -> bool:
        """Whether the pass asked anything for the request."""
        return any(call.request == request for call in self._step.calls)

    def lacks_tokens(self, state: RequestState) -> bool:
        """Whether what the pass left is too little for the request's smallest step."""
        most = self.tokens
        threshold = self._config.long_prefill_token_threshold
        if threshold:
            most = min(most, threshold)
        start = self._hidden.start(state)
        features = self._hidden.prompts.features(state.request)
        return most < smallest_step(state, start, features, self._config)

    def _is_behind_one_without_tokens(self, state: RequestState) -> bool:
        """Whether a waiting request before it lacked tokens, where engines stop admitting.

        Releases do so for a padded decode and for an aligned chunk. It is then that request, and
        not one that was refused an encoder input, which holds up those behind it.
        """
        served = {entry.request for entry in self._step.scheduled}
        refused = {call.request for call in self._step.calls if call.answer is False}
        states = {other.request: other for other in self._before.requests}
        waiting = self._before.waiting
        if state.request not in waiting:
            return False
        return any(
            other not in served and other not in refused and self.lacks_tokens(states[other])
            for other in waiting[: waiting.index(state.request)]
            if is_ready(states[other], self._hidden)
        )

    def lacks_sequence_slot(self) -> bool:
        """Whether no further request may run."""
        # Releases count a paused request too: it keeps its slot on the worker.
        paused = sum(state.status == "paused" for state in self._step.state.requests)
        return len(self._step.state.running) + paused >= self._config.max_num_seqs

    def _lacks_kv_blocks(self, state: RequestState) -> bool:
        step = self._step
        if step.preempted and (state.status != "running" or state.request in step.preempted):
            return True  # no waiting request is admitted in a pass that had to preempt
        queue = self._before.running if state.status == "running" else self._before.waiting
        return self.was_refused_slots(queue[: queue.index(state.request) + 1])

    def was_refused_slots(self, requests: Sequence[int]) -> bool:
        """Whether the last question for KV blocks of any of the requests was answered by no."""
        last = {
            call.request: call.answer
            for call in self._step.calls
            if call.method == "allocate_slots"
        }
        return any(last.get(request) is False for request in requests)

    def lacks_encoding(self, state: RequestState) -> bool:
        """Whether an item at the request's progress was refused, or would have been."""
        calls = [call for call in self._step.calls if call.request == state.request]
        if any(call.method == "can_allocate" and call.answer is False for call in calls):
            return True
        if any(call.method in ("can_allocate", "check_and_update_cache") for call in calls):
            return False
        start = self._hidden.start(state)
        for feature in self._hidden.prompts.features(state.request):
            if self._config.is_encoder_decoder:
                needed = start == 0
            else:
                needed = feature.offset <= start < feature.end and not self._is_in_book(feature)
            if needed:
                return feature.num_rows > min(self.encoder_budget, self.room)
        return False

    def _is_in_book(self, feature: Feature) -> bool:
        book = self._step.state.book
        return feature.identifier in book.freeable or any(
            identifier == feature.identifier for identifier, _ in book.references
        )


def smallest_step(
    state: RequestState, start: int, features: tuple[Feature, ...], config: EngineConfig
) -> int:
    """The fewest tokens with which the request can run from ``start``.

    It is one token, except that an engine may pad a decode that it admits to a sampled token and
    its drafts; that an item which is not chunked must fit whole; that a chunk of a prefill ends at
    a block boundary, or with the prefill, where there is an alignment; and that it does not end
    closer to the prefill's end than a shift above 1.
    """
    left = state.num_tokens - start
    if left <= 1:
        padded = state.status != "running" and config.num_speculative_tokens
        return 1 + config.num_speculative_tokens if padded else 1
    smallest = 1
    shift = config.scheduler_lookahead
    if shift > 1 and left - 1 < shift:
        smallest = left
    if 0 < config.block_alignment <= config.longest_chunk:
        to_boundary = config.block_alignment - start % config.block_alignment
        smallest = max(smallest, min(to_boundary, left))
    if config.whole_items:
        for feature in features:
            # An engine may also cut as far ahead of an item as the drafter reads.
            if start <= feature.offset <= start + shift:
                smallest = max(smallest, feature.end - start)
                break
    return smallest


def _finding(
    step: PassSeen, head: RequestState, call: Call, other: RequestState, rest: Rest
) -> LoopFinding:
    tried = "tried in vain" if rest.was_tried(other.request) else "not tried"
    return LoopFinding(
        claim="work-conserving",
        pass_index=step.index,
        request=other.request,
        feature=None,
        observed=(
            f"request {head.request} ({head.status}) is refused its feature {call.feature} and "
            f"gets no tokens; request {other.request} ({other.status}) behind it is {tried} and "
            f"gets none either, with {rest.tokens} tokens, {rest.encoder_budget} rows of encoder "
            f"budget and {rest.room} slots left"
        ),
        expected=f"request {other.request} runs in this pass: it lacks nothing",
        mechanism=(
            f"a {kind_of(head)} request that is refused an encoder input holds up a "
            f"{kind_of(other)} request behind it that is {tried}"
        ),
    )


def kind_of(state: RequestState) -> str:
    """How a mechanism names the request: a preempted one waits too."""
    return "running" if state.status == "running" else "waiting"
