"""What the world answers a run: drafts accepted and loads of KV that fail.

Part of the claim ``counts-agree``, with :mod:`spec.monitor.counts.counts`.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec.history.in_flight import Standing
from spec.history.log import FindingLog
from spec.record.scenario import Scenario
from spec.record.steps import PassSeen, RequestOutcome, RequestState, ScheduledRequest

CLAIM = "counts-agree"


class AnswersMonitor:
    """Judge outcomes by the answers of a scenario.

    Of failed loads, an engine must show those of KV that was loaded in the pass itself. Other KV is
    checked by some stores only; one that shows such a failure once in a run shows all of them.

    Args:
        scenario: what was chosen from outside.
        log: where findings go.
    """

    def __init__(self, scenario: Scenario, log: FindingLog) -> None:
        self._requests = scenario.requests
        self._log = log
        self._num_verified = [0] * len(scenario.requests)
        self._loaded: dict[tuple[int, int], int] = {}
        self._shows_other_kv = False
        self._not_shown: tuple[int, int] | None = None

    def observe_pass(self, step: PassSeen, states: Mapping[int, RequestState]) -> None:
        """Note what the pass loads, given the state of each request before it."""
        for scheduled in step.scheduled:
            if not (scheduled.started and scheduled.num_computed_tokens):
                continue
            if self._requests[scheduled.request].failed_loads:
                before = states.get(scheduled.request)
                # One with progress may have gone on with KV that it had.
                if before is not None and not before.num_computed_tokens:
                    self._loaded[step.index, scheduled.request] = scheduled.num_computed_tokens

    def check_accepted(self, outcome: RequestOutcome, entry: ScheduledRequest) -> None:
        """Judge how many drafts an output that is used accepts."""
        wanted = 0
        # A request that only starts has no drafts of its own to verify: they are padding.
        if entry.num_draft_tokens and not entry.started:
            answers = self._requests[outcome.request].accepted_drafts
            index = self._num_verified[outcome.request]
            self._num_verified[outcome.request] += 1
            if index < len(answers):
                wanted = min(answers[index], entry.num_draft_tokens)
        if outcome.num_accepted != wanted:
            self._note(
                "drafts accepted against the world's answer",
                f"{outcome.num_accepted} of {entry.num_draft_tokens} drafts accepted",
                f"{wanted} of them",
                outcome.request,
            )

    def check_load(
        self, index: int, outcome: RequestOutcome, standing: Standing, before: RequestState
    ) -> None:
        """Judge whether progress falls in the update of a pass as a load of it fails.

        Args:
            index: the pass.
            outcome: what became of the request.
            standing: whether its output counts.
            before: its state before the update.
        """
        loads = self._requests[outcome.request].failed_loads
        if not loads:
            return
        loaded = self._loaded.pop((index, outcome.request), 0)
        if standing != "live":
            return
        confirmed = before.num_computed_tokens - before.num_output_placeholders
        due = [
            load.num_computed_tokens
            for load in loads
            if load.at == index and min(load.num_computed_tokens, before.num_tokens - 1) < confirmed
        ]
        if not due:
            return
        if min(due) < loaded:
            if outcome.rewound is None:
                self._note_not_shown(index, outcome.request)
            return
        if outcome.rewound is not None:
            self._shows_other_kv = True
        elif self._not_shown is None:
            self._not_shown = (index, outcome.request)
        if self._shows_other_kv and self._not_shown is not None:
            self._note_not_shown(*self._not_shown)
            self._not_shown = None

    def _note_not_shown(self, index: int, request: int) -> None:
        self._note(
            "failed load without a fall of progress",
            f"the update of pass {index} leaves the progress of request {request}",
            f"it falls, as a load of pass {index} fails",
            request,
        )

    def _note(self, mechanism: str, observed: str, expected: str, request: int) -> None:
        self._log.add(CLAIM, mechanism, observed=observed, expected=expected, request=request)
