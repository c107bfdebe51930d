"""Whether a request that was refused an encoder input holds up somebody behind it.

As :mod:`spec.monitor.progress.conserving` judges traces: budgets and room only shrink within a
pass, so that whoever lacks something at its end may have lacked it when its turn came.
"""

from __future__ import annotations

from spec.model.layout import Layout
from spec.model.state import LIVE, PREEMPTED, RUNNING, WAITING, PassRecord, State
from spec.monitor.progress.conserving import smallest_step
from spec.record.steps import RequestState


def holds_up(layout: Layout, before: State, record: PassRecord, after: State) -> tuple[bool, bool]:
    """Whether a refused request had a ready one behind it, and whether that one lacked nothing.

    Args:
        layout: what never changes.
        before: the state in which the pass began: it has the order of the queues.
        record: what the pass did.
        after: the state that it left.
    """
    served = {scheduled.request for scheduled in record.scheduled}
    heads = [
        request
        for request, first, refused, _ in record.tries
        if refused >= 0
        and request not in served
        and first == refused
        and layout.offset[refused] <= _start(layout, before, request)
    ]
    if not heads:
        return False, False
    order = (*before.running, *before.waiting)
    rest = _Rest(layout, before, record, after, served)
    premise = violated = False
    for head in heads:
        for other in order[order.index(head) + 1 :]:
            if _is_ready(layout, before, other):
                premise = True
                if other not in served and not rest.lacks_something(other):
                    violated = True
    return premise, violated


def _start(layout: Layout, before: State, request: int) -> int:
    """Progress from which the pass would run a request (tokens)."""
    status, computed, _, _, known_tokens, _, starts, _ = before.requests[request]
    if status == RUNNING or computed:
        return computed
    hits = layout.hits[request]
    return min(hits[starts], known_tokens - 1) if starts < len(hits) else 0


def _is_ready(layout: Layout, before: State, request: int) -> bool:
    status, computed, placeholders, drafts, known_tokens, _, _, _ = before.requests[request]
    in_flight = [entry for batch in before.in_flight for entry in batch if entry.request == request]
    if status in (WAITING, PREEMPTED):
        return not in_flight
    if known_tokens + placeholders + drafts <= computed:
        return False
    sampling = sum(entry.samples for entry in in_flight if entry.standing == LIVE)
    ends = placeholders > 0 and known_tokens + max(1, sampling) >= layout.limit[request]
    return not ends


class _Rest:
    """What a pass left over for a request that got nothing in it."""

    def __init__(
        self,
        layout: Layout,
        before: State,
        record: PassRecord,
        after: State,
        served: set[int],
    ) -> None:
        config = layout.config
        self._layout = layout
        self._before = before
        self._record = record
        self._after = after
        self._served = served
        self._tokens = config.max_num_batched_tokens - sum(
            scheduled.num_tokens for scheduled in record.scheduled
        )
        encoded = sum(layout.rows[occurrence] for occurrence in record.inputs)
        self._encoder_budget = config.encoder_compute_budget - encoded
        self._tries = {tried.request: tried for tried in record.tries}

    def lacks_something(self, request: int) -> bool:
        """Whether a ready request without tokens lacks anything that it needs to run."""
        runs = self._before.requests[request].status == RUNNING
        return (
            self._lacks_tokens(request)
            or (not runs and len(self._after.running) >= self._layout.config.max_num_seqs)
            or (not runs and self._is_behind_one_without_tokens(request))
            or self._lacks_kv_blocks(request, runs)
            or self._lacks_encoding(request)
        )

    def _lacks_tokens(self, request: int) -> bool:
        config = self._layout.config
        most = self._tokens
        if config.long_prefill_token_threshold:
            most = min(most, config.long_prefill_token_threshold)
        status, computed, placeholders, drafts, known_tokens, blocks, _, _ = self._before.requests[
            request
        ]
        state = RequestState(
            request,
            "running" if status == RUNNING else "waiting",
            computed,
            placeholders,
            drafts,
            known_tokens,
            blocks,
        )
        start = _start(self._layout, self._before, request)
        return most < smallest_step(
            state, start, self._layout.features[request], self._layout.config
        )

    def _is_behind_one_without_tokens(self, request: int) -> bool:
        """Whether a waiting request before it lacked tokens, where engines stop admitting."""
        waiting = self._before.waiting
        return any(
            other not in self._served and not self._was_refused(other) and self._lacks_tokens(other)
            for other in waiting[: waiting.index(request)]
            if _is_ready(self._layout, self._before, other)
        )

    def _was_refused(self, request: int) -> bool:
        tried = self._tries.get(request)
        return tried is not None and (tried.refused >= 0 or tried.got_blocks == 0)

    def _lacks_kv_blocks(self, request: int, runs: bool) -> bool:
        record = self._record
        if record.preempted and (not runs or request in record.preempted):
            return True
        queue = self._before.running if runs else self._before.waiting
        return any(
            self._tries[other].got_blocks == 0
            for other in queue[: queue.index(request) + 1]
            if other in self._tries
        )

    def _lacks_encoding(self, request: int) -> bool:
        layout = self._layout
        tried = self._tries.get(request)
        if tried is not None and tried.refused >= 0:
            return True
        if tried is not None and tried.first_asked >= 0:
            return False
        start = _start(layout, self._before, request)
        for occurrence in range(layout.first[request], layout.first[request + 1]):
            in_book = self._after.entries >> layout.hash_of[occurrence] & 1
            if layout.offset[occurrence] <= start < layout.end[occurrence] and not in_book:
                room = min(self._encoder_budget, self._after.freeable_slots)
                return layout.rows[occurrence] > room
        return False
