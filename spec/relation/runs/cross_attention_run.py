"""A recorded run of an encoder-decoder model, split into the transitions of each projection."""

from __future__ import annotations

from typing import NamedTuple

from spec.history.layout import FeatureLayout
from spec.record.scenario import Scenario
from spec.record.steps import Call, EngineState, EventSeen, PassSeen, Step, UpdateSeen
from spec.relation.cross_attention import ItemScope, ItemState, nothing_yet
from spec.relation.cross_attention_moves import CORRECT_ITEMS
from spec.relation.moves import ITEM_TRANSITIONS
from spec.relation.runs.projection import Arguments


class ItemTaken(NamedTuple):
    """A transition that a run took, as :class:`spec.relation.runs.projection.Taken`."""

    transition: str
    arguments: Arguments
    scope: ItemScope
    before: ItemState
    after: ItemState
    differs: tuple[str, ...]


class ItemProjection:
    """The projected state of one request and its item, as it goes on.

    Args:
        request: the request.
        feature: its item.
        scope: constants of the run.
    """

    def __init__(self, request: int, feature: FeatureLayout, scope: ItemScope) -> None:
        self.request = request
        self.feature = feature
        self.scope = scope
        self.state = nothing_yet(scope)
        self.taken: list[ItemTaken] = []

    def take(self, transition: str, **arguments: int | bool) -> None:
        """Let a transition happen, whether its guards hold or not."""
        move = ITEM_TRANSITIONS[transition].move(self.scope, self.state, CORRECT_ITEMS, **arguments)
        differs = tuple(name for name, holds in move.guards.items() if not holds)
        self.taken.append(
            ItemTaken(transition, arguments, self.scope, self.state, move.after, differs)
        )
        self.state = move.after

    def observe(self, **shown: int | bool) -> None:
        """Compare the state with what the run shows, and go on from that."""
        after = self.state._replace(**shown)
        differs = tuple(
            f"state.{name}"
            for name, value, other in zip(ItemState._fields, after, self.state, strict=True)
            if value != other
        )
        self.taken.append(ItemTaken("observe", shown, self.scope, self.state, after, differs))
        self.state = after


