"""The worker's gathers with tensors whose rows say by their values which encoding they are of."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Protocol

import numpy as np
import torch

from impl.reference.worker.cache import WorkerCache
from impl.reference.worker.merge import merge_embeddings
from impl.reference.worker.row_reader import KnownRequest, true_ranges
from impl.reference.worker.runner_v1 import CachedRequestState, RunnerV1, ScheduledTokens
from impl.reference.worker.runner_v2 import RunnerV2
from impl.target import Runner
from impl.tensors import TensorSettings
from spec.errors import InputError
from spec.functions.observations import request_name
from spec.record.steps import ErrorSeen, Read, RowRun, ScheduledRequest


class RunnerParts(Protocol):
    """The gathers on tensors."""

    @property
    def runner_v1(self) -> type[RunnerV1]:
        """V1's."""

    @property
    def runner_v2(self) -> type[RunnerV2]:
        """V2's."""


_BASE = 200
"""Values stay below this: every float dtype from 16 bits up holds such integers exactly."""

_DIGITS = 3
"""Columns that spell a row's number; the others are checks."""

_UNKNOWN = -1
"""Encoding of a row that nobody stored."""


class EncodingCodec:
    """Give every row of every encoding, and every token embedding, values of its own.

    Rows are numbered as encodings are made, from 1 on: a row of zeros is nobody's. Token embeddings
    are numbered from the other end, the same in every batch.

    Args:
        settings: device, dtype and hidden size of all tensors.
    """

    def __init__(self, settings: TensorSettings) -> None:
        self._settings = settings
        self._capacity = _BASE ** min(settings.hidden_size, _DIGITS)
        self._first_numbers: list[int] = []
        self._next_number = 1
        self._token_embeddings = self._tensor(torch.empty(0, dtype=torch.int64))

    def new_encoding(self, num_rows: int) -> torch.Tensor:
        """The output of the next encoding, of shape ``(num_rows, hidden_size)``.

        Raises:
            InputError: more rows in this run than the hidden size can tell apart.
        """
        first = self._next_number
        self._require_capacity(first + num_rows, len(self._token_embeddings))
        self._first_numbers.append(first)
        self._next_number += num_rows
        return self._tensor(torch.arange(first, first + num_rows))

    def token_embeddings(self, num_tokens: int) -> torch.Tensor:
        """The batch's own token embeddings, of shape ``(num_tokens, hidden_size)``.

        Raises:
            InputError: as :meth:`new_encoding`.
        """
        if num_tokens > len(self._token_embeddings):
            self._require_capacity(self._next_number, num_tokens)
            last = self._capacity - 1
            self._token_embeddings = self._tensor(torch.arange(last, last - num_tokens, -1))
        return self._token_embeddings[:num_tokens]

    def row_runs(self, rows: torch.Tensor) -> tuple[RowRun, ...]:
        """Recognise rows of shape ``(rows, hidden_size)``, consecutive rows of one encoding joined.

        Each run's position is -1.
        """
        return self._runs(((-1, number) for number in self._numbers(rows)), by_position=False)

    def merged_runs(self, embeddings: torch.Tensor) -> tuple[RowRun, ...]:
        """Where rows lie in the input embeddings; a token embedding in its own place is left out.

        Args:
            embeddings: shape ``(tokens, hidden_size)``.
        """
        last = self._capacity - 1
        numbers = enumerate(self._numbers(embeddings))
        return self._runs(
            ((position, number) for position, number in numbers if number != last - position),
            by_position=True,
        )

    def _require_capacity(self, next_number: int, num_tokens: int) -> None:
        if next_number + num_tokens > self._capacity:
            raise InputError(
                f"{next_number - 1} encoder rows and {num_tokens} tokens cannot be told apart with "
                f"hidden size {self._settings.hidden_size}, which has {self._capacity} values; run "
                "fewer passes, without tensors, or with a hidden size of at least 3"
            )

    def _values(self, numbers: torch.Tensor) -> torch.Tensor:
        """Shape ``(numbers, hidden_size)``, on the CPU."""
        return torch.stack(
            [
                numbers // _BASE**column % _BASE
                if column < _DIGITS
                else numbers * (column + 1) % _BASE
                for column in range(self._settings.hidden_size)
            ],
            dim=1,
        )

    def _tensor(self, numbers: torch.Tensor) -> torch.Tensor:
        return self._values(numbers).to(self._settings.device, self._settings.dtype)

    def _numbers(self, rows: torch.Tensor) -> list[int]:
        """Each row's number; 0 where the values are not those of any number."""
        found = rows.to("cpu", torch.float64)
        digits = min(self._settings.hidden_size, _DIGITS)
        weights = torch.tensor([float(_BASE**column) for column in range(digits)]).double()
        numbers = (found[:, :digits] @ weights).long()
        known = (self._values(numbers) == found).all(dim=1)
        return torch.where(known, numbers, 0).tolist()

    def _runs(self, numbers: Iterable[tuple[int, int]], *, by_position: bool) -> tuple[RowRun, ...]:
        runs: list[RowRun] = []
        encoding, first_row, num_rows, start = _UNKNOWN, 0, 0, -1
        for position, number in numbers:
            if 0 < number < self._next_number:
                found = bisect_right(self._first_numbers, number) - 1
                row = number - self._first_numbers[found]
            else:
                # Unknown rows have no number of their own: neighbours count as consecutive.
                found = _UNKNOWN
                row = first_row + num_rows if encoding == _UNKNOWN else 0
            follows = found == encoding and row == first_row + num_rows
            if num_rows and follows and (not by_position or position == start + num_rows):
                num_rows += 1
                continue
            if num_rows:
                runs.append(RowRun(encoding, first_row, num_rows, start))
            first = 0 if found == _UNKNOWN else row
            encoding, first_row, num_rows, start = found, first, 1, position
        if num_rows:
            runs.append(RowRun(encoding, first_row, num_rows, start))
        return tuple(runs)


