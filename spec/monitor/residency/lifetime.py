"""When references go: only at their moments, and not while they are needed.

The claims ``dropped-in-update``, ``freed-not-needed`` and ``held-until-last-use``.
"""

from __future__ import annotations

from spec.claims import predicates as claims
from spec.history.history import History
from spec.history.log import FindingLog
from spec.record.steps import Call, PassSeen, Step, UpdateSeen

_LETS_GO = ("free", "free_encoder_input", "cancel")
"""Calls by which references go."""


def _takes(call: Call) -> bool:
    """Whether a call took a reference."""
    hit = call.method == "check_and_update_cache" and call.answer is True
    return hit or call.method == "allocate"


class LifetimeMonitor:
    """Judge each step of a run.

    Args:
        history: the run so far, the step included.
        log: where findings go.
    """

    def __init__(self, history: History, log: FindingLog) -> None:
        self._history = history
        self._log = log
        self._held_features: list[set[int]] = [set() for _ in history.requests]
        """Occurrences that each request took and did not let go, also those that it has passed."""

    def observe(self, step: Step) -> None:
        """Judge what a step let go."""
        if step.kind == "update":
            if self._history.book_calls:
                self._check_freed(step)
        elif step.kind == "pass" and self._history.book_calls:
            self._check_pass_calls(step)
        if self._history.references is not self._history.previous_references:
            self._check_lost(step)
        if not self._history.config.is_encoder_decoder:
            self._check_held(step)
        self._note_held(step)

    def _check_freed(self, step: UpdateSeen) -> None:
        requests = self._history.requests
        # A request that ends, pauses or has its progress fall lets everything go at once.
        exempt = {o.request for o in step.outcomes if o.rewound is not None}
        for call in step.calls:
            if call.method == "free" and requests[call.request].status != "running":
                exempt.add(call.request)
        for call in step.calls:
            if call.method not in ("free", "free_encoder_input"):
                continue
            self._log.premises["dropped-in-update"] += 1
            if call.request in exempt:
                continue
            held = self._held_features[call.request]
            if call.method == "free_encoder_input":
                held.discard(call.feature)
                self._check_not_needed(step, call.request, call.feature)
                continue
            for index in sorted(held):
                self._check_not_needed(step, call.request, index)
            held.clear()

    def _check_not_needed(self, step: UpdateSeen, request: int, index: int) -> None:
        history = self._history
        self._log.premises["freed-not-needed"] += 1
        feature = history.feature(request, index)
        progress = history.requests[request].lowest_progress
        for continued, base in step.continued:
            # The turn before it was processed up to its base.
            if continued == request:
                progress = max(progress, base)
        needed_to = 1 if history.config.is_encoder_decoder else feature.end
        if not claims.freed_not_needed(True, needed_to, progress):
            drafts = sum(history.requests[request].in_flight.values())
            self._log.add(
                "freed-not-needed",
                "reference dropped before progress is sure to be past the feature",
                observed=f"request {request} let {feature.describe()} go while progress "
                f"can fall back to {progress} ({drafts} drafts in flight)",
                expected=f"it is kept until progress is sure to be at {needed_to}",
                request=request,
                feature=index,
            )

    def _note_held(self, step: Step) -> None:
        """Keep which occurrences each request holds, for when all are let go at once."""
        history, held = self._history, self._held_features
        for call in history.book_calls:
            if call.method == "free":
                held[call.request].clear()
            elif call.method in ("free_encoder_input", "cancel"):
                held[call.request].discard(call.feature)
            elif call.method == "reset":
                for features in held:
                    features.clear()
        if step.kind == "update":
            for outcome in step.outcomes:
                if outcome.rewound is not None:
                    held[outcome.request].clear()
        if step.kind != "pass":
            return
        for scheduled in step.scheduled:
            if scheduled.started:
                held[scheduled.request].clear()
        for (request, index), how in history.asked.items():
            if how != "refused" and history.requests[request].status == "running":
                held[request].add(index)

    def _may_drop(self, step: PassSeen, request: int) -> bool:
        """Whether a pass may drop the request's references: preempted, rejected or given back."""
        if request in step.preempted or request in step.rejected:
            return True
        if any(scheduled.request == request for scheduled in step.scheduled):
            return False
        return self._history.requests[request].status != "running"

    def _check_pass_calls(self, step: PassSeen) -> None:
        reported: set[int] = set()
        for position, call in enumerate(step.calls):
            if call.method not in _LETS_GO:
                continue
            self._log.premises["dropped-in-update"] += 1
            if call.request in reported or self._may_drop(step, call.request):
                continue
            held = self._held(call.request, call.feature, step.calls[:position])
            if claims.dropped_in_update(held, False, False):
                continue
            reported.add(call.request)
            self._note_dropped(step, call.request, call.feature, f"by a call of {call.method}")

    def _held(self, request: int, feature: int, earlier: tuple[Call, ...]) -> bool:
        """Whether the request held references before the call, or took some in this pass."""
        history = self._history
        layout = history.requests[request].layout.features
        names = [f.identifier for f in (layout if feature < 0 else layout[feature : feature + 1])]
        if any(request in history.previous_references.get(name, ()) for name in names):
            return True
        if any(key[0] == request for key in history.previous_items):
            return True
        return any(
            call.request == request and _takes(call) and layout[call.feature].identifier in names
            for call in earlier
        )

    def _check_lost(self, step: Step) -> None:
        """References that were there before the step and are gone after it."""
        history = self._history
        if step.kind == "event" and step.event == "reset":
            return
        for name, before in history.previous_references.items():
            after = history.references.get(name, ())
            for request in before:
                if request in after:
                    continue
                if not claims.dropped_in_update(True, False, self._is_explained(step, request)):
                    feature = self._feature_named(request, name)
                    self._note_dropped(step, request, feature, "by no call")

    def _is_explained(self, step: Step, request: int) -> bool:
        """Whether the step says why a reference of the request went; calls are judged apart."""
        if step.kind == "event":
            return step.event in ("abort", "close") and request == step.request
        if any(call.request == request and call.method in _LETS_GO for call in step.calls):
            return True
        return step.kind == "pass" and self._may_drop(step, request)

    def _feature_named(self, request: int, name: str) -> int:
        features = self._history.requests[request].layout.features
        return next((f.index for f in features if f.identifier == name), -1)

    def _note_dropped(self, step: Step, request: int, feature: int, how: str) -> None:
        match step.kind:
            case "pass":
                where = "a pass"
            case "update":
                where = "an update without a call"
            case "event":
                where = f"an event ({step.event})"
        what = "its references"
        if feature >= 0:
            what = f"its reference to {self._history.feature(request, feature).describe()}"
        self._log.add(
            "dropped-in-update",
            f"reference dropped in {where}",
            observed=f"request {request} lost {what} in {where}, {how}; it was neither preempted "
            "nor given back",
            expected="references go in an update, a preemption, a give-back, finish, abort or "
            "reset",
            request=request,
            feature=feature if feature >= 0 else None,
        )

    def _check_held(self, step: Step) -> None:
        references = self._history.references
        for request, history in enumerate(self._history.requests):
            if not history.taken:
                continue
            progress = history.lowest_progress
            layout = history.layout.features
            over = []
            for index in history.taken:
                feature = layout[index]
                is_needed = feature.last_row_position >= progress
                if is_needed:
                    self._log.premises["held-until-last-use"] += 1
                else:
                    over.append(index)
                referenced = bool(references.get(feature.identifier))
                if not claims.held_until_last_use(True, is_needed, referenced):
                    self._note_unreferenced(step, request, index, progress)
            # Progress never falls below what drafts in flight can take back; where it is
            # rewound, everything counts as not taken.
            for index in over:
                del history.taken[index]
        self._log.settle("held-until-last-use")

    def _note_unreferenced(self, step: Step, request: int, index: int, progress: int) -> None:
        history = self._history
        feature = history.feature(request, index)
        how = history.requests[request].taken[index]
        if how == "duplicate":
            mechanism = "duplicate of the same pass holds no reference"
        elif any(
            call.method == "free_encoder_input"
            and call.request == request
            and call.feature != index
            and history.feature(request, call.feature).identifier == feature.identifier
            for call in step.calls
        ):
            mechanism = "reference dropped with another occurrence"
        else:
            mechanism = "reference dropped while a row is still to be read"
        self._log.add_standing(
            "held-until-last-use",
            (request, index),
            self._log.mechanism_of("held-until-last-use", (request, index)) or mechanism,
            observed=f"nobody holds {feature.identifier!r}, and request {request}, which took "
            f"{feature.describe()} ({how}), has a row of it at {feature.last_row_position}",
            expected=f"a reference while a row at or past {progress} is to be read",
            request=request,
            feature=index,
        )