class ItemRun:
    """Follows a run step by step in every projection; as :class:`spec.relation.runs.run.Run`.

    Args:
        scenario: what was chosen from outside.
    """

    def __init__(self, scenario: Scenario) -> None:
        size = scenario.config.encoder_cache_size
        self._items = {
            request: FeatureLayout(0, chosen.features[0], "")
            for request, chosen in enumerate(scenario.requests)
            if chosen.features
        }
        self.projections = {
            (request, 0): ItemProjection(request, item, ItemScope(size, item.num_rows))
            for request, item in self._items.items()
        }
        self._held: set[int] = set()
        self._chosen: set[int] = set()
        self._on_worker: set[int] = set()

    def observe(self, step: Step) -> bool:
        """Take the next step; whether it came to its end, so that more can follow."""
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
        return True

    def _observe_pass(self, step: PassSeen) -> None:
        self._take_all("begin-pass")
        for call in step.calls:
            if call.method == "can_allocate":
                self._answer(call)
            elif call.method == "allocate":
                self._allocate(call.request)
            elif call.method in ("free", "free_encoder_input"):
                self._stop(call.request)
        self._stop_missing(step.state)
        for entry in step.scheduled:
            projection = self.projections.get((entry.request, 0))
            if projection is not None:
                if entry.started:
                    projection.take("begin")
                projection.take("advance", num_tokens=entry.num_scheduled_tokens)
        self._apply(step)
        self._compare(step)
        self._take_all("end-pass")

    def _answer(self, call: Call) -> None:
        rows = self._items[call.request].num_rows
        for projection in self.projections.values():
            if call.answer:
                here = projection.request == call.request
                projection.take("promise", here=here, their_rows=rows)
            elif projection.request == call.request:
                projection.take("refuse", asked_rows=rows, budget=call.budget)

    def _allocate(self, request: int) -> None:
        self._held.add(request)
        self._chosen.add(request)
        for projection in self.projections.values():
            if projection.request == request:
                projection.take("take")
            else:
                projection.take("take-other", their_rows=self._items[request].num_rows)

    def _apply(self, step: PassSeen) -> None:
        worker = step.worker
        assert worker is not None
        notices = frozenset(step.notices)
        encoded = {request for request, _ in step.encoder_inputs}
        for projection in self.projections.values():
            own = projection.request
            announced = [
                self._items[other].num_rows
                for other in self._on_worker
                if other != own and self._items[other].identifier in notices
            ]
            projection.take(
                "apply",
                announced_others=sum(announced),
                is_announced=projection.feature.identifier in notices,
                is_encoded=own in encoded,
            )
        self._on_worker = encoded
        self._chosen.clear()

    def _observe_update(self, step: UpdateSeen) -> None:
        running = {seen.request for seen in step.state.requests if seen.status == "running"}
        for call in step.calls:
            if call.method == "free_encoder_input" and call.request in self._held:
                self._held.discard(call.request)
                for projection in self.projections.values():
                    if projection.request == call.request:
                        projection.take("let-go")
                    else:
                        self._others_let_go(projection, call.request, their_chosen=0)
            elif call.method == "free" and call.request not in running:
                self._stop(call.request)
        self._stop_missing(step.state)
        self._compare(step)

    def _observe_event(self, step: EventSeen) -> None:
        for call in step.calls:
            if call.method == "reset":
                self._held.clear()
                self._on_worker.clear()
                self._take_all("reset")
            elif call.method == "free":
                self._stop(call.request)
        self._stop_missing(step.state)
        self._compare(step)

    def _stop(self, request: int) -> None:
        """A request lets go of its item, if it has one, and no longer runs."""
        was_held, was_chosen = request in self._held, request in self._chosen
        self._held.discard(request)
        self._chosen.discard(request)
        for projection in self.projections.values():
            if projection.request == request:
                projection.take("stop")
            elif was_held:
                chosen = self._items[request].num_rows if was_chosen else 0
                self._others_let_go(projection, request, their_chosen=chosen)

    def _others_let_go(self, projection: ItemProjection, request: int, their_chosen: int) -> None:
        rows = self._items[request].num_rows
        projection.take("others-let-go", their_rows=rows, their_chosen=their_chosen)

    def _stop_missing(self, state: EngineState) -> None:
        for seen in state.requests:
            projection = self.projections.get((seen.request, 0))
            if projection is not None and projection.state.running and seen.status != "running":
                self._stop(seen.request)

    def _take_all(self, transition: str) -> None:
        for projection in self.projections.values():
            projection.take(transition)

    def _compare(self, step: Step) -> None:
        states = {seen.request: seen for seen in step.state.requests}
        for projection in self.projections.values():
            seen = states.get(projection.request)
            if seen is None:
                continue
            shown: dict[str, int | bool] = {
                "running": seen.status == "running",
                "free": step.state.book.num_free_slots,
            }
            if shown["running"]:
                shown["computed"] = seen.num_computed_tokens
            if step.kind == "pass" and step.worker is not None:
                names = {name for name, _ in step.worker.contents}
                shown |= self._on_the_worker(projection, names)
            projection.observe(**shown)

    def _on_the_worker(self, projection: ItemProjection, names: set[str]) -> dict[str, int | bool]:
        """What the worker shows: items of this pass that are there, and names of no item of it."""
        rows = {item.identifier: item.num_rows for item in self._items.values()}
        there = {index for index in self._on_worker if self._items[index].identifier in names}
        surplus = names - {self._items[index].identifier for index in self._on_worker}
        others = [self._items[index].num_rows for index in there if index != projection.request]
        return {
            "resident": projection.request in there,
            "resident_others": sum(others) + sum(rows.get(name, 0) for name in surplus),
        }
