"""What a monitor must remember of a run to judge its next step: all of it from raw observations.

The terms are those of the claims. A request's *drafts in flight* are its draft tokens in passes
since it last started that are not yet updated. An occurrence is *taken* when the request hit it,
allocated it, or met it as a duplicate, since it last started, was rewound, or the cache was reset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from spec.feature import Feature
from spec.loop.layout import FeatureLayout, RequestLayout
from spec.loop.prompts import Prompts
from spec.loop.scenario import Scenario
from spec.loop.steps import Call, Encoding, EngineState, PassSeen, RequestState, Step, UpdateSeen

Asked: TypeAlias = Literal["hit", "allocated", "duplicate", "refused"]
"""What became of a feature that the scheduler asked the book for in a pass."""


class RequestHistory:
    """One request.

    Attributes:
        layout: its features so far.
        state: as last reported; ``None`` before it arrived.
        taken: its taken occurrences that it may still need, by feature, and how each was taken.
        in_flight: drafts of each pass that is not yet updated (tokens).
        payload: features whose raw data is on the worker.
    """

    __slots__ = ("in_flight", "layout", "payload", "state", "taken")

    def __init__(self, layout: RequestLayout) -> None:
        self.layout = layout
        self.state: RequestState | None = None
        self.taken: dict[int, Asked] = {}
        self.in_flight: dict[int, int] = {}
        self.payload: set[int] = set()

    @property
    def status(self) -> str:
        """Its status as last reported; empty before it arrived."""
        return "" if self.state is None else self.state.status

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
        previous_status: status of each request one step before.
        previous_progress: progress of each request one step before (tokens).
        entry_rows: rows of each entry, by the feature for which it was allocated.
        items_held: of the encoder-decoder book, rows of the items allocated and not let go.
        previous_items: those items, one step before.
        encodings: runs of the encoder, with the number of cache resets before each.
        resets: cache resets so far.
        asked: what the last pass asked for: by request and feature.
        allocated: hashes that each request allocated in the last pass.
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
        self.previous_status = [""] * len(self.requests)
        self.previous_progress: dict[int, int] = {}
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
        self._seen_references: object = None
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
        self._prompts.observe(step)
        self.previous_references = self.references
        if self.items_held or self.previous_items:
            self.previous_items = frozenset(self.items_held)
        if step.kind == "pass":
            self._observe_pass(step)
        else:
            for request, _ in step.continued:
                self._continue(request)
            for call in step.calls:
                self._replay(call)
            if step.kind == "update":
                self._observe_update(step)
            elif step.event == "reset":
                self.resets += 1
                for history in self.requests:
                    history.taken.clear()
        self._note_state(step.state)
        if step.kind == "pass":
            self._note_taken(step)

    def _continue(self, request: int) -> None:
        layout = self.requests[request].layout
        features = self._prompts.features(request)
        known = len(layout.features)
        layout.extend(self._layouts(request, features[known:], known))

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
        for scheduled in step.scheduled:
            if scheduled.started:
                self.requests[scheduled.request].in_flight.clear()
            if scheduled.num_draft_tokens:
                history = self.requests[scheduled.request]
                history.in_flight[step.index] = scheduled.num_draft_tokens
                batch.append(scheduled.request)
        if batch:
            self._batches[step.index] = batch
        for call in step.calls:
            if call.method != "allocate_slots":
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
        self.encoded = tuple(encoding.number for encoding in worker.encoded)
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
        self.previous_status = [history.status for history in requests]
        self.previous_progress = {
            index: history.state.num_computed_tokens
            for index, history in enumerate(requests)
            if history.state is not None
        }
        for seen in state.requests:
            history = requests[seen.request]
            history.state = seen
            if seen.status != "running":
                # Progress no longer counts its passes in flight, nor is anything still to be read.
                history.taken.clear()
                history.in_flight.clear()
        references = state.book.references
        if references is not self._seen_references:
            self._seen_references = references
            self.references = dict(references)
            if len(self.entry_rows) > len(self.references):
                rows = self.entry_rows
                self.entry_rows = {name: rows[name] for name in rows if name in self.references}

    def _note_taken(self, step: PassSeen) -> None:
        ahead = self.config.scheduler_lookahead
        for scheduled in step.scheduled:
            history = self.requests[scheduled.request]
            if scheduled.started:
                history.taken.clear()
            own = self.allocated.get(scheduled.request)
            if own:
                start = scheduled.num_computed_tokens
                end = start + scheduled.num_scheduled_tokens + ahead
                for feature in history.layout.meeting(start, end):
                    key = (scheduled.request, feature.index)
                    if feature.identifier in own:
                        self.asked.setdefault(key, "duplicate")
                    elif self.asked.get(key) in (None, "refused") and feature.segments(start, end):
                        # Behind what was refused or cut, a reference would keep the room from it.
                        break
        for (request, index), how in self.asked.items():
            history = self.requests[request]
            if how != "refused" and history.status == "running":
                history.taken[index] = how

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
