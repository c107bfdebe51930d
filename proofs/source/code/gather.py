"""Call a release's two gathers with recorders in the place of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from impl.target import Runner, error_seen
from proofs.source.code.recorders import BatchMask, FeatureMask, Output, View
from proofs.source.code.release import ReleaseSource
from proofs.symbolic.exploration import BudgetExhausted
from proofs.symbolic.integers import AnyInt, NotModelled, SymbolicBool
from spec.record.steps import ErrorSeen


@dataclass(frozen=True)
class Place:
    """Where a method stands in a release."""

    module: str
    class_name: str
    method: str


V1 = Place("vllm.v1.worker.gpu_model_runner", "GPUModelRunner", "_gather_mm_embeddings")
V2 = Place("vllm.v1.worker.gpu.mm.encoder_runner", "EncoderRunner", "gather_mm_embeddings")
INPUTS_MODULE = "vllm.multimodal.inputs"


@dataclass(frozen=True)
class FeatureInput:
    """A feature as the code sees it; ``cumulative_counts`` is its ``embeds_cumsum``."""

    offset: AnyInt
    length: AnyInt
    identifier: str
    mask: FeatureMask | None
    cumulative_counts: Any


@dataclass(frozen=True)
class RequestInput:
    """A scheduled request (all counts in tokens)."""

    num_computed_tokens: AnyInt
    num_scheduled_tokens: AnyInt
    prefill_len: AnyInt
    features: tuple[FeatureInput, ...]


@dataclass(frozen=True)
class GatherInput:
    """A batch, which hashes are resident, and how far the reader looks ahead."""

    requests: tuple[RequestInput, ...]
    resident: Callable[[str], bool | SymbolicBool]
    look_ahead: AnyInt


@dataclass(frozen=True)
class GatherOutcome:
    """What one gather returned, or the error it raised."""

    views: tuple[View, ...] = ()
    mask: BatchMask | None = None
    error: ErrorSeen | None = None


class _Outputs:
    """The worker's outputs: a missing hash is a fork where its residency is symbolic."""

    def __init__(self, resident: Callable[[str], bool | SymbolicBool]) -> None:
        self._resident = resident

    def get(self, identifier: str, default: object = None) -> object:
        return Output(identifier) if self._resident(identifier) else default

    def __contains__(self, identifier: str) -> bool:
        return bool(self._resident(identifier))

    def __getitem__(self, identifier: str) -> Output:
        if not self._resident(identifier):
            raise KeyError(identifier)
        return Output(identifier)


def _array(values: Sequence[AnyInt]) -> np.ndarray[Any, np.dtype[np.object_]]:
    array = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        array[index] = value
    return array


def position_of(release: ReleaseSource, feature: FeatureInput) -> Any:
    """The feature's placeholder range, with the release's own methods."""
    return release.module(INPUTS_MODULE).stand_in(
        "PlaceholderRange",
        offset=feature.offset,
        length=feature.length,
        is_embed=feature.mask,
        embeds_cumsum=feature.cumulative_counts,
    )


def feature_specs(release: ReleaseSource, features: Sequence[FeatureInput]) -> list[Any]:
    """Features as the code holds them."""
    return [
        SimpleNamespace(
            identifier=feature.identifier,
            modality="image",
            data=None,
            mm_position=position_of(release, feature),
        )
        for feature in features
    ]


def has_gather(release: ReleaseSource, runner: Runner) -> bool:
    """Whether the release has the runner's gather."""
    place = V1 if runner == "V1" else V2
    if not release.has_module(place.module):
        return False
    return release.module(place.module).definition(place.class_name, place.method) is not None


def call_gather(release: ReleaseSource, runner: Runner, given: GatherInput) -> GatherOutcome:
    """Run one gather.

    Raises:
        NotModelled: the code uses something that the recorders do not model.
    """
    call = _call_v1 if runner == "V1" else _call_v2
    try:
        views, mask = call(release, given)
    except (NotModelled, BudgetExhausted, MemoryError):
        raise
    except Exception as error:
        return GatherOutcome(error=error_seen(error))
    return GatherOutcome(tuple(views), mask)


def _names(given: GatherInput) -> list[str]:
    return [f"request-{index}" for index in range(len(given.requests))]


def _total(given: GatherInput) -> AnyInt:
    total: AnyInt = 0
    for request in given.requests:
        total = total + request.num_scheduled_tokens
    return total


def _call_v1(release: ReleaseSource, given: GatherInput) -> tuple[list[View], BatchMask]:
    outputs = _Outputs(given.resident)
    names = _names(given)
    states = {
        name: SimpleNamespace(
            num_computed_tokens=request.num_computed_tokens,
            mm_features=feature_specs(release, request.features),
        )
        for name, request in zip(names, given.requests, strict=True)
    }
    runner = release.module(V1.module).stand_in(
        V1.class_name,
        input_batch=SimpleNamespace(req_ids=names),
        requests=states,
        encoder_cache=outputs,
        is_multimodal_pruning_enabled=False,
        uses_mrope=False,
        uses_xdrope_dim=0,
    )
    output = SimpleNamespace(
        total_num_scheduled_tokens=_total(given),
        num_scheduled_tokens={
            name: request.num_scheduled_tokens
            for name, request in zip(names, given.requests, strict=True)
        },
    )
    found: tuple[list[View], BatchMask] = getattr(runner, V1.method)(
        output, shift_computed_tokens=given.look_ahead
    )
    return found


def _call_v2(release: ReleaseSource, given: GatherInput) -> tuple[list[View], BatchMask]:
    module = release.module(V2.module)
    parameters = module.parameters(V2.class_name, V2.method)
    names = _names(given)
    runner = module.stand_in(
        V2.class_name,
        device="cpu",
        is_realtime=False,
        encoder_cache=SimpleNamespace(
            mm_features={
                name: feature_specs(release, request.features)
                for name, request in zip(names, given.requests, strict=True)
            },
            encoder_outputs=_Outputs(given.resident),
        ),
    )
    starts: list[AnyInt] = [0]
    for request in given.requests:
        starts.append(starts[-1] + request.num_scheduled_tokens)
    by_prefill = "computed_prefill_lens" in parameters
    takes_look_ahead = "draft_lookahead" in parameters
    computed = [
        min(request.num_computed_tokens, request.prefill_len)
        if by_prefill
        else request.num_computed_tokens
        for request in given.requests
    ]
    if not takes_look_ahead:
        computed = [value + given.look_ahead for value in computed]
    arguments: dict[str, Any] = {
        "req_ids": names,
        "total_num_scheduled_tokens": _total(given),
        "num_scheduled_tokens": _array([r.num_scheduled_tokens for r in given.requests]),
        "query_start_loc": _array(starts),
        "prefill_lens": _array([r.prefill_len for r in given.requests]),
        "computed_prefill_lens" if by_prefill else "num_computed_tokens": _array(computed),
    }
    if takes_look_ahead:
        arguments["draft_lookahead"] = given.look_ahead
    found: tuple[list[View], BatchMask] = getattr(runner, V2.method)(**arguments)
    return found
