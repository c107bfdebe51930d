"""Rows that say by their values which encoding they are of, and the reading of gathered rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from impl.late import torch
from impl.tensors import RowNumbers, TensorSettings
from spec.errors import InputError
from spec.record.steps import Read, RowRun

Merge: TypeAlias = "Callable[[torch.Tensor, list[torch.Tensor], torch.Tensor], torch.Tensor]"
"""Token embeddings, rows and mask to input embeddings."""

_UNKNOWN = -1
"""Encoding of a row that nobody stored."""


class EncodingCodec:
    """Give every row of every encoding, and every token embedding, values of its own.

    Rows are numbered as encodings are made, from 1 on: a row of zeros is nobody's. Token embeddings
    are numbered from the other end, the same in every batch.

    Args:
        settings: device, dtype and hidden size of all tensors.

    Raises:
        InputError: the device does not exist.
    """

    def __init__(self, settings: TensorSettings) -> None:
        settings.require_device()
        self._numbers = RowNumbers(settings)
        self._capacity = self._numbers.capacity
        self._first_numbers: list[int] = []
        self._next_number = 1
        self._token_embeddings = self._numbers.tensor(torch.empty(0, dtype=torch.int64))

    def new_encoding(self, num_rows: int) -> torch.Tensor:
        """The output of the next encoding, of shape ``(num_rows, hidden_size)``.

        Raises:
            InputError: more rows in this run than the hidden size can tell apart.
        """
        first = self._next_number
        self._require_capacity(first + num_rows, len(self._token_embeddings))
        self._first_numbers.append(first)
        self._next_number += num_rows
        return self._numbers.tensor(torch.arange(first, first + num_rows))

    def token_embeddings(self, num_tokens: int) -> torch.Tensor:
        """The batch's own token embeddings, of shape ``(num_tokens, hidden_size)``.

        Raises:
            InputError: as :meth:`new_encoding`.
        """
        if num_tokens > len(self._token_embeddings):
            self._require_capacity(self._next_number, num_tokens)
            last = self._capacity - 1
            self._token_embeddings = self._numbers.tensor(torch.arange(last, last - num_tokens, -1))
        return self._token_embeddings[:num_tokens]

    def row_runs(self, rows: torch.Tensor) -> tuple[RowRun, ...]:
        """Recognise rows of shape ``(rows, hidden_size)``, consecutive rows of one encoding joined.

        Each run's position is -1.
        """
        return self._runs(((-1, number) for number in self._numbers.read(rows)), by_position=False)

    def merged_runs(self, embeddings: torch.Tensor) -> tuple[RowRun, ...]:
        """Where rows lie in the input embeddings; a token embedding in its own place is left out.

        Args:
            embeddings: shape ``(tokens, hidden_size)``.
        """
        last = self._capacity - 1
        numbers = enumerate(self._numbers.read(embeddings))
        return self._runs(
            ((position, number) for position, number in numbers if number != last - position),
            by_position=True,
        )

    def read(
        self, gathered: Sequence[torch.Tensor], mask: torch.Tensor, num_tokens: int, merge: Merge
    ) -> Read:
        """Recognise what a gather returned, and what the model reads after a merge.

        Args:
            gathered: tensors of shape ``(rows, hidden_size)``.
            mask: bool, shape ``(num_tokens,)``.
            num_tokens: positions of the batch.
            merge: puts rows into a copy of the batch's token embeddings where the mask is true.

        Raises:
            InputError: as :meth:`new_encoding`.
        """
        embeddings = self.token_embeddings(num_tokens).clone()
        merged: tuple[RowRun, ...] = ()
        try:
            joined = merge(embeddings, list(gathered), mask.to(embeddings.device))
        except (ValueError, RuntimeError, IndexError):
            # Rows and mask of different counts: the two are reported as they are.
            pass
        else:
            merged = self.merged_runs(joined)
        return Read(
            rows=self.row_runs(torch.cat(list(gathered))) if gathered else (),
            slices=tuple([len(rows) for rows in gathered]),
            mask=true_ranges(mask),
            merged=merged,
        )

    def _require_capacity(self, next_number: int, num_tokens: int) -> None:
        if next_number + num_tokens > self._capacity:
            raise InputError(
                f"{next_number - 1} encoder rows and {num_tokens} tokens cannot be told apart with "
                f"hidden size {self._numbers.settings.hidden_size}, which has {self._capacity} "
                "values; run fewer passes, without tensors, or with a hidden size of at least 3"
            )

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


def true_ranges(mask: torch.Tensor) -> tuple[tuple[int, int], ...]:
    """Half-open ranges of positions where a mask of one dimension is true, ascending and apart."""
    values = mask.tolist()
    if True not in values:
        return ()
    ranges: list[tuple[int, int]] = []
    start = -1
    for position, is_true in enumerate(values):
        if is_true and start < 0:
            start = position
        elif not is_true and start >= 0:
            ranges.append((start, position))
            start = -1
    if start >= 0:
        ranges.append((start, len(values)))
    return tuple(ranges)
