"""The worker: applies the scheduler's outputs in V1's or V2's order and reads rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from impl.reference.scheduling.output import SchedulerOutput
from impl.reference.worker.row_reader import (
    CachedRequest,
    HeldOutput,
    Piece,
    RowReaderV1,
    RowReaderV2,
)
from impl.reference.worker.tensors import RunnerParts, TensorGathers
from impl.target import Runner, error_seen
from impl.tensors import TensorSettings
from spec.functions.observations import request_name
from spec.record.quick import quick
from spec.record.steps import Encoding, ErrorSeen, Read, RowRun, ScheduledRequest, WorkerSeen

_NOTHING_READ = Read()
_worker_seen = quick(WorkerSeen)


class Gathers(Protocol):
    """Encoder outputs and the gathers that read them, with tensors or on rows alone."""

    def store(self, identifier: str, num_rows: int) -> None:
        """Keep the output of the next encoding."""
        ...

    def drop(self, identifiers: Iterable[str]) -> None:
        """Drop outputs."""
        ...

    def run(self, batch: Sequence[ScheduledRequest], num_tokens: int, look_ahead: int) -> None:
        """Gather; what comes out is lost, errors too."""
        ...

    def read(self, batch: Sequence[ScheduledRequest], num_tokens: int, look_ahead: int) -> Read:
        """Gather and say what came out."""
        ...

    def read_item(self, identifier: str) -> tuple[RowRun, ...] | None:
        """All rows of one output; ``None`` if it is not resident."""
        ...


class RowGathers:
    """The gathers on integers.

    Args:
        outputs: the encoder outputs that the worker holds, by hash; it keeps them up to date.
    """

    def __init__(self, reader: RowReaderV1 | RowReaderV2, outputs: dict[str, HeldOutput]) -> None:
        self._gather = reader.gather
        self._outputs = outputs

    def store(self, identifier: str, num_rows: int) -> None:
        """There is nothing to keep besides what the worker notes."""

    def drop(self, identifiers: Iterable[str]) -> None:
        """There is nothing to drop besides what the worker notes."""

    def run(self, batch: Sequence[ScheduledRequest], num_tokens: int, look_ahead: int) -> None:
        """Gather; what comes out is lost, errors too."""
        try:
            self._gather(batch, look_ahead)
        except Exception:
            return

    def read(self, batch: Sequence[ScheduledRequest], num_tokens: int, look_ahead: int) -> Read:
        """Gather and say what came out."""
        try:
            pieces, mask = self._gather(batch, look_ahead)
        except Exception as error:
            return Read(error=error_seen(error))
        if not pieces and not mask:
            return _NOTHING_READ
        slices = tuple([last_row - first_row for _, first_row, last_row in pieces])
        return Read(_joined(pieces), slices, tuple(mask))

    def read_item(self, identifier: str) -> tuple[RowRun, ...] | None:
        """All rows of one output; ``None`` if it is not resident."""
        output = self._outputs.get(identifier)
        return None if output is None else (RowRun(output.encoding, 0, output.num_rows),)


def _joined(pieces: Sequence[Piece]) -> tuple[RowRun, ...]:
    """The pieces as runs, consecutive rows of one encoding joined."""
    runs: list[RowRun] = []
    start, end = (-1, 0), (-1, 0)
    for encoding, first_row, last_row in pieces:
        if first_row == last_row:
            continue
        if (encoding, first_row) == end:
            runs.pop()
        else:
            start = (encoding, first_row)
        end = (encoding, last_row)
        runs.append(RowRun(*start, last_row - start[1]))
    return tuple(runs)


class WorkerParts(RunnerParts, Protocol):
    """The gathers, on tensors and on rows alone."""

    @property
    def row_reader_v1(self) -> type[RowReaderV1]:
        """V1's, on rows."""

    @property
    def row_reader_v2(self) -> type[RowReaderV2]:
        """V2's, on rows."""


