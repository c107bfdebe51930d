"""Call the gathers of both runners of a release.

What differs between releases is read from their signatures: the form in which V2 takes a request's
progress, and whether it is told the look-ahead or is given progress that includes it.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import torch

from impl.target import Runner
from impl.tensors import RowCodec, TensorSettings
from impl.vllm.functions.objects import Builder, UnavailableError, half_made, observed, require
from impl.vllm.launch.load import Loaded
from spec.functions.cases import GatherCase
from spec.functions.observations import GatherObservation, RowIdentity, request_name

GatherResult = tuple[list[torch.Tensor], torch.Tensor]
"""Tensors of shape ``(rows, hidden)`` and a Boolean mask of shape ``(total_num_scheduled_tokens,)``
on the CPU."""


class Gather(Protocol):
    """One runner's gather, with the worker's store of outputs."""

    def run(
        self, case: GatherCase, outputs: dict[str, torch.Tensor], tensors: TensorSettings
    ) -> GatherResult:
        """Store the outputs, gather for the batch, then evict every output from the store.

        ``outputs`` is emptied, so that nothing but the gathered views keeps the memory alive.
        """
        ...


class GatherV1:
    """``GPUModelRunner._gather_mm_embeddings``.

    Raises:
        UnavailableError: the release has no such method, or no look-ahead for it.
    """

    def __init__(self, loaded: Loaded, builder: Builder) -> None:
        self._class: Any = require(loaded, "v1.worker.gpu_model_runner", "GPUModelRunner")
        self._builder = builder
        method = getattr(self._class, "_gather_mm_embeddings", None)
        if method is None or "shift_computed_tokens" not in inspect.signature(method).parameters:
            raise UnavailableError("GPUModelRunner has no _gather_mm_embeddings with a look-ahead")
        # Releases up to 0.19 write the mask into one of these buffers; later ones read neither.
        self._buffer: Any = loaded.find("v1.utils", "CpuGpuBuffer")

    def run(
        self, case: GatherCase, outputs: dict[str, torch.Tensor], tensors: TensorSettings
    ) -> GatherResult:
        """Gather with ``shift_computed_tokens`` set to the look-ahead."""
        names = [request_name(index) for index in range(len(case.requests))]
        total = case.total_num_scheduled_tokens
        runner = object.__new__(half_made(self._class))
        runner.encoder_cache = dict(outputs)
        outputs.clear()
        runner.input_batch = SimpleNamespace(req_ids=names)
        runner.requests = {
            name: SimpleNamespace(
                num_computed_tokens=request.num_computed_tokens,
                mm_features=self._builder.features(request.features),
            )
            for name, request in zip(names, case.requests, strict=True)
        }
        runner.is_multimodal_pruning_enabled = False
        runner.uses_mrope = False
        runner.device = torch.device(tensors.device)
        if self._buffer is not None:
            runner.is_mm_embed_idx = 0
            runner.is_mm_embed_buffers = [
                self._buffer(total, dtype=torch.bool, device=runner.device, pin_memory=False)
                for _ in range(2)
            ]
        step = SimpleNamespace(
            total_num_scheduled_tokens=total,
            num_scheduled_tokens={
                name: request.num_scheduled_tokens
                for name, request in zip(names, case.requests, strict=True)
            },
        )
        embeddings, mask = runner._gather_mm_embeddings(
            step, shift_computed_tokens=case.draft_lookahead
        )
        runner.encoder_cache.clear()
        return embeddings, mask


class GatherV2:
    """``EncoderRunner.gather_mm_embeddings``.

    Raises:
        UnavailableError: the release has no such method, or takes progress in an unknown form.
    """

    def __init__(self, loaded: Loaded, builder: Builder) -> None:
        self._class: Any = require(loaded, "v1.worker.gpu.mm.encoder_runner", "EncoderRunner")
        self._cache: Any = require(loaded, "v1.worker.gpu.mm.encoder_cache", "EncoderCache")
        self._builder = builder
        method = getattr(self._class, "gather_mm_embeddings", None)
        if method is None:
            raise UnavailableError("EncoderRunner has no gather_mm_embeddings")
        parameters = inspect.signature(method).parameters
        self._takes_look_ahead = "draft_lookahead" in parameters
        self._clips_progress = "computed_prefill_lens" in parameters
        if not self._clips_progress and "num_computed_tokens" not in parameters:
            raise UnavailableError(
                "EncoderRunner.gather_mm_embeddings takes progress neither as "
                "computed_prefill_lens nor as num_computed_tokens"
            )

    def run(
        self, case: GatherCase, outputs: dict[str, torch.Tensor], tensors: TensorSettings
    ) -> GatherResult:
        """Gather as the release's own model runner does for its drafter."""
        names = [request_name(index) for index in range(len(case.requests))]
        cache = self._cache()
        for name, request in zip(names, case.requests, strict=True):
            cache.add_request(name, self._builder.features(request.features))
        cache.encoder_outputs.update(outputs)
        outputs.clear()
        runner = self._class(
            model=None,
            max_num_tokens=case.total_num_scheduled_tokens,
            hidden_size=tensors.hidden_size,
            encoder_cache=cache,
            dtype=tensors.dtype,
            device=torch.device(tensors.device),
        )
        scheduled = np.array([r.num_scheduled_tokens for r in case.requests], dtype=np.int32)
        prefill = np.array([r.prefill_len for r in case.requests], dtype=np.int32)
        progress = np.array([r.num_computed_tokens for r in case.requests], dtype=np.int32)
        if self._clips_progress:
            # These releases keep progress through the prefill only.
            progress = np.minimum(progress, prefill)
        look_ahead = {"draft_lookahead": case.draft_lookahead} if self._takes_look_ahead else {}
        if not self._takes_look_ahead:
            progress = progress + case.draft_lookahead
        embeddings, mask = runner.gather_mm_embeddings(
            names,
            case.total_num_scheduled_tokens,
            scheduled,
            np.concatenate(([0], np.cumsum(scheduled))).astype(np.int32),
            prefill,
            progress,
            **look_ahead,
        )
        for identifier in list(cache.encoder_outputs):
            cache.free_encoder_cache(identifier)
        return embeddings, mask


