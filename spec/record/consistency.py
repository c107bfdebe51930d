"""Whether a trace can be a record at all, before anyone judges what it shows.

Only what no target could have done is refused: names of requests and features that do not exist,
steps out of order, counts that cannot be. Whatever a faulty target could show passes: that is for
the monitor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spec.errors import InputError
from spec.record.prompts import Prompts
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario
from spec.record.steps import (
    Call,
    EngineState,
    EventSeen,
    PassSeen,
    Read,
    RowRun,
    ScheduledRequest,
    Step,
    Trace,
    UpdateSeen,
    WorkerSeen,
)

_OF_A_FEATURE = (
    "check_and_update_cache",
    "can_allocate",
    "allocate",
    "free_encoder_input",
    "cancel",
)
"""Methods that are called for one feature."""


def require_findings_fit(findings: Iterable[LoopFinding], scenario: Scenario) -> None:
    """Check that findings name requests and features of the scenario.

    Raises:
        InputError: the first that does not.
    """
    for index, finding in enumerate(findings):
        where = f"findings.{index}"
        _require_index(finding.request or 0, len(scenario.requests), "request", where)
        if finding.feature is None:
            continue
        if finding.request is None:
            raise InputError(f"{where}: feature {finding.feature} of no request; name the request")
        features = scenario.requests[finding.request].all_features()
        _require_index(finding.feature, len(features), "feature", where)


def require_consistent(trace: Trace) -> None:
    """Check that a trace does not contradict itself or its scenario.

    Raises:
        InputError: the first contradiction, and the step where it shows.
    """
    checker = StepChecker(trace.scenario)
    for index, step in enumerate(trace.steps):
        checker.check(step, f"steps.{index}")
        if step.error is not None and index + 1 < len(trace.steps):
            raise InputError(f"steps.{index}: an error ends a run, but steps follow")
    has_error = bool(trace.steps) and trace.steps[-1].error is not None
    if has_error != (trace.ending == "error"):
        last = "has an error" if has_error else "has none"
        raise InputError(f"ending: {trace.ending!r}, but the last step {last}")


def _require_index(index: int, count: int, noun: str, where: str) -> None:
    if not 0 <= index < count:
        raise InputError(f"{where}: no {noun} {index}; {noun}s are numbered below {count}")


def _require_at_least(least: int, where: str, **numbers: int) -> None:
    for name, number in numbers.items():
        if number < least:
            raise InputError(f"{where}: {name} is {number}; it must be at least {least}")


def _require_distinct(numbers: Sequence[int], noun: str, where: str) -> None:
    for index, number in enumerate(numbers):
        if number in numbers[:index]:
            raise InputError(f"{where}: {noun} {number} is listed twice")


class StepChecker:
    """What the steps so far allow in the next one."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._num_requests = len(scenario.requests)
        self._prompts = Prompts(scenario)
        self._batches: list[tuple[ScheduledRequest, ...]] = []
        self._arrived: set[int] = set()
        self._last_update = -1
        self._encodings: set[int] = set()
        self._merges: bool | None = None

    def check(self, step: Step, where: str) -> None:
        """Check one step and note it.

        Raises:
            InputError: what cannot be, and where.
        """
        match step:
            case EventSeen():
                self._event(step, where)
            case PassSeen():
                self._pass(step, where)
            case UpdateSeen():
                self._update(step, where)
        if step.kind != "pass":
            self._continuations(step.continued, f"{where}: continued")
            self._prompts.observe(step)
        for index, call in enumerate(step.calls):
            self._call(call, f"{where}: calls.{index}")
        self._state(step.state, f"{where}: state")

    def _event(self, step: EventSeen, where: str) -> None:
        if step.before != len(self._batches):
            raise InputError(
                f"{where}: an event before pass {step.before}, but the next pass is "
                f"{len(self._batches)}"
            )
        if step.event == "reset":
            return
        self._request(step.request, where)
        if (step.event == "arrival") == (step.request in self._arrived):
            raise InputError(
                f"{where}: {step.event} of request {step.request}; each arrives once, before "
                "anything else happens to it"
            )
        self._arrived.add(step.request)

    def _pass(self, step: PassSeen, where: str) -> None:
        if step.index != len(self._batches):
            raise InputError(f"{where}: pass {step.index} follows {len(self._batches)} passes")
        self._batches.append(step.scheduled)
        for index, scheduled in enumerate(step.scheduled):
            self._scheduled(scheduled, f"{where}: scheduled.{index}")
        _require_distinct([s.request for s in step.scheduled], "request", f"{where}: scheduled")
        self._inputs(step.encoder_inputs, f"{where}: encoder_inputs")
        for name, requests in (("preempted", step.preempted), ("rejected", step.rejected)):
            self._requests(requests, f"{where}: {name}")
        if (step.worker is None) != (step.error is not None):
            raise InputError(f"{where}: the worker runs a pass unless scheduling raised")
        if step.worker is not None:
            self._worker(step.worker, f"{where}: worker")

    def _scheduled(self, scheduled: ScheduledRequest, where: str) -> None:
        self._request(scheduled.request, where)
        _require_at_least(1, where, num_scheduled_tokens=scheduled.num_scheduled_tokens)
        _require_at_least(
            0,
            where,
            num_computed_tokens=scheduled.num_computed_tokens,
            num_draft_tokens=scheduled.num_draft_tokens,
            num_output_placeholders=scheduled.num_output_placeholders,
            prefill_len=scheduled.prefill_len,
        )

    def _update(self, step: UpdateSeen, where: str) -> None:
        if not 0 <= step.index < len(self._batches):
            raise InputError(
                f"{where}: update of pass {step.index}, but {len(self._batches)} passes happened"
            )
        if step.index <= self._last_update:
            raise InputError(
                f"{where}: update of pass {step.index} follows that of {self._last_update}"
            )
        for skipped in range(self._last_update + 1, step.index):
            if self._batches[skipped]:
                raise InputError(
                    f"{where}: update of pass {step.index}, but pass {skipped} ran requests and "
                    "was not updated"
                )
        self._last_update = step.index
        ran = {scheduled.request for scheduled in self._batches[step.index]}
        for index, outcome in enumerate(step.outcomes):
            place = f"{where}: outcomes.{index}"
            if outcome.request not in ran:
                raise InputError(
                    f"{place}: request {outcome.request} did not run in pass {step.index}"
                )
            _require_at_least(
                0,
                place,
                num_accepted=outcome.num_accepted,
                num_emitted=outcome.num_emitted,
                rewound=outcome.rewound or 0,
            )
        _require_distinct([o.request for o in step.outcomes], "request", f"{where}: outcomes")

    def _worker(self, worker: WorkerSeen, where: str) -> None:
        self._inputs(worker.received, f"{where}: received")
        self._requests(worker.forgotten, f"{where}: forgotten")
        self._inputs([(e.request, e.feature) for e in worker.encoded], f"{where}: encoded")
        for encoding in worker.encoded:
            if encoding.number in self._encodings:
                raise InputError(f"{where}: encoded: number {encoding.number} was used before")
            _require_at_least(
                0, f"{where}: encoded", number=encoding.number, num_rows=encoding.num_rows
            )
            self._encodings.add(encoding.number)
        for _, number in worker.contents:
            self._encoding(number, f"{where}: contents")
        # A worker whose target raised may get no further.
        if worker.drafter is None and worker.target.error is not None:
            drafts = False
        else:
            drafts = self._scenario.config.gather_lookahead > 0
        if drafts != (worker.drafter is not None):
            raise InputError(f"{where}: drafter: it reads in each pass if it looks ahead, or never")
        self._read(worker.target, f"{where}: target")
        if worker.drafter is not None:
            self._read(worker.drafter, f"{where}: drafter")

    def _read(self, read: Read, where: str) -> None:
        if read.error is not None:
            if read.rows or read.slices or read.mask or read.merged:
                raise InputError(f"{where}: a gather that raised returned nothing")
            return
        self._runs(read.rows, f"{where}: rows")
        self._runs(read.merged or (), f"{where}: merged")
        if any(run.position != -1 for run in read.rows):
            raise InputError(f"{where}: rows: a row has a position only where it was merged")
        merges = read.merged is not None
        if self._merges not in (None, merges):
            raise InputError(f"{where}: merged: tensors run in each pass, or never")
        self._merges = merges
        # Cross-attention reads whole outputs and gathers nothing.
        gathers = not self._scenario.config.is_encoder_decoder
        if gathers and sum(read.slices) != sum(run.num_rows for run in read.rows):
            raise InputError(f"{where}: slices and rows differ in their number of rows")
        end = -1
        for first, last in read.mask:
            if not end < first < last:
                raise InputError(
                    f"{where}: mask: [{first},{last}) is empty, or not apart from the range before"
                )
            end = last

    def _runs(self, runs: Iterable[RowRun], where: str) -> None:
        for run in runs:
            self._encoding(run.encoding, where)
            _require_at_least(1, where, num_rows=run.num_rows)
            _require_at_least(-1, where, first_row=run.first_row, position=run.position)

    def _encoding(self, number: int, where: str) -> None:
        if number != -1 and number not in self._encodings:
            raise InputError(f"{where}: encoding {number} did not happen")

    def _continuations(self, continued: Sequence[tuple[int, int]], where: str) -> None:
        self._requests([request for request, _ in continued], where)
        for request, base in continued:
            turns = len(self._scenario.requests[request].continuations)
            if self._prompts.turn(request) >= turns:
                raise InputError(f"{where}: request {request} has no more than {turns} of them")
            _require_at_least(0, where, base=base)

    def _call(self, call: Call, where: str) -> None:
        method = call.method
        if method != "reset":
            self._request(call.request, where)
        elif call.request != -1:
            raise InputError(f"{where}: a reset is for no request")
        if method in _OF_A_FEATURE:
            self._feature(call.request, call.feature, where)
        elif call.feature != -1:
            raise InputError(f"{where}: {method} is for no feature")
        asks = method in ("can_allocate", "allocate_slots")
        if method != "check_and_update_cache" and asks != (call.answer is not None):
            raise InputError(f"{where}: {method} answered {call.answer}")
        _require_at_least(0, where, budget=call.budget, chosen=call.chosen)
        if (call.budget and not asks) or (call.chosen and method != "can_allocate"):
            raise InputError(f"{where}: {method} takes no budget")

    def _state(self, state: EngineState, where: str) -> None:
        requests = [request.request for request in state.requests]
        self._requests(requests, f"{where}: requests")
        for request in requests:
            if request not in self._arrived:
                raise InputError(f"{where}: requests: request {request} has not arrived")
        for request in self._arrived.difference(requests):
            raise InputError(f"{where}: requests: request {request} has arrived and has no state")
        self._requests(state.waiting, f"{where}: waiting")
        self._requests(state.running, f"{where}: running")
        names = [identifier for identifier, _ in state.book.references]
        if len(set(names)) < len(names):
            raise InputError(f"{where}: references: an entry is listed twice in {names}")
        for identifier, holders in state.book.references:
            self._requests(holders, f"{where}: references of {identifier!r}")

    def _inputs(self, inputs: Iterable[tuple[int, int]], where: str) -> None:
        for request, feature in inputs:
            self._request(request, where)
            self._feature(request, feature, where)

    def _requests(self, requests: Sequence[int], where: str) -> None:
        for request in requests:
            self._request(request, where)
        _require_distinct(requests, "request", where)

    def _request(self, request: int, where: str) -> None:
        _require_index(request, self._num_requests, "request", where)

    def _feature(self, request: int, feature: int, where: str) -> None:
        count = len(self._prompts.features(request))
        _require_index(feature, count, "feature", f"{where}: request {request}")
