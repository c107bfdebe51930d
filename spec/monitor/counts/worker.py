"""Encoder inputs and the worker: what was allocated is encoded, and what is held was encoded.

Part of the claim ``counts-agree``, with :mod:`spec.monitor.counts.counts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from spec.history.history import History
from spec.history.log import FindingLog
from spec.record.steps import PassSeen, RequestState, Step, WorkerSeen

CLAIM = "counts-agree"


class WorkerMonitor:
    """Judge what is sent to the worker, and what it does with it.

    Args:
        history: the run so far, the step included.
        log: where findings go.
    """

    def __init__(self, history: History, log: FindingLog) -> None:
        self._history = history
        self._config = history.config
        self._log = log
        self._contents: Sequence[tuple[str, int]] = ()
        self._was_reset = False

    def observe(self, step: Step, states: Mapping[int, RequestState]) -> None:
        """Judge a step, given the state of each request before it."""
        if step.kind == "event":
            self._was_reset = self._was_reset or step.event == "reset"
        elif step.kind == "pass":
            if step.encoder_inputs:
                self._check_inputs(step)
            if step.worker is not None:
                self._check_worker(step, step.worker)
                self._check_forgotten(step, step.worker, states)

    def _note(
        self, mechanism: str, observed: str, expected: str, request: int | None = None
    ) -> None:
        self._log.add(CLAIM, mechanism, observed=observed, expected=expected, request=request)

    def _check_inputs(self, step: PassSeen) -> None:
        """Inputs to encode were allocated in the pass, by their request or by a victim of it."""
        history = self._history
        rows = 0
        own: set[tuple[int, int]] = set()
        for_others: Counter[str] = Counter()
        for call in step.calls:
            if call.method == "allocate":
                own.add((call.request, call.feature))
                if call.request in step.preempted:
                    for_others[history.feature(call.request, call.feature).identifier] += 1
            elif call.method == "cancel":
                own.discard((call.request, call.feature))
        for key in step.encoder_inputs:
            feature = history.feature(*key)
            rows += feature.num_rows
            if key in own:
                own.discard(key)
            elif for_others[feature.identifier] > 0:
                for_others[feature.identifier] -= 1
            else:
                self._note(
                    "input to encode that nobody allocated",
                    f"{feature.describe()} of request {key[0]} is to be encoded",
                    "inputs allocated in the pass, each once",
                    key[0],
                )
        if rows > self._config.encoder_compute_budget:
            self._note(
                "encoder inputs over the encoder budget",
                f"{rows} rows to encode",
                f"at most {self._config.encoder_compute_budget}",
            )

    def _check_worker(self, step: PassSeen, worker: WorkerSeen) -> None:
        history = self._history
        if worker.encoded:
            inputs = iter(step.encoder_inputs)
            for encoding in worker.encoded:
                key = (encoding.request, encoding.feature)
                if key not in inputs or encoding.num_rows != history.feature(*key).num_rows:
                    self._note(
                        "encoding that was not asked for",
                        f"{encoding}",
                        f"the inputs {list(step.encoder_inputs)}, in their order and with their "
                        "rows",
                        encoding.request,
                    )
        if worker.contents is not self._contents or step.notices:
            self._check_contents(step, worker)
        self._contents = worker.contents
        self._was_reset = False
        if worker.received:
            started = {s.request for s in step.scheduled if s.started}
            # After a fall of progress the data may come once more with the input that needs it.
            if len(set(worker.received)) < len(worker.received) or any(
                key[0] not in started and key not in step.encoder_inputs for key in worker.received
            ):
                self._note(
                    "raw data that nobody needs",
                    f"the worker received {list(worker.received)}",
                    f"features of the requests that start, {sorted(started)}, and inputs to "
                    f"encode, {list(step.encoder_inputs)}, each once",
                )

    def _check_contents(self, step: PassSeen, worker: WorkerSeen) -> None:
        """Tensors come by encoding and go by notices; what the book still has is views-agree's."""
        history = self._history
        encoded = {
            (history.feature(e.request, e.feature).identifier, e.number) for e in worker.encoded
        }
        held = {name for name, _ in self._contents}
        strange = set(worker.contents) - encoded - set(self._contents)
        if strange or len(history.contents) < len(worker.contents):
            self._note(
                "tensor from nowhere",
                f"the worker holds {list(worker.contents)}",
                "each hash once, with what it held before or was encoded in the pass",
            )
        lost = held - history.contents.keys() - history.references.keys() - set(step.notices)
        if lost and not self._was_reset:
            self._note(
                "tensor dropped without a notice",
                f"the worker dropped {sorted(lost)}",
                f"it drops what it is told to: {list(step.notices)}",
            )
        if self._config.is_encoder_decoder:
            # Requests that share a hash let go of it one after the other.
            held = {f.identifier for r in history.requests for f in r.layout.features}
        accounted = held.union(history.previous_references, *history.allocated.values())
        unknown = [name for name in step.notices if name not in accounted]
        if unknown:
            self._note(
                "notice of something that was never there",
                f"the worker is told to drop {unknown}",
                "hashes that were in the book or on the worker",
            )

    def _check_forgotten(
        self, step: PassSeen, worker: WorkerSeen, states: Mapping[int, RequestState]
    ) -> None:
        history = self._history
        for request in worker.forgotten:
            status = history.requests[request].status
            if status == "running" and not any(
                s.request == request and s.started for s in step.scheduled
            ):
                self._note(
                    "raw data of a running request forgotten",
                    f"the worker forgot request {request}",
                    "it forgets requests that ended or were preempted",
                    request,
                )
        for request, before in states.items():
            if before.status == "finished" and history.requests[request].payload:
                self._note(
                    "raw data of an ended request kept",
                    f"the worker still knows request {request}",
                    "it forgets a request with the first output after its end",
                    request,
                )
