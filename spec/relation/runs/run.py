"""A recorded run, split into the transitions that each projection takes.

It reads the steps itself and not through :mod:`spec.history`, which monitors and reports share. The
explorer forks a run at every choice, a million times, and a history only goes forward; and a
mistake in the shared reader, which would blind every monitor in the same way, shows here as a run
outside the relation.
"""

from __future__ import annotations

from collections.abc import Iterable

from spec.errors import InputError
from spec.history.layout import FeatureLayout
from spec.record.prompts import Prompts
from spec.record.scenario import Scenario
from spec.record.steps import (
    Call,
    EngineState,
    EventSeen,
    LoopBookState,
    PassSeen,
    RequestState,
    ScheduledRequest,
    Step,
    UpdateSeen,
)
from spec.relation.change import changed
from spec.relation.runs.book_ledger import Act, Ledger
from spec.relation.runs.happenings import Applied, Event, Happened, Rewound, Scheduled
from spec.relation.runs.projection import Moves, Projection
from spec.relation.runs.shown import SHOWN, SHOWN_RUNNING, apart, shown_of
from spec.relation.runs.whole_items import whole_item_ahead
from spec.relation.state import Scope, State, initial

_BEGIN_PASS, _RESET = Happened("begin-pass"), Happened("reset")


class Run:
    """Follows a run step by step in every projection.

    Args:
        scenario: what was chosen from outside.
        moves: what is known of transitions; it may be shared by any number of runs.
    """

    def __init__(self, scenario: Scenario, moves: Moves | None = None) -> None:
        self._moves = Moves() if moves is None else moves
        self._config = scenario.config
        self._prompts = Prompts(scenario)
        self._layouts: list[list[FeatureLayout]] = [[] for _ in scenario.requests]
        self._rows: dict[str, int] = {}
        self._ledger = Ledger(scenario.config.encoder_cache_size)
        self._states: dict[int, RequestState] = {}
        self._flights: list[dict[int, tuple[int, bool]]] = [{} for _ in scenario.requests]
        self._contents: dict[str, int] = {}
        self._encodings: frozenset[int] = frozenset()
        """Encodings since the cache was last reset."""
        self.projections: dict[tuple[int, int], Projection] = {}
        """The projections so far, by request and feature."""
        self._own: list[list[Projection]] = [[] for _ in scenario.requests]
        self._events: list[Event] = []
        """What the step under way did since the projections last followed; none between steps."""

    def fork(self) -> Run:
        """Another run that has gone the same way, and goes on by itself."""
        other = Run.__new__(Run)
        # What is not copied here is never changed, or known to both.
        other.__dict__.update(self.__dict__)
        other._events = []
        other._prompts = self._prompts.fork()
        other._layouts = [list(own) for own in self._layouts]
        other._ledger = self._ledger.fork()
        other._flights = [dict(own) for own in self._flights]
        other._own = [[projection.fork() for projection in own] for own in self._own]
        other.projections = {projection.own: projection for own in other._own for projection in own}
        return other

    def parts_from(self, other: Run) -> str | None:
        """What tells this run from another in what a later step may ask for, or ``None``.

        Of what only remembers the past nothing is said; passes in flight go by their order.
        """
        for own, projection in self.projections.items():
            parts = apart(projection.state, other.projections[own].state)
            if parts is not None:
                return f"request {own[0]}, feature {own[1]}: {parts}"
        for request, (flights, other_flights) in enumerate(
            zip(self._flights, other._flights, strict=True)
        ):
            if list(flights.values()) != list(other_flights.values()):
                return f"request {request}: passes in flight {flights} or {other_flights}"
        if not self._ledger.stands_like(other._ledger):
            return "the entries of the book are kept for others, or in another order"
        return None

    def observe(self, step: Step) -> bool:
        """Take the next step; whether it came to its end, so that more can follow."""
        self._prompts.observe(step)
        if step.error is not None:
            return False
        match step.kind:
            case "pass":
                if step.worker is None:
                    return False
                self._observe_pass(step)
            case "update":
                self._observe_update(step)
            case "event":
                self._observe_event(step)
        self._follow()
        self._compare(step.state)
        if step.kind == "pass":
            for projection in self.projections.values():
                projection.take("end-pass")
        elif step.kind == "event" or step.continued:
            self._add_projections(step.state)
        return True

    # Passes

    def _observe_pass(self, step: PassSeen) -> None:
        self._events.append(_BEGIN_PASS)
        stops_at: dict[int, int] = {}
        scheduled = {entry.request for entry in step.scheduled}
        stopping = {*step.preempted, *step.rejected}
        for call in step.calls:
            if call.method in ("check_and_update_cache", "can_allocate", "allocate"):
                feature = self._feature(call.request, call.feature)
                self._events.extend(self._ledger.asks(call, feature.identifier, feature.num_rows))
                if call.method == "can_allocate" and call.answer is False:
                    stops_at[call.request] = feature.offset
            elif call.method in ("free", "free_encoder_input"):
                waits = call.request not in scheduled and not self._is_running(call.request)
                self._events.extend(self._let_go(call, call.request in stopping or waits))
        self._events.extend(self._ledger.forgo())
        self._stop_missing(step.state)
        for entry in step.scheduled:
            self._schedule(step, entry, stops_at.get(entry.request))
        self._apply(step)

    def _let_go(self, call: Call, is_stop: bool) -> Iterable[Act]:
        """What a call by which references go does."""
        if call.method == "free_encoder_input":
            name = self._feature(call.request, call.feature).identifier
            return self._ledger.lets_go((call.request, call.feature), name)
        if is_stop:
            self._flights[call.request].clear()
            return [self._ledger.stops(call.request)]
        return [
            act
            for name, entry in list(self._ledger.entries.items())
            for occurrence in sorted(entry.occurrences)
            if occurrence[0] == call.request
            for act in self._ledger.lets_go(occurrence, name)
        ]

    def _schedule(self, step: PassSeen, entry: ScheduledRequest, stopped_at: int | None) -> None:
        request, num_drafts, samples = entry.request, entry.num_draft_tokens, entry.samples
        if entry.started:
            self._flights[request].clear()
        self._flights[request][step.index] = (num_drafts, samples)
        if stopped_at is None and self._config.whole_items:
            self._follow()
            stopped_at = whole_item_ahead(self._config, step, entry, self._own[request])
        start, num_tokens = entry.num_computed_tokens, entry.num_scheduled_tokens
        self._events.append(
            Scheduled(request, entry.started, start, num_tokens, num_drafts, samples, stopped_at)
        )

    def _apply(self, step: PassSeen) -> None:
        worker = step.worker
        assert worker is not None
        encoded = frozenset([self._feature(r, f).identifier for r, f in step.encoder_inputs])
        received, announced = frozenset(worker.received), frozenset(step.notices)
        self._events.append(Applied(received, worker.forgotten, announced, encoded))
        self._ledger.end_pass()
        self._contents = dict(worker.contents)
        if worker.encoded:
            self._encodings = self._encodings.union(e.number for e in worker.encoded)

    # Updates and events

    def _observe_update(self, step: UpdateSeen) -> None:
        confirmed: list[tuple[int, bool]] = []
        rewound = set()
        running = {seen.request for seen in step.state.requests if seen.status == "running"}
        for outcome in step.outcomes:
            request = outcome.request
            flight = self._flights[request].pop(step.index, None)
            if flight is None:
                continue
            if outcome.rewound is not None:
                rewound.add(request)
                self._rewind(request, outcome.rewound)
            elif not outcome.dropped:
                num_drafts, samples = flight
                confirmed.append((request, samples))
                arguments = (
                    ("num_drafts", num_drafts),
                    ("num_rejected", num_drafts - outcome.num_accepted),
                    ("samples", samples),
                )
                self._events.append(Happened("confirm", request, arguments))
        for call in step.calls:
            if call.request not in rewound:
                self._events.extend(self._let_go(call, call.request not in running))
        for request, samples in confirmed:
            if request in running:
                self._events.append(Happened("keep", request))
                if samples:
                    self._events.append(Happened("emit", request))
        self._stop_missing(step.state)

    def _rewind(self, request: int, left: int) -> None:
        self._flights[request].clear()
        self._events.append(Rewound(request, left, self._ledger.stops(request)))

    def _observe_event(self, step: EventSeen) -> None:
        for call in step.calls:
            if call.method == "reset":
                self._ledger.reset()
                self._contents = {}
                self._encodings = frozenset()
                self._events.append(_RESET)
            else:
                self._events.extend(self._let_go(call, True))
        self._stop_missing(step.state)

    # What all steps share

    def _feature(self, request: int, feature: int) -> FeatureLayout:
        layouts = self._layouts[request] if request < len(self._layouts) else []
        if not 0 <= feature < len(layouts):
            raise InputError(
                f"trace: a step names feature {feature} of request {request}, which has "
                f"{len(layouts)} so far; the recording is not of this scenario"
            )
        return layouts[feature]

    def _follow(self) -> None:
        """Let the projections follow what the step has done so far."""
        if self._events:
            happenings = self._moves.happenings(tuple(self._events))
            self._events.clear()
            for projection in self.projections.values():
                projection.follow(happenings)

    def _is_running(self, request: int) -> bool:
        return request in self._states and self._states[request].status == "running"

    def _stop_missing(self, state: EngineState) -> None:
        """Requests that no longer run, and held nothing that a call would have let go."""
        for seen in state.requests:
            if seen.status != "running" and self._own[seen.request]:
                self._follow()
                if any(projection.state.running for projection in self._own[seen.request]):
                    self._flights[seen.request].clear()
                    self._events.append(self._ledger.stops(seen.request))

    def _compare(self, state: EngineState) -> None:
        self._ledger.take_over(state.book, self._rows)
        self._states = {seen.request: seen for seen in state.requests}
        books: dict[str, tuple[int | bool, ...]] = {}
        names: tuple[str, ...] = SHOWN
        running_names: tuple[str, ...] = SHOWN_RUNNING
        if state.book.num_freeable_slots is None:
            names, running_names = names[:-1], running_names[:-1]
        for projection in self.projections.values():
            seen = self._states[projection.request]
            name = projection.name
            book = books.get(name)
            if book is None:
                book = books[name] = self._shown(name, state.book)
            held, others = self._ledger.kept_for(projection.own, name)
            if seen.status == "running":
                counts = seen.num_computed_tokens, seen.num_output_placeholders
                projection.observe(running_names, (held, others, True, *counts, *book))
            else:
                projection.observe(names, (held, others, False, *book))

    def _add_projections(self, state: EngineState) -> None:
        """Features that came with an arrival or a continuation."""
        for seen in state.requests:
            request = seen.request
            layouts, features = self._layouts[request], self._prompts.features(request)
            if len(layouts) == len(features):
                continue
            for feature in features[len(layouts) :]:
                layout = FeatureLayout(len(layouts), feature, "")
                layouts.append(layout)
                self._rows.setdefault(layout.identifier, layout.num_rows)
                scope = Scope(
                    self._config.encoder_cache_size,
                    layout.num_rows,
                    layout.offset,
                    layout.end - layout.offset,
                    layout.last_row_position,
                    self._config.scheduler_lookahead,
                    self._config.gather_lookahead,
                    self._config.async_depth > 0,
                    self._config.whole_items,
                )
                footing = self._moves.footing(scope, self._joining(scope, layout, state.book))
                known = self._moves.known(request, layout.index, feature)
                projection = Projection(request, layout, footing, self._moves, known)
                self._own[request].append(projection)
                self.projections[projection.own] = projection

    def _joining(self, scope: Scope, layout: FeatureLayout, book: LoopBookState) -> State:
        """The state of a feature that comes in the midst of a run."""
        held, others = self._ledger.kept_for((-1, -1), layout.identifier)
        shown = (held, others, False, *self._shown(layout.identifier, book))
        return changed(initial(scope), **dict(zip(SHOWN, shown, strict=False)))

    def _shown(self, name: str, book: LoopBookState) -> tuple[int | bool, ...]:
        return shown_of(name, self._ledger, book, self._contents, self._encodings)
