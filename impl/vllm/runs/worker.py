"""Our worker around a release's own functions, in the order of that release's runner."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from impl.vllm.functions.objects import observed
from impl.vllm.launch.worker_order import Duty
from impl.vllm.runs.rows import NumberedRows, TensorRows
from impl.vllm.runs.runners import Store, UnknownRequestError
from spec.functions.observations import request_name
from spec.record.quick import quick
from spec.record.scenario import Scenario
from spec.record.steps import Encoding, ErrorSeen, Read, RowRun, WorkerSeen

_worker_seen = quick(WorkerSeen)


class Worker:
    """Applies outputs in order.

    Args:
        scenario: for the rows of each input.
        store: what the runner keeps.
        rows: makes encoder outputs, and reads gathered rows.
        order: what the runner does before it gathers, in its order.
    """

    def __init__(
        self,
        scenario: Scenario,
        store: Store,
        rows: NumberedRows | TensorRows,
        order: Sequence[Duty],
    ) -> None:
        self._scenario = scenario
        self._store = store
        self._rows = rows
        self._order = order
        self._look_ahead = scenario.config.gather_lookahead
        self._is_encoder_decoder = scenario.config.is_encoder_decoder
        self._indices = {request_name(i): i for i in range(len(scenario.requests))}
        self._num_rows = [
            [feature.num_rows for feature in request.all_features()]
            for request in scenario.requests
        ]
        self._numbers: dict[str, int] = {}
        self._num_encodings = 0
        self._encoded: list[Encoding] = []
        # V2 hands an encoder-decoder model's outputs to cross-attention and keeps none for later.
        self._keeps_outputs = not (self._is_encoder_decoder and store.forgets_preempted)
        self._fresh: list[str] = []
        self._payload: dict[str, set[int]] = {}
        self._contents: tuple[tuple[str, int], ...] = ()

    def execute(self, output: Any) -> WorkerSeen:
        """Apply one output and say what was seen."""
        error = self._apply(output)
        received, forgotten = self._payload_changes(output)
        read, drafter = Read(error=error), None
        if error is None:
            read = self._read_items(output) if self._is_encoder_decoder else self._gather(output, 0)
        if self._look_ahead:
            drafter = Read(error=error) if error else self._gather(output, self._look_ahead)
        contents = tuple([(name, self._numbers[name]) for name in self._store.outputs])
        if contents != self._contents:
            # Contents that stay are the same object, so that whoever judges them can tell.
            self._contents = contents
        return _worker_seen(
            received,
            forgotten,
            tuple(self._encoded),
            self._contents,
            read,
            drafter,
        )

    def advance(self, output: Any) -> None:
        """Apply one output; what is read is lost, errors too."""
        if self._apply(output) is not None or self._is_encoder_decoder:
            return
        for look_ahead in (0, self._look_ahead) if self._look_ahead else (0,):
            if output.num_scheduled_tokens:
                with suppress(Exception):
                    self._store.gather(output.num_scheduled_tokens, look_ahead)

    def reset(self) -> None:
        """Drop all tensors; requests and their raw data stay."""
        self._store.outputs.clear()

    def _apply(self, output: Any) -> ErrorSeen | None:
        """Do all that comes before the gathers, up to an error."""
        self._encoded = []
        try:
            for duty in self._order:
                match duty:
                    case "forget":
                        self._forget(output)
                    case "free":
                        for name in output.free_encoder_mm_hashes:
                            self._store.outputs.pop(name, None)
                    case "add":
                        for new in output.scheduled_new_reqs:
                            self._store.add(new)
                    case "update":
                        cached_reqs = output.scheduled_cached_reqs
                        for name, progress in zip(
                            cached_reqs.req_ids, cached_reqs.num_computed_tokens, strict=True
                        ):
                            self._store.update(name, progress)
                    case "payload":
                        for name, changes in output.encoder_input_updates.items():
                            self._store.change_payload(name, changes)
                    case "encode":
                        self._encode(output)
        except UnknownRequestError as error:
            return ErrorSeen(KeyError.__name__, str(error))
        except (KeyError, IndexError, AttributeError) as error:
            return observed(error)
        return None

    def _forget(self, output: Any) -> None:
        names = set(output.finished_req_ids)
        if self._store.forgets_preempted:
            names |= getattr(output, "preempted_req_ids", None) or set()
        for name in sorted(names):
            self._store.forget(name)

    def _encode(self, output: Any) -> None:
        self._fresh = []
        if not self._keeps_outputs:
            self._store.outputs.clear()
        if not output.scheduled_encoder_inputs:
            return
        # The runner looks at all inputs before it runs the encoder on any.
        wanted = [
            (name, feature)
            for name, features in output.scheduled_encoder_inputs.items()
            for feature in features
            if self._store.wants(name, feature)
        ]
        for name, feature in wanted:
            index = self._indices[name]
            num_rows = self._num_rows[index][feature]
            tensor = self._rows.new_encoding(num_rows)
            identifier = self._scenario.requests[index].all_features()[feature].identifier
            self._store.outputs[identifier] = tensor
            self._fresh.append(identifier)
            self._numbers[identifier] = self._num_encodings
            self._encoded.append(Encoding(self._num_encodings, index, feature, num_rows))
            self._num_encodings += 1

    def _gather(self, output: Any, look_ahead: int) -> Read:
        if not output.num_scheduled_tokens:
            return self._rows.nothing
        try:
            gathered, mask = self._store.gather(output.num_scheduled_tokens, look_ahead)
        except Exception as error:
            return Read(error=observed(error))
        return self._rows.read(gathered, mask, output.total_num_scheduled_tokens)

    def _read_items(self, output: Any) -> Read:
        """What cross-attention reads: the outputs of the encoder in this very step.

        Each request reads its own output; of two for one hash, the last one stands for both.
        """
        rows: tuple[RowRun, ...] = ()
        for identifier in self._fresh:
            rows += self._rows.row_runs(self._store.outputs[identifier])
        return Read(rows)

    def _payload_changes(self, output: Any) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
        """Which raw data came, and which requests the worker forgot.

        Releases that let go of raw data input by input, once it was used, do so unseen, until an
        input is to be encoded whose data is gone: then the request counts as forgotten, and what is
        left of its data as received again.
        """
        gone = set(output.finished_req_ids) | (getattr(output, "preempted_req_ids", None) or set())
        updates = getattr(output, "encoder_input_updates", ())
        if not (gone or updates or output.scheduled_new_reqs or output.scheduled_encoder_inputs):
            return (), ()
        received: list[tuple[int, int]] = []
        forgotten: list[int] = []
        for name in sorted(gone):
            if self._store.payload(name) is None and self._payload.pop(name, None) is not None:
                forgotten.append(self._indices[name])
        installed = dict.fromkeys([new.req_id for new in output.scheduled_new_reqs])
        sent = dict(installed)
        sent.update(dict.fromkeys(updates))
        for name in sent:
            now = self._store.payload(name) or set()
            at_hand = self._payload.setdefault(name, set())
            index = self._indices[name]
            if name in installed and not at_hand <= now:
                # A streaming request's next turn takes the place of all that was known of it, and
                # comes without the data of items that it has passed.
                forgotten.append(index)
                at_hand.clear()
            received += [(index, feature) for feature in sorted(now - at_hand)]
            at_hand |= now
        for name, features in output.scheduled_encoder_inputs.items():
            at_hand, now = self._payload.get(name, set()), self._store.payload(name) or set()
            if not now.issuperset(at_hand.intersection(features)):
                index = self._indices[name]
                forgotten.append(index)
                received += [(index, feature) for feature in sorted(now)]
                self._payload[name] = now
        return tuple(received), tuple(forgotten)