class Worker:
    """Applies outputs in order, and says what it did.

    In each step: forget the requests that ended, drop the freed hashes, take in new requests, run
    the encoder, gather for the target, gather for the drafter. V1 keeps preempted requests and
    encodes whatever it is told to. V2 forgets preempted requests too, and does not encode what it
    holds (releases from 0.28.0 on). An input whose raw data is not at hand is not encoded.

    Args:
        runner: whose order and gathers.
        gather_lookahead: how far the drafter looks ahead of the target (tokens); 0 without one.
        is_encoder_decoder: encoder outputs are read by cross-attention in a request's first step,
            and nothing is gathered.
        tensors: device, dtype and hidden size; ``None`` works on rows alone.

    Raises:
        InputError: the device does not exist.
    """

    def __init__(
        self,
        parts: WorkerParts,
        runner: Runner,
        *,
        gather_lookahead: int,
        is_encoder_decoder: bool,
        tensors: TensorSettings | None,
    ) -> None:
        self._is_v2 = runner == "V2"
        self._gather_lookahead = gather_lookahead
        self._is_encoder_decoder = is_encoder_decoder
        self._requests: dict[int, CachedRequest] = {}
        self._outputs: dict[str, HeldOutput] = {}
        self._num_encodings = 0
        self._contents: tuple[tuple[str, int], ...] | None = ()
        self._gathers: Gathers
        if tensors is None:
            reader = parts.row_reader_v2 if self._is_v2 else parts.row_reader_v1
            self._gathers = RowGathers(reader(self._requests, self._outputs), self._outputs)
        else:
            self._gathers = TensorGathers(parts, runner, self._requests, tensors)

    def execute(self, output: SchedulerOutput) -> WorkerSeen:
        """Apply one output and record what was seen.

        Raises:
            InputError: the tensors' values no longer suffice to tell all rows of the run apart.
        """
        forgotten, encoded = self._apply(output)
        batch, num_tokens = output.scheduled, output.total_num_scheduled_tokens
        drafter = None
        if self._is_encoder_decoder:
            target = self._read_items(batch)
        else:
            target = self._gathers.read(batch, num_tokens, 0)
            if self._gather_lookahead:
                drafter = self._gathers.read(batch, num_tokens, self._gather_lookahead)
        if self._contents is None:
            self._contents = tuple([(name, held[0]) for name, held in self._outputs.items()])
        received: tuple[tuple[int, int], ...] = ()
        if output.new_requests:
            received = tuple(
                [
                    (new.request, feature)
                    for new in output.new_requests
                    for feature in new.raw_inputs
                ]
            )
        return _worker_seen(
            received, tuple(forgotten), tuple(encoded), self._contents, target, drafter
        )

    def advance(self, output: SchedulerOutput) -> None:
        """Apply one output without recording.

        Raises:
            InputError: as :meth:`execute`.
        """
        self._apply(output)
        batch, num_tokens = output.scheduled, output.total_num_scheduled_tokens
        if self._is_encoder_decoder:
            self._read_items(batch)
            return
        self._gathers.run(batch, num_tokens, 0)
        if self._gather_lookahead:
            self._gathers.run(batch, num_tokens, self._gather_lookahead)

    def reset(self) -> None:
        """Drop all tensors; requests and their raw data stay."""
        self._drop(list(self._outputs))

    def _apply(self, output: SchedulerOutput) -> tuple[Sequence[int], Sequence[Encoding]]:
        """Do all that comes before the gathers.

        Returns:
            The requests forgotten, and the runs of the encoder.
        """
        forgotten: Sequence[int] = ()
        if output.finished or output.preempted:
            leaving = [*output.finished, *output.preempted] if self._is_v2 else output.finished
            forgotten = [
                request for request in leaving if self._requests.pop(request, None) is not None
            ]
        if output.free_encoder_mm_hashes:
            self._drop(output.free_encoder_mm_hashes)
        for new in output.new_requests:
            cached = self._requests.get(new.request)
            # The raw data of earlier turns is still there; what came with them is not sent again.
            at_hand = () if cached is None else cached.raw_inputs
            self._requests[new.request] = CachedRequest(
                new.mm_features, (*at_hand, *new.raw_inputs)
            )
        encoded = self._encode(output.encoder_inputs) if output.encoder_inputs else ()
        return forgotten, encoded

    def _drop(self, identifiers: Sequence[str]) -> None:
        for identifier in identifiers:
            self._outputs.pop(identifier, None)
        self._gathers.drop(identifiers)
        self._contents = None

    def _encode(self, encoder_inputs: Sequence[tuple[int, int]]) -> list[Encoding]:
        encoded: list[Encoding] = []
        for request, index in encoder_inputs:
            cached = self._requests.get(request)
            if cached is None or index not in cached.raw_inputs:
                continue
            feature = cached.features[index]
            identifier, num_rows = feature.identifier, feature.mm_position.num_rows
            if self._is_v2 and self._holds(identifier, num_rows):
                continue
            self._gathers.store(identifier, num_rows)
            self._outputs[identifier] = HeldOutput(self._num_encodings, num_rows)
            encoded.append(Encoding(self._num_encodings, request, index, num_rows))
            self._num_encodings += 1
        self._contents = None
        return encoded

    def _holds(self, identifier: str, num_rows: int) -> bool:
        """Whether a tensor of as many rows is present, so that encoding again is needless."""
        held = self._outputs.get(identifier)
        return held is not None and held.num_rows == num_rows

    def _read_items(self, batch: Sequence[ScheduledRequest]) -> Read:
        """What cross-attention reads: the items of the requests that take their first step."""
        rows: list[RowRun] = []
        for scheduled in batch:
            if scheduled.num_computed_tokens:
                continue
            name = request_name(scheduled.request)
            cached = self._requests.get(scheduled.request)
            if cached is None:
                return Read(error=ErrorSeen("KeyError", repr(name)))
            for feature in cached.features:
                item = self._gathers.read_item(feature.identifier)
                if item is None:
                    message = f"encoder output {feature.identifier} of {name} is not resident"
                    return Read(error=ErrorSeen("RuntimeError", message))
                rows += item
        return Read(tuple(rows)) if rows else _NOTHING_READ
