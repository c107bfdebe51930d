"""What a monitor must remember of a run to judge its next step: all of it from raw observations.

The terms are those of the claims. A request's *drafts in flight* are its draft tokens in passes
since it last started that are not yet updated. An occurrence is *taken* when the request hit it,
allocated it, or met it as a duplicate, since it last started, was rewound, or the cache was reset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from spec.history.layout import FeatureLayout, RequestLayout
from spec.record.feature import Feature
from spec.record.prompts import Prompts
from spec.record.scenario import Scenario
from spec.record.steps import Call, Encoding, EngineState, PassSeen, RequestState, Step, UpdateSeen

Asked: TypeAlias = Literal["hit", "allocated", "duplicate", "refused"]
"""What became of a feature that the scheduler asked the book for in a pass."""

IDLE = ("waiting", "preempted", "paused")
"""Statuses of requests that do not run and have not ended."""


class RequestHistory:
    """One request.

    Attributes:
        layout: its features so far.
        state: as last reported; ``None`` before it arrived.
        status: its status as last reported; empty before it arrived.
        taken: its taken occurrences that it may still need, by feature, and how each was taken.
        in_flight: drafts of each pass that is not yet updated (tokens).
        payload: features whose raw data is on the worker.
    """

    __slots__ = ("in_flight", "layout", "payload", "state", "status", "taken")

    def __init__(self, layout: RequestLayout) -> None:
        self.layout = layout
        self.state: RequestState | None = None
        self.status = ""
        self.taken: dict[int, Asked] = {}
        self.in_flight: dict[int, int] = {}
        self.payload: set[int] = set()

    @property
    def lowest_progress(self) -> int:
        """The position that progress can fall back to when all drafts in flight are rejected."""
        if self.state is None:
            return 0
        if not self.in_flight:
            return self.state.num_computed_tokens
        return self.state.num_computed_tokens - sum(self.in_flight.values())


class History:
    """The run so far.

    Attributes:
        config: the engine's settings.
        requests: each request of the scenario.
        references: the book's entries with their holders, as last reported.
        previous_references: the same, one step before.
        book_calls: calls of the last step to the book; most steps only ask for KV blocks.
        book_stays: whether the last step left the book alone: nobody called it, and what it
            reports is the very object of the step before.
        statuses_stay: whether every request kept its status in the last step.
        num_finished: requests that finished in the last step.
        num_idle: requests that do not run and have not ended.
        entry_rows: rows of each entry, by the feature for which it was allocated.
        items_held: of the encoder-decoder book, rows of the items allocated and not let go.
        previous_items: those items, one step before.
        encodings: runs of the encoder, with the number of cache resets before each.
        resets: cache resets so far.
        asked: what the last pass asked for: by request and feature.
        allocated: hashes that each request allocated in the last pass.
        encoded: numbers of the last pass's runs of the encoder.
        contents: tensors on the worker after the last pass: the encoding of each hash.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.config = scenario.config
        self.content_is_hashed = scenario.content_is_hashed
        self._scenario = scenario
        self._prompts = Prompts(scenario)
        self.requests = [
            RequestHistory(RequestLayout(self._layouts(index, request.features, 0)))
            for index, request in enumerate(scenario.requests)
        ]
        self.references: dict[str, tuple[int, ...]] = {}
        self.previous_references: dict[str, tuple[int, ...]] = {}
        self.book_calls: list[Call] = []
        self.book_stays = False
        self.statuses_stay = True
        self.num_finished = 0
        self.num_idle = 0
        self.entry_rows: dict[str, int] = {}
        self.items_held: dict[tuple[int, int], int] = {}
        self.previous_items: frozenset[tuple[int, int]] = frozenset()
        self.encodings: dict[int, tuple[Encoding, int]] = {}
        self.encoded: tuple[int, ...] = ()
        self.resets = 0
        self.asked: dict[tuple[int, int], Asked] = {}
        self.allocated: dict[int, set[str]] = {}
        self._batches: dict[int, list[int]] = {}
        self.contents: dict[str, int] = {}
        self._state: EngineState | None = None
        self._previous_state: EngineState | None = None
        self._seen_contents: object = None

    def _layouts(
        self, request: int, features: tuple[Feature, ...], first: int
    ) -> list[FeatureLayout]:
        content = self._scenario.requests[request].content
        return [
            FeatureLayout(index, feature, content(index))
            for index, feature in enumerate(features, start=first)
        ]

    def feature(self, request: int, feature: int) -> FeatureLayout:
        """A feature of a request."""
        return self.requests[request].layout.features[feature]

    def content_of(self, encoding: Encoding) -> str:
        """The content from which the encoder made a tensor."""
        return self._scenario.requests[encoding.request].content(encoding.feature)

    def observe(self, step: Step) -> None:
        """Take a step into account; what the monitors ask for is then the state after it."""
        self.book_calls = [call for call in step.calls if call.method != "allocate_slots"]
        self.previous_references = self.references
        if self.items_held or self.previous_items:
            self.previous_items = frozenset(self.items_held)
        if step.kind == "pass":
            self._observe_pass(step)
        else:
            if step.continued:
                self._prompts.observe(step)
                for request, _ in step.continued:
                    self._continue(request)
            for call in self.book_calls:
                self._replay(call)
            if step.kind == "update":
                self._observe_update(step)
            elif step.event == "reset":
                self.resets += 1
                for history in self.requests:
                    history.taken.clear()
        self._note_state(step.state)
        if step.kind == "pass" and (self.asked or self.allocated):
            self._note_taken(step)

    def _continue(self, request: int) -> None:
        layout = self.requests[request].layout
        features = self._prompts.features(request)
        num_features = len(layout.features)
        layout.extend(self._layouts(request, features[num_features:], num_features))

    def _replay(self, call: Call) -> None:
        method = call.method
        if method == "allocate":
            feature = self.feature(call.request, call.feature)
            if self.config.is_encoder_decoder:
                self.items_held[call.request, call.feature] = feature.num_rows
            else:
                self.entry_rows[feature.identifier] = feature.num_rows
        elif method == "reset":
            self.items_held.clear()
            self.entry_rows.clear()
        elif self.items_held:
            if method in ("free_encoder_input", "cancel"):
                self.items_held.pop((call.request, call.feature), None)
            elif method == "free":
                for key in [key for key in self.items_held if key[0] == call.request]:
                    del self.items_held[key]

    def _observe_pass(self, step: PassSeen) -> None:
        self.asked = {}
        self.allocated = {}
        batch = []
        requests = self.requests
        for scheduled in step.scheduled:
            if scheduled.started:
                history = requests[scheduled.request]
                history.in_flight.clear()
                history.taken.clear()
            if scheduled.num_draft_tokens:
                request = scheduled.request
                requests[request].in_flight[step.index] = scheduled.num_draft_tokens
                batch.append(request)
        if batch:
            self._batches[step.index] = batch
        for call in self.book_calls:
            self._replay(call)
            self._note_asked(call, step)
        if step.worker is not None:
            self._observe_worker(step)

    def _note_asked(self, call: Call, step: PassSeen) -> None:
        key = (call.request, call.feature)
        if call.method == "check_and_update_cache":
            if call.answer:
                self.asked[key] = "hit"
        elif call.method == "can_allocate":
            if call.answer is False:
                self.asked.setdefault(key, "refused")
        elif call.method == "allocate":
            self.asked[key] = "allocated"
            identifier = self.feature(*key).identifier
            self.allocated.setdefault(call.request, set()).add(identifier)
        elif call.method == "cancel":
            self.asked.pop(key, None)
        elif call.method == "free" and call.request in step.preempted:
            for taken in [taken for taken in self.asked if taken[0] == call.request]:
                del self.asked[taken]
            self.requests[call.request].taken.clear()

    def _observe_worker(self, step: PassSeen) -> None:
        worker = step.worker
        assert worker is not None
        if worker.contents is not self._seen_contents:
            self._seen_contents = worker.contents
            self.contents = dict(worker.contents)
        for request in worker.forgotten:
            self.requests[request].payload.clear()
        for request, feature in worker.received:
            self.requests[request].payload.add(feature)
        if worker.encoded or self.encoded:
            self.encoded = tuple([encoding.number for encoding in worker.encoded])
            for encoding in worker.encoded:
                self.encodings[encoding.number] = (encoding, self.resets)
        if len(self.encodings) > 64 + 2 * len(worker.contents):
            held = {number for _, number in worker.contents}
            self.encodings = {n: seen for n, seen in self.encodings.items() if n in held}

    def _observe_update(self, step: UpdateSeen) -> None:
        for request in self._batches.pop(step.index, ()):
            self.requests[request].in_flight.pop(step.index, None)
        for outcome in step.outcomes:
            if outcome.rewound is not None:
                # Outputs of before are dropped: their drafts can lower progress no further.
                self.requests[outcome.request].taken.clear()
                self.requests[outcome.request].in_flight.clear()

    def _note_state(self, state: EngineState) -> None:
        requests = self.requests
        before, self._previous_state, self._state = self._state, self._state, state
        self.statuses_stay = before is not None and len(before.requests) == len(state.requests)
        self.num_finished = num_idle = 0
        for seen in state.requests:
            history = requests[seen.request]
            history.state = seen
            status = seen.status
            if status != history.status:
                history.status = status
                self.statuses_stay = False
                self.num_finished += status == "finished"
            if status != "running":
                num_idle += status in IDLE
                # Progress no longer counts its passes in flight, nor is anything still to be read.
                history.taken.clear()
                history.in_flight.clear()
        self.num_idle = num_idle
        self.book_stays = before is not None and state.book is before.book and not self.book_calls
        references = state.book.references
        if before is None or references is not before.book.references:
            self.references = dict(references)
            if len(self.entry_rows) > len(self.references):
                rows = self.entry_rows
                self.entry_rows = {name: rows[name] for name in rows if name in self.references}

    def _note_taken(self, step: PassSeen) -> None:
        ahead = self.config.scheduler_lookahead
        for scheduled in step.scheduled if self.allocated else ():
            own = self.allocated.get(scheduled.request)
            if own:
                start = scheduled.num_computed_tokens
                end = start + scheduled.num_scheduled_tokens + ahead
                for feature in self.requests[scheduled.request].layout.meeting(start, end):
                    key = (scheduled.request, feature.index)
                    is_own = feature.identifier in own
                    # A feature whose rows all lie before the chunk needs no entry any more.
                    if is_own and feature.last_row_position >= start:
                        self.asked.setdefault(key, "duplicate")
                    elif self.asked.get(key) in (None, "refused") and feature.segments(start, end):
                        # Behind what was refused or cut, a reference would keep the room from it.
                        break
        for (request, index), how in self.asked.items():
            history = self.requests[request]
            if how != "refused" and history.status == "running":
                history.taken[index] = how

    def previous_progress(self) -> dict[int, int]:
        """Progress of each request one step before (tokens)."""
        before = self._previous_state
        states = () if before is None else before.requests
        return {state.request: state.num_computed_tokens for state in states}

    def how_asked(self, request: int, feature: int) -> Asked | None:
        """What became of the feature in the last pass; ``None`` when nobody asked for it."""
        return self.asked.get((request, feature))

    def holders(self) -> Mapping[str, tuple[int, ...]]:
        """Who holds what, by hash; of the encoder-decoder book from the calls replayed."""
        if not self.config.is_encoder_decoder:
            return self.references
        held: dict[str, tuple[int, ...]] = {}
        for request, feature in self.items_held:
            name = self.feature(request, feature).identifier
            held[name] = (*held.get(name, ()), request)
        return held
