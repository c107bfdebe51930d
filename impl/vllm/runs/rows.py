"""Encoder outputs whose rows say which encoding they are of, and the reading of gathered rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from impl.harness.rows import EncodingCodec, Merge, true_ranges
from impl.tensors import TensorSettings
from spec.record.steps import Read, RowRun

NUMBERED = TensorSettings(dtype=torch.float64, hidden_size=2)
"""Settings of runs without tensors of their own: a row holds its encoding's number and its own."""

_NOTHING = Read()


class NumberedRows:
    """Rows that spell their encoding and their own number; cheap, and nothing is merged.

    Attributes:
        nothing: what is read in a pass without tokens.
    """

    settings = NUMBERED
    nothing = _NOTHING

    def __init__(self) -> None:
        self._num_encodings = 0

    def new_encoding(self, num_rows: int) -> torch.Tensor:
        """The output of the next encoding, of shape ``(num_rows, 2)``."""
        output = torch.empty((num_rows, 2), dtype=NUMBERED.dtype)
        output[:, 0] = self._num_encodings
        output[:, 1] = torch.arange(num_rows)
        self._num_encodings += 1
        return output

    def read(self, gathered: Sequence[torch.Tensor], mask: torch.Tensor, num_tokens: int) -> Read:
        """What a gather returned."""
        ranges = true_ranges(mask)
        if not gathered and not ranges:
            return self.nothing
        runs: list[RowRun] = []
        encoding, first, count = -1, 0, 0
        for rows in gathered:
            for number, row in rows.tolist():
                if count and number == encoding and row == first + count:
                    count += 1
                    continue
                if count:
                    runs.append(RowRun(encoding, first, count))
                encoding, first, count = int(number), int(row), 1
        if count:
            runs.append(RowRun(encoding, first, count))
        return Read(tuple(runs), tuple([len(rows) for rows in gathered]), ranges)

    def row_runs(self, output: torch.Tensor) -> tuple[RowRun, ...]:
        """All rows of one output."""
        return self.read([output], torch.zeros(0, dtype=torch.bool), 0).rows


class TensorRows:
    """Rows with values of their own in every dtype and on every device; gathers are merged.

    Args:
        settings: device, dtype and hidden size of all tensors.
        merge: the release's ``_merge_multimodal_embeddings``.

    Attributes:
        nothing: what is read in a pass without tokens: no row is merged, as in all other passes.

    Raises:
        InputError: the device does not exist.
    """

    nothing = Read(merged=())

    def __init__(self, settings: TensorSettings, merge: Merge) -> None:
        self.settings = settings
        self._codec = EncodingCodec(settings)
        self._merge = merge

    def new_encoding(self, num_rows: int) -> torch.Tensor:
        """The output of the next encoding, of shape ``(num_rows, hidden_size)``.

        Raises:
            InputError: more rows in this run than the hidden size can tell apart.
        """
        return self._codec.new_encoding(num_rows)

    def read(self, gathered: Sequence[torch.Tensor], mask: torch.Tensor, num_tokens: int) -> Read:
        """What a gather returned, and what the model reads after the release's own merge.

        Raises:
            InputError: as :meth:`new_encoding`.
        """
        return self._codec.read(gathered, mask, num_tokens, self._merge)

    def row_runs(self, output: torch.Tensor) -> tuple[RowRun, ...]:
        """All rows of one output."""
        return self._codec.row_runs(output)
