"""Rows of the worker's tensors are recognised by their values, and only those."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from impl.harness.rows import EncodingCodec, true_ranges
from impl.tensors import TensorSettings
from spec.errors import InputError
from spec.record.steps import RowRun

DTYPES = [torch.float32, torch.bfloat16, torch.float16]


@given(mask=st.lists(st.booleans(), max_size=12))
def test_true_ranges_cover_the_true_positions(mask):
    """Otherwise masks of features, and of batches, are recorded wrongly."""
    ranges = true_ranges(torch.tensor(mask, dtype=torch.bool))
    covered = [position for low, high in ranges for position in range(low, high)]
    assert covered == [position for position, takes_row in enumerate(mask) if takes_row]
    assert all(low < high for low, high in ranges)
    assert all(left[1] < right[0] for left, right in pairwise(ranges))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_that_nobody_stored_are_unknown(device, dtype):
    """Otherwise overwritten memory passes for a row."""
    codec = EncodingCodec(TensorSettings(device, dtype, 5))
    outputs = [codec.new_encoding(3), codec.new_encoding(2)]
    stranger = torch.tensor([[0] * 5, [1, 0, 0, 0, 0], [0.5] * 5, [float("nan")] * 5])
    rows = torch.cat([outputs[0][1:], outputs[1], stranger.to(device, dtype), outputs[0][:1]])
    assert codec.row_runs(rows) == (
        RowRun(0, 1, 2),
        RowRun(1, 0, 2),
        RowRun(-1, 0, 4),
        RowRun(0, 0, 1),
    )
    tokens = codec.token_embeddings(4)
    assert codec.merged_runs(tokens) == ()
    swapped = torch.cat([tokens[1:2], outputs[0][:1], tokens[:1], tokens[3:]])
    assert codec.merged_runs(swapped) == (
        RowRun(-1, 0, 1, 0),
        RowRun(0, 0, 1, 1),
        RowRun(-1, 0, 1, 2),
    )


def test_many_encodings_keep_their_identities():
    """Otherwise rows of a long run are taken for those of an earlier encoding."""
    codec = EncodingCodec(TensorSettings(dtype=torch.bfloat16))
    outputs = [codec.new_encoding(1 + index % 700) for index in range(300)]
    for index in (0, 1, 199, 200, 299):
        assert codec.row_runs(outputs[index]) == (RowRun(index, 0, 1 + index % 700),)


def test_more_rows_than_values_are_refused():
    """Otherwise two rows look alike."""
    codec = EncodingCodec(TensorSettings(hidden_size=1))
    codec.new_encoding(150)
    codec.token_embeddings(49)
    for more in (lambda: codec.new_encoding(1), lambda: codec.token_embeddings(50)):
        with pytest.raises(InputError, match="hidden size"):
            more()
