"""What both runners of a release keep on the worker, and their own functions on it.

A store holds requests and encoder outputs in the form in which the runner's own functions look for
them; those choose what to encode and gather.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from impl.target import Runner
from impl.tensors import TensorSettings
from impl.vllm.functions.gathers import GatherResult, GatherV1, GatherV2
from impl.vllm.functions.objects import Builder, UnavailableError, half_made
from impl.vllm.launch.load import Loaded


class UnknownRequestError(KeyError):
    """An output names a request that the worker does not know; a runner raises ``KeyError``."""


class StoreV1:
    """``GPUModelRunner``, made without its constructor, with what its functions read.

    Args:
        gather: knows the runner's class and what it needs.
        settings: device of the mask.
        max_num_tokens: most tokens of a batch.
    """

    forgets_preempted = False

    def __init__(self, gather: LoopGatherV1, settings: TensorSettings, max_num_tokens: int) -> None:
        self._runner = gather.new_runner(settings, max_num_tokens)
        self._requests: dict[str, SimpleNamespace] = {}
        self._runner.requests = self._requests
        self.outputs: dict[str, torch.Tensor] = {}
        self._runner.encoder_cache = self.outputs

    def forget(self, name: str) -> bool:
        """Forget a request; whether it was known."""
        return self._requests.pop(name, None) is not None

    def add(self, new: Any) -> None:
        """Take a request in, or the next turn of one."""
        self._requests[new.req_id] = SimpleNamespace(
            num_computed_tokens=new.num_computed_tokens, mm_features=list(new.mm_features)
        )

    def update(self, name: str, num_computed_tokens: int) -> None:
        """Take over a request's progress."""
        request = self._requests.get(name)
        if request is None:
            raise UnknownRequestError(name)
        request.num_computed_tokens = num_computed_tokens

    def change_payload(self, name: str, changes: Mapping[int, Any]) -> None:
        """No release sends such changes to this runner."""
        raise UnknownRequestError(name)

    def payload(self, name: str) -> set[int] | None:
        """Inputs of a request whose raw data is at hand; ``None`` if the request is not known."""
        request = self._requests.get(name)
        return None if request is None else _with_data(request.mm_features)

    def wants(self, name: str, feature: int) -> bool:
        """Whether the runner encodes a scheduled input."""
        step = SimpleNamespace(scheduled_encoder_inputs={name: [feature]})
        return bool(self._runner._batch_mm_inputs_from_scheduler(step)[0])

    def gather(self, batch: Mapping[str, int], look_ahead: int) -> GatherResult:
        """The runner's gather for a batch: tokens by request."""
        self._runner.input_batch.req_ids = list(batch)
        step = SimpleNamespace(
            total_num_scheduled_tokens=sum(batch.values()), num_scheduled_tokens=batch
        )
        result: GatherResult = self._runner._gather_mm_embeddings(
            step, shift_computed_tokens=look_ahead
        )
        return result


class StoreV2:
    """``EncoderRunner`` and its ``EncoderCache``, both real.

    Args:
        gather: knows the runner's classes and the form of its gather.
        settings: device, dtype and hidden size of the runner's buffer.
        max_num_tokens: most tokens of a batch.
    """

    forgets_preempted = True

    def __init__(self, gather: LoopGatherV2, settings: TensorSettings, max_num_tokens: int) -> None:
        self._gather = gather
        self._cache, self._runner = gather.new_runner(settings, max_num_tokens)
        self.outputs: dict[str, torch.Tensor] = self._cache.encoder_outputs
        self._prefill_lens: dict[str, int] = {}
        self._progress: dict[str, int] = {}

    def forget(self, name: str) -> bool:
        """Forget a request; whether it was known."""
        self._cache.remove_request(name)
        self._prefill_lens.pop(name, None)
        return self._progress.pop(name, None) is not None

    def add(self, new: Any) -> None:
        """Take a request in, or the next turn of one, with all tokens known by now."""
        self.forget(new.req_id)
        # A copy, as where the output reaches a worker in another process.
        self._cache.add_request(new.req_id, list(new.mm_features))
        self._prefill_lens[new.req_id] = len(new.prefill_token_ids)
        self._progress[new.req_id] = new.num_computed_tokens

    def update(self, name: str, num_computed_tokens: int) -> None:
        """Take over a request's progress."""
        if name not in self._progress:
            raise UnknownRequestError(name)
        self._progress[name] = num_computed_tokens

    def change_payload(self, name: str, changes: Mapping[int, Any]) -> None:
        """Drop raw data, or take it in again."""
        self._cache.update_encoder_inputs(name, changes)

    def payload(self, name: str) -> set[int] | None:
        """Inputs of a request whose raw data is at hand; ``None`` if the request is not known."""
        features = self._cache.mm_features.get(name)
        return None if features is None else _with_data(features)

    def wants(self, name: str, feature: int) -> bool:
        """Whether the runner encodes a scheduled input."""
        return bool(self._runner.prepare_mm_inputs({name: [feature]})[0])

    def gather(self, batch: Mapping[str, int], look_ahead: int) -> GatherResult:
        """The runner's gather for a batch: tokens by request."""
        names = list(batch)
        scheduled = np.array(list(batch.values()), dtype=np.int32)
        prefill = np.array([self._prefill_lens[name] for name in names], dtype=np.int32)
        progress = np.array([self._progress[name] for name in names], dtype=np.int32)
        return self._gather.call(self._runner, names, scheduled, prefill, progress, look_ahead)