class TensorGathers:
    """Holds the encoder outputs as tensors, and gathers them with the runner under test.

    Args:
        parts: the implementation.
        runner: which of its runners gathers.
        requests: the requests that the worker knows, by index.
        settings: device, dtype and hidden size of all tensors.

    Raises:
        InputError: the device does not exist.
    """

    def __init__(
        self,
        parts: RunnerParts,
        runner: Runner,
        requests: Mapping[int, KnownRequest],
        settings: TensorSettings,
    ) -> None:
        settings.require_device()
        self._parts = parts
        self._runner = runner
        self._requests = requests
        self._cache = WorkerCache()
        self._codec = EncodingCodec(settings)

    def store(self, identifier: str, num_rows: int) -> None:
        """Keep the output of the next encoding.

        Raises:
            InputError: more rows in this run than the hidden size can tell apart.
        """
        self._cache.store(identifier, self._codec.new_encoding(num_rows))

    def drop(self, identifiers: Iterable[str]) -> None:
        """Drop outputs."""
        self._cache.drop(identifiers)

    def run(self, batch: Sequence[ScheduledRequest], num_tokens: int, look_ahead: int) -> None:
        """Gather and merge; what comes out is lost, errors too."""
        token_embeddings = self._codec.token_embeddings(num_tokens)
        try:
            merge_embeddings(token_embeddings, *self._gather(batch, num_tokens, look_ahead))
        except Exception:
            return

    def read(self, batch: Sequence[ScheduledRequest], num_tokens: int, look_ahead: int) -> Read:
        """Gather and merge, and recognise what came out.

        Args:
            batch: the scheduled requests in their order.
            num_tokens: positions of the batch.
            look_ahead: how far the reader looks ahead of the target (tokens).
        """
        token_embeddings = self._codec.token_embeddings(num_tokens)
        try:
            gathered, is_mm_embed = self._gather(batch, num_tokens, look_ahead)
        except Exception as error:
            return Read(merged=(), error=ErrorSeen(type(error).__name__, str(error)))
        try:
            embeddings = merge_embeddings(token_embeddings, gathered, is_mm_embed)
        except ValueError:
            # Rows and mask of different counts: the two are reported as they are.
            merged: tuple[RowRun, ...] = ()
        else:
            merged = self._codec.merged_runs(embeddings)
        return Read(
            rows=self._codec.row_runs(torch.cat(gathered)) if gathered else (),
            slices=tuple(len(rows) for rows in gathered),
            mask=tuple(true_ranges(is_mm_embed)),
            merged=merged,
        )

    def read_item(self, identifier: str) -> tuple[RowRun, ...] | None:
        """All rows of one output, as cross-attention reads them; ``None`` if it is not resident."""
        output = self._cache.get(identifier)
        return None if output is None else self._codec.row_runs(output)

    def _gather(
        self, batch: Sequence[ScheduledRequest], num_tokens: int, look_ahead: int
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        names = [request_name(scheduled.request) for scheduled in batch]
        num_scheduled_tokens = [scheduled.num_scheduled_tokens for scheduled in batch]
        known = {
            name: (scheduled, self._requests[scheduled.request].features)
            for name, scheduled in zip(names, batch, strict=True)
            if scheduled.request in self._requests
        }
        if self._runner == "V1":
            states = {
                name: CachedRequestState(scheduled.num_computed_tokens, features)
                for name, (scheduled, features) in known.items()
            }
            tokens = ScheduledTokens(
                dict(zip(names, num_scheduled_tokens, strict=True)), num_tokens
            )
            runner_v1 = self._parts.runner_v1(states, names, self._cache)
            return runner_v1.gather_mm_embeddings(tokens, look_ahead)
        mm_features = {name: features for name, (_, features) in known.items()}
        prefill_lens = np.array([scheduled.prefill_len for scheduled in batch], dtype=np.int32)
        computed = np.array([scheduled.num_computed_tokens for scheduled in batch], dtype=np.int32)
        return self._parts.runner_v2(mm_features, self._cache).gather_mm_embeddings(
            names,
            num_tokens,
            np.array(num_scheduled_tokens, dtype=np.int32),
            np.array([0, *accumulate(num_scheduled_tokens)], dtype=np.int32),
            prefill_lens,
            np.minimum(computed, prefill_lens),
            look_ahead,
        )
