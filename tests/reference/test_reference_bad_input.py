"""Bad input is refused with a message that says what, where and what to do."""

from __future__ import annotations

import pytest
import torch

from impl.reference.scheduling.request import PlaceholderRange
from impl.targets.functions import ReferenceTarget
from impl.tensors import TensorSettings
from spec.errors import InputError
from spec.functions.cases import (
    BookCase,
    BookOperation,
    EncoderOutput,
    FreeCase,
    GatherCase,
    GatherRequest,
    Progress,
    RowRangeCase,
)
from spec.record.feature import Feature

A, B = Feature(0, 4, "A"), Feature(4, 4, "B")


def gather(features: tuple[Feature, ...], *resident: EncoderOutput) -> GatherCase:
    return GatherCase((GatherRequest(0, 4, 9, features),), resident, 1)


@pytest.mark.parametrize("runner", ["V1", "V2"])
@pytest.mark.parametrize(
    ("case", "message"),
    [
        (gather((B, A)), r"request 0: feature 1 \(A\[0,4\)\) starts before feature 0 .*; sort"),
        (gather((A, Feature(2, 4, "B"))), r"request 0: features 0 .* and 1 .* overlap"),
        (gather((A,), EncoderOutput("A", 3)), r"output 'A' has 3 rows but its features take 4"),
        (gather((A,), EncoderOutput("A", 5)), r"output 'A' has 5 rows but its features take 4"),
        (gather((A,), *[EncoderOutput("A", 4)] * 2), r"output 'A' is listed twice"),
        (gather((Feature(8, 2, "A"),)), r"end by the prefill length 9"),
    ],
    ids=["order", "overlap", "rows too few", "rows too many", "listed twice", "past the prefill"],
)
def test_gather_refuses(case, message, runner, reference):
    """Otherwise an impossible batch is reported as a fault of the code under test."""
    with pytest.raises(InputError, match=message):
        reference.gather(case, runner, TensorSettings())


def test_mask_of_another_length_is_refused():
    """Otherwise rows are counted beyond the feature, or not at all."""
    with pytest.raises(InputError, match="its mask has 3 entries but the feature spans 4 tokens"):
        Feature(0, 4, "A", (True, False, True))
    with pytest.raises(InputError, match=r"shape \(3,\); give one bool per position, shape \(4,\)"):
        PlaceholderRange(0, 4, torch.ones(3, dtype=torch.bool))
    with pytest.raises(InputError, match=r"its mask is torch.int64"):
        PlaceholderRange(0, 4, torch.ones(4, dtype=torch.int64))


def test_free_refuses_what_cannot_fit(reference):
    """Otherwise the case starts from a book that no engine can have."""
    with pytest.raises(InputError, match="take 8 rows but the cache has 4"):
        reference.free(FreeCase((A, B), 4, (Progress(4),)))


def test_book_refuses_unknown_features(reference):
    """Otherwise an operation on nothing counts as checked."""
    with pytest.raises(InputError, match="operation 0: no feature 1 of request 0"):
        reference.book(BookCase(4, ((A,),), (BookOperation("take", 0, 1),)))


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (BookOperation("take", 0, 0, -1), "encoder budget -1 .* neither can be negative"),
        (BookOperation("take", 0, 0, None, -1), "-1 rows chosen before; neither can be negative"),
        (BookOperation("drop", 0, 0, 4), "operation 0: drop with an encoder budget"),
        (BookOperation("end_pass", num_rows_chosen=1), "only a take is held to them"),
    ],
)
def test_book_refuses_limits_that_mean_nothing(operation, message, reference):
    """Otherwise a limit that nothing looks at counts as checked."""
    with pytest.raises(InputError, match=message):
        reference.book(BookCase(4, ((A,),), (operation,)))


def test_row_range_refuses_positions_outside_the_mask(reference):
    """Otherwise rows are read that do not exist."""
    with pytest.raises(InputError, match=r"\[0,3\) does not lie in a mask of 2 positions"):
        reference.row_range(RowRangeCase((True, False), 0, 3))


def test_cuda_asked_for_and_absent(reference, monkeypatch):
    """Otherwise a check that should run on CUDA fails far from its cause, or runs on the CPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="cuda was asked for but no CUDA device is available"):
        reference.gather(gather((A,)), "V1", TensorSettings("cuda"))


def test_unknown_device(reference):
    """Otherwise a misspelt device shows as a traceback of torch."""
    with pytest.raises(InputError, match="unknown device 'gpu'; use cpu or cuda"):
        reference.gather(gather((A,)), "V2", TensorSettings("gpu"))


def test_rows_that_cannot_be_told_apart(reference):
    """Otherwise two rows carry the same values and a swap goes unseen."""
    big = Feature(0, 300, "A")
    case = GatherCase((GatherRequest(0, 4, 300, (big,)),), (EncoderOutput("A", 300),), 0)
    with pytest.raises(InputError, match="cannot be told apart with hidden size 1"):
        reference.gather(case, "V1", TensorSettings(hidden_size=1))


def test_unknown_fault():
    """Otherwise a misspelt switch leaves the correct implementation in place."""
    with pytest.raises(InputError, match=r"unknown fault 'none-such'; known faults: .*own-size"):
        ReferenceTarget(["none-such"])