Store = StoreV1 | StoreV2


class LoopGatherV1(GatherV1):
    """The runner's class, and what its functions need.

    Raises:
        UnavailableError: the release has no such functions.
    """

    def __init__(self, loaded: Loaded, builder: Builder) -> None:
        super().__init__(loaded, builder)
        if not hasattr(self._class, "_batch_mm_inputs_from_scheduler"):
            raise UnavailableError("GPUModelRunner has no _batch_mm_inputs_from_scheduler")

    def new_runner(self, settings: TensorSettings, max_num_tokens: int) -> Any:
        """A runner that has what its gather reads."""
        runner = object.__new__(half_made(self._class))
        runner.input_batch = SimpleNamespace(req_ids=[])
        runner.is_multimodal_pruning_enabled = False
        runner.uses_mrope = False
        runner.lora_config = None
        runner.device = torch.device(settings.device)
        if self._buffer is not None:
            runner.is_mm_embed_idx = 0
            runner.is_mm_embed_buffers = [
                self._buffer(
                    max_num_tokens, dtype=torch.bool, device=runner.device, pin_memory=False
                )
                for _ in range(2)
            ]
        return runner

    def store(self, settings: TensorSettings, max_num_tokens: int) -> Store:
        """An empty worker of this runner."""
        return StoreV1(self, settings, max_num_tokens)


class LoopGatherV2(GatherV2):
    """The runner's classes, and the form of its gather.

    Raises:
        UnavailableError: the release has no such functions.
    """

    def __init__(self, loaded: Loaded, builder: Builder) -> None:
        super().__init__(loaded, builder)
        if not hasattr(self._class, "prepare_mm_inputs"):
            raise UnavailableError("EncoderRunner has no prepare_mm_inputs")

    def new_runner(self, settings: TensorSettings, max_num_tokens: int) -> tuple[Any, Any]:
        """An empty cache and a runner on it."""
        cache = self._cache()
        runner = self._class(
            model=None,
            max_num_tokens=max_num_tokens,
            hidden_size=settings.hidden_size,
            encoder_cache=cache,
            dtype=settings.dtype,
            device=torch.device(settings.device),
        )
        return cache, runner

    def call(
        self,
        runner: Any,
        names: Sequence[str],
        scheduled: np.ndarray,
        prefill: np.ndarray,
        progress: np.ndarray,
        look_ahead: int,
    ) -> GatherResult:
        """Gather with the look-ahead as the release's model runner passes it."""
        if self._clips_progress:
            # These releases keep progress through the prefill only.
            progress = np.minimum(progress, prefill)
        options = {"draft_lookahead": look_ahead} if self._takes_look_ahead else {}
        if not self._takes_look_ahead:
            progress = progress + look_ahead
        starts = np.zeros(len(names) + 1, dtype=np.int32)
        np.cumsum(scheduled, out=starts[1:])
        result: GatherResult = runner.gather_mm_embeddings(
            names, int(starts[-1]), scheduled, starts, prefill, progress, **options
        )
        return result

    def store(self, settings: TensorSettings, max_num_tokens: int) -> Store:
        """An empty worker of this runner."""
        return StoreV2(self, settings, max_num_tokens)


def make_loop_gather(
    runner: Runner, loaded: Loaded, builder: Builder
) -> LoopGatherV1 | LoopGatherV2:
    """The functions of a runner.

    Raises:
        UnavailableError: the release has none that can be called here.
    """
    return LoopGatherV1(loaded, builder) if runner == "V1" else LoopGatherV2(loaded, builder)


def _with_data(features: Sequence[Any]) -> set[int]:
    return {index for index, feature in enumerate(features) if feature.data is not None}
