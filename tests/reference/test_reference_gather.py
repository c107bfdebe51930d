"""The reference's gathers and its merge equal the oracle, at value level."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from impl.reference.scheduling.request import MultiModalFeature, PlaceholderRange
from impl.reference.worker.cache import WorkerCache
from impl.reference.worker.merge import merge_embeddings
from impl.reference.worker.runner_v2 import RunnerV2
from impl.target import RUNNERS
from impl.targets.functions import ReferenceTarget
from impl.tensors import RowCodec, TensorSettings
from proofs.search.functions.strategies import gather_cases
from spec.claims.texts import function_claim
from spec.functions.cases import GatherCase
from spec.functions.gather import InteriorMiss, expected_gather, read_features
from spec.monitor.functions.observed import check, check_runners_agree, in_common_domain

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
HIDDEN_SIZES = st.sampled_from([2, 3, 16])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(case=gather_cases(), hidden_size=HIDDEN_SIZES)
def test_gather_equals_the_oracle(device, dtype, case, hidden_size):
    """Otherwise a row, the mask, a merged embedding or an error is wrong, or the runners differ."""
    tensors = TensorSettings(device, dtype, hidden_size)
    target = ReferenceTarget()
    seen = [target.gather(case, runner, tensors) for runner in RUNNERS]
    for observation in seen:
        assert check(case, observation, target.name) == ()
        expected = expected_gather(case)
        if isinstance(expected, InteriorMiss):
            assert observation.error is not None
            assert observation.error.type == "RuntimeError"
            assert observation.error.names(expected.identifier)
        else:
            assert observation.merged == expected.positions
    assert check_runners_agree(case, *seen, target.name) == ()


def _v2(case: GatherCase) -> tuple[RunnerV2, list[str]]:
    tensors = TensorSettings()
    codec = RowCodec(tensors, {o.identifier: o.num_rows for o in case.resident}, 0)
    worker = WorkerCache()
    for stored in case.resident:
        worker.store(stored.identifier, codec.output(stored.identifier, stored.num_rows))
    names = [f"r{index}" for index in range(len(case.requests))]
    features = {
        name: [
            MultiModalFeature(
                f.identifier,
                PlaceholderRange(
                    f.offset, f.length, None if f.is_embed is None else torch.tensor(f.is_embed)
                ),
            )
            for f in request.features
        ]
        for name, request in zip(names, case.requests, strict=True)
    }
    return RunnerV2(features, worker), names


@given(gather_cases())
def test_both_forms_of_v2s_signature_agree(case):
    """Otherwise a later release's call would gather other rows."""
    runner, names = _v2(case)
    scheduled = np.array([r.num_scheduled_tokens for r in case.requests], dtype=np.int32)
    starts = np.array([0, *accumulate(scheduled.tolist())], dtype=np.int32)
    prefill = np.array([r.prefill_len for r in case.requests], dtype=np.int32)
    computed = np.array([r.num_computed_tokens for r in case.requests], dtype=np.int32)
    batch = (names, case.total_num_scheduled_tokens, scheduled, starts, prefill)
    results = []
    for progress in (
        {"computed_prefill_lens": np.minimum(computed, prefill)},
        {"num_computed_tokens": computed},
    ):
        try:
            rows, mask = runner.gather_mm_embeddings(
                *batch, draft_lookahead=case.draft_lookahead, **progress
            )
            results.append(([tensor.tolist() for tensor in rows], mask.tolist()))
        except RuntimeError as error:
            results.append(str(error))
    assert results[0] == results[1]
    with pytest.raises(TypeError, match="computed_prefill_lens or num_computed_tokens"):
        runner.gather_mm_embeddings(*batch)


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_worker_that_reuses_memory_in_place_is_seen(runner, device, reference, monkeypatch):
    """Otherwise the check that gathered views outlive their entries cannot fail."""
    case = function_claim("rows-exact").witness
    assert isinstance(case, GatherCase)
    settings = TensorSettings(device)
    assert check(case, reference.gather(case, runner, settings), "reference") == ()

    def overwrite(self: WorkerCache, identifiers: dict[str, int]) -> None:
        for identifier in identifiers:
            self._outputs.pop(identifier).zero_()

    monkeypatch.setattr(WorkerCache, "drop", overwrite)
    found = check(case, reference.gather(case, runner, settings), "reference")
    assert [finding.claim for finding in found] == ["rows-exact"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_merge_puts_rows_where_the_mask_is_true(device, dtype):
    """Otherwise the model reads rows at positions of text."""
    text = torch.full((5, 3), 7.0, dtype=dtype, device=device)
    rows = torch.arange(9.0, device=device).reshape(3, 3).to(dtype)
    merged = merge_embeddings(
        text, [rows[:1], rows[1:]], torch.tensor([True, False, True, True, False])
    )
    assert merged.device == text.device
    assert merged.dtype == dtype
    assert merged[[0, 2, 3]].tolist() == rows.tolist()
    assert merged[[1, 4]].tolist() == text[:2].tolist()
    assert text.unique().tolist() == [7.0]


def test_merge_refuses_another_number_of_rows():
    """Otherwise a row too few is broadcast or shifted without a word."""
    with pytest.raises(ValueError, match="1 rows were gathered for 2 positions"):
        merge_embeddings(torch.zeros(3, 2), [torch.ones(1, 2)], torch.tensor([True, True, False]))


def test_drawn_cases_reach_what_matters(drawn):
    """Otherwise the comparison with the oracle passes for want of anything hard."""
    seen: Counter[str] = Counter()
    for case in drawn(gather_cases(), 400):
        seen.update(_features_of(case))
    missing = {name: seen[name] for name, floor in FLOORS.items() if seen[name] < floor}
    assert not missing, f"too few of these among 400 drawn cases: {missing}"


FLOORS = {
    "interior miss": 20,
    "boundary miss": 15,
    "boundary resident": 15,
    "masked, starts F": 40,
    "masked, ends F": 40,
    "chunk ends on an edge": 40,
    "chunk ends before an edge": 40,
    "chunk ends after an edge": 40,
    "decode in the batch": 40,
    "decode beside a prefill": 20,
    "hash shared by requests": 20,
    "hash shared in a request": 20,
    "look-ahead 0": 20,
    "look-ahead 1": 20,
    "look-ahead 2": 20,
    "look-ahead 3": 20,
    "nothing resident": 20,
    "all resident": 20,
    "adjacent features": 20,
    "gap between features": 20,
    "runners comparable": 40,
}
"""Of 400 draws, how many must show each situation."""


def _features_of(case: GatherCase) -> set[str]:
    """Which situations a case contains."""
    reads = read_features(case)
    features = [f for request in case.requests for f in request.features]
    masks = [f.is_embed for f in features if f.is_embed]
    decodes = [r.num_computed_tokens >= r.prefill_len for r in case.requests]
    names = [{f.identifier for f in request.features} for request in case.requests]
    stored = {output.identifier for output in case.resident}
    with_rows = {f.identifier for f in features if f.num_rows}
    ends_by_edge = {
        r.num_computed_tokens + r.num_scheduled_tokens - edge
        for r in case.requests
        for f in r.features
        for edge in (f.offset, f.end)
    }
    gaps = {b.offset - a.end for r in case.requests for a, b in pairwise(r.features)}
    facts = {
        "interior miss": isinstance(expected_gather(case), InteriorMiss),
        "boundary miss": any(read.boundary and not read.resident for read in reads),
        "boundary resident": any(read.boundary and read.resident for read in reads),
        "masked, starts F": any(not mask[0] for mask in masks),
        "masked, ends F": any(not mask[-1] for mask in masks),
        "chunk ends on an edge": 0 in ends_by_edge,
        "chunk ends before an edge": -1 in ends_by_edge,
        "chunk ends after an edge": 1 in ends_by_edge,
        "decode in the batch": any(decodes),
        "decode beside a prefill": any(decodes) and not all(decodes),
        "hash shared by requests": sum(map(len, names)) > len(set().union(*names)),
        "hash shared in a request": any(
            len(r.features) > len(n) for r, n in zip(case.requests, names, strict=True)
        ),
        f"look-ahead {case.draft_lookahead}": True,
        "nothing resident": bool(with_rows) and not stored,
        "all resident": bool(with_rows) and stored == with_rows,
        "adjacent features": 0 in gaps,
        "gap between features": any(gap > 0 for gap in gaps),
        "runners comparable": bool(reads) and in_common_domain(case),
    }
    return {name for name, holds in facts.items() if holds}
