"""The eleven situations that the fix's own tests cover (pull request 46315), written anew.

Tensors and expected rows are spelled out here, without the oracle and without a case.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from impl.reference.scheduling.encoder_cache import EncoderCacheManager
from impl.reference.scheduling.free import free_encoder_inputs
from impl.reference.scheduling.request import MultiModalFeature, PlaceholderRange, Request
from impl.reference.worker.cache import WorkerCache
from impl.reference.worker.runner_v1 import CachedRequestState, RunnerV1, ScheduledTokens
from impl.reference.worker.runner_v2 import RunnerV2

HIDDEN_SIZE = 8
PROMPT_LEN = 12


def feature(identifier: str, offset: int, length: int) -> MultiModalFeature:
    return MultiModalFeature(identifier, PlaceholderRange(offset, length))


IMAGE = feature("image", 0, 4)
NEXT_IMAGE = feature("next-image", 4, 4)


def output(value: int, device: str) -> torch.Tensor:
    """Four rows that hold ``value``, ``value + 1``..."""
    first_column = torch.arange(value, value + 4, dtype=torch.float32, device=device)
    return first_column[:, None].expand(4, HIDDEN_SIZE).clone()


def worker_with(device: str, **outputs: int) -> WorkerCache:
    worker = WorkerCache()
    for identifier, value in outputs.items():
        worker.store(identifier.replace("_", "-"), output(value, device))
    return worker


def gather_v1(worker: WorkerCache, *, look_ahead: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    """One request, four tokens from the start: the target processes the first image."""
    states = {"request": CachedRequestState(0, [IMAGE, NEXT_IMAGE])}
    runner = RunnerV1(states, ["request"], worker)
    return runner.gather_mm_embeddings(ScheduledTokens({"request": 4}, 4), look_ahead)


def gather_v2(worker: WorkerCache, *, look_ahead: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The same with the newer worker."""
    runner = RunnerV2({"request": [IMAGE, NEXT_IMAGE]}, worker)
    return runner.gather_mm_embeddings(
        ["request"],
        4,
        np.array([4], dtype=np.int32),
        np.array([0, 4], dtype=np.int32),
        np.array([PROMPT_LEN], dtype=np.int32),
        np.array([0], dtype=np.int32),
        look_ahead,
    )


RUNNERS = pytest.mark.parametrize("gather", [gather_v1, gather_v2], ids=["V1", "V2"])


def values(rows: list[torch.Tensor]) -> list[list[float]]:
    return [tensor[:, 0].tolist() for tensor in rows]


@RUNNERS
def test_boundary_feature_is_used_when_cached(gather, device):
    """Otherwise the drafter loses a row that is there."""
    rows, mask = gather(worker_with(device, image=10, next_image=20), look_ahead=1)
    assert values(rows) == [[11, 12, 13], [20]]
    assert mask.tolist() == [True, True, True, True]
    assert mask.device.type == "cpu"
    assert all(tensor.device.type == device for tensor in rows)


@RUNNERS
def test_boundary_feature_missing_is_tolerated(gather, device):
    """Otherwise a drafter's look-ahead stops the engine."""
    rows, mask = gather(worker_with(device, image=10), look_ahead=1)
    assert values(rows) == [[11, 12, 13]]
    assert mask.tolist() == [True, True, True, False]


@RUNNERS
def test_interior_miss_raises_for_the_drafter(gather, device):
    """Otherwise a broken invariant goes unseen."""
    with pytest.raises(RuntimeError, match=r"\bimage\b"):
        gather(worker_with(device, next_image=20), look_ahead=1)


@RUNNERS
def test_miss_raises_for_the_target(gather, device):
    """Otherwise the model's output is wrong without a word."""
    with pytest.raises(RuntimeError, match=r"\bimage\b"):
        gather(worker_with(device, next_image=20), look_ahead=0)


@pytest.mark.parametrize(
    ("look_ahead", "expected", "expected_mask"),
    [
        (0, [[10, 11], [32, 33]], "TT FTT F"),
        (1, [[11, 12], [32, 33]], "TT TTF F"),
    ],
    ids=["target", "drafter"],
)
def test_v2_with_several_requests_in_one_batch(look_ahead, expected, expected_mask, device):
    """Otherwise rows of one request land on positions of another."""
    last = MultiModalFeature(
        "last", PlaceholderRange(5, 6, torch.tensor([True, True, False, True, True, False]))
    )
    runner = RunnerV2(
        {"first": [IMAGE], "second": [last], "decoding": [feature("gone", 0, 2)]},
        worker_with(device, image=10, last=30),
    )
    rows, mask = runner.gather_mm_embeddings(
        ["first", "second", "decoding"],
        6,
        np.array([2, 3, 1], dtype=np.int32),
        np.array([0, 2, 5, 6], dtype=np.int32),
        np.array([PROMPT_LEN, PROMPT_LEN, 3], dtype=np.int32),
        np.array([0, 7, 3], dtype=np.int32),
        look_ahead,
    )
    assert values(rows) == expected
    assert mask.tolist() == [letter == "T" for letter in expected_mask.replace(" ", "")]


def freed_at(progress: int, margin: int) -> bool:
    """Whether a request at the given progress has let go of the first image, which ends at 4."""
    manager = EncoderCacheManager(4)
    request = Request("request", [IMAGE], num_computed_tokens=progress)
    assert manager.can_allocate(request, 0, 4, 0)
    manager.allocate(request, 0)
    gone = free_encoder_inputs(request, manager, margin=margin)
    assert gone == ([] if manager.references["image"] else [0])
    return bool(gone)


def test_free_is_deferred_for_a_drafter():
    """Otherwise the margin of releases 0.24 to 0.32 cannot be modelled."""
    assert [freed_at(progress, margin=1) for progress in (3, 4, 5)] == [False, False, True]


def test_free_is_unchanged_without_a_drafter():
    """Otherwise references are held longer than needed."""
    assert [freed_at(progress, margin=0) for progress in (3, 4, 5)] == [False, True, True]