def make_gather(runner: Runner, loaded: Loaded, builder: Builder) -> Gather:
    """The gather of a runner.

    Raises:
        UnavailableError: the release has none that can be called here.
    """
    return GatherV1(loaded, builder) if runner == "V1" else GatherV2(loaded, builder)


def observe_gather(
    gather: Gather, merge: Any, case: GatherCase, tensors: TensorSettings
) -> GatherObservation:
    """Gather, evict, fill the freed memory, and only then recognise the rows.

    Args:
        merge: the release's ``_merge_multimodal_embeddings``.
        tensors: device, dtype and hidden size.
    """
    codec = RowCodec(
        tensors,
        {output.identifier: output.num_rows for output in case.resident},
        case.total_num_scheduled_tokens,
    )
    outputs = {
        output.identifier: codec.output(output.identifier, output.num_rows)
        for output in case.resident
    }
    try:
        embeddings, mask = gather.run(case, outputs, tensors)
    except Exception as error:
        return GatherObservation(error=observed(error))
    # Freed memory is handed out again first: whoever still looks at it would see these values.
    filler = [codec.other_values(output.num_rows) for output in case.resident for _ in range(2)]
    observation = GatherObservation(
        rows=tuple(row for tensor in embeddings for row in codec.identify(tensor)),
        slices=tuple(len(tensor) for tensor in embeddings),
        mask=tuple(mask.tolist()),
        merged=_merge(merge, codec, embeddings, mask),
    )
    del filler
    return observation


def _merge(
    merge: Any, codec: RowCodec, embeddings: list[torch.Tensor], mask: torch.Tensor
) -> tuple[RowIdentity | None, ...]:
    """What a model reads after the release's own merge.

    The merge refuses another number of rows than the mask has true positions. That is a wrong row
    or a wrong mask, which the observation shows already; nothing is merged then.
    """
    token_embeddings = codec.token_embeddings()
    try:
        merged = merge(token_embeddings, embeddings, mask.to(token_embeddings.device))
    except (ValueError, RuntimeError, IndexError):
        return ()
    return codec.identify_merged(merged)
