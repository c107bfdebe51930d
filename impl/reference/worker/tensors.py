"""The worker's gathers with tensors whose rows say by their values which encoding they are of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Protocol

import numpy as np

from impl.harness.rows import EncodingCodec
from impl.late import torch
from impl.reference.worker.cache import WorkerCache
from impl.reference.worker.merge import merge_embeddings
from impl.reference.worker.row_reader import CachedRequest
from impl.reference.worker.runner_v1 import CachedRequestState, RunnerV1, ScheduledTokens
from impl.reference.worker.runner_v2 import RunnerV2
from impl.target import Runner, error_seen
from impl.tensors import TensorSettings
from spec.functions.observations import request_name
from spec.record.steps import Read, RowRun, ScheduledRequest


class RunnerParts(Protocol):
    """The gathers on tensors."""

    @property
    def runner_v1(self) -> type[RunnerV1]:
        """V1's."""

    @property
    def runner_v2(self) -> type[RunnerV2]:
        """V2's."""


class TensorGathers:
    """Holds the encoder outputs as tensors, and gathers them with the runner under test.

    Args:
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
        requests: Mapping[int, CachedRequest],
        settings: TensorSettings,
    ) -> None:
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
        try:
            gathered, is_mm_embed = self._gather(batch, num_tokens, look_ahead)
        except Exception as error:
            return Read(merged=(), error=error_seen(error))
        return self._codec.read(gathered, is_mm_embed, num_tokens, merge_embeddings)

    def read_item(self, identifier: str) -> tuple[RowRun, ...] | None:
        """All rows of one output, as cross-attention reads them; ``None`` if it is not resident."""
        output = self._cache.get(identifier)
        return None if output is None else self._codec.row_runs(output)

    def _gather(
        self, batch: Sequence[ScheduledRequest], num_tokens: int, look_ahead: int
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        names = [request_name(scheduled.request) for scheduled in batch]
        num_scheduled_tokens = [scheduled.num_scheduled_tokens for scheduled in batch]
        cached = {
            name: (scheduled, self._requests[scheduled.request].features)
            for name, scheduled in zip(names, batch, strict=True)
            if scheduled.request in self._requests
        }
        if self._runner == "V1":
            states = {
                name: CachedRequestState(scheduled.num_computed_tokens, features)
                for name, (scheduled, features) in cached.items()
            }
            tokens = ScheduledTokens(
                dict(zip(names, num_scheduled_tokens, strict=True)), num_tokens
            )
            runner_v1 = self._parts.runner_v1(states, names, self._cache)
            return runner_v1.gather_mm_embeddings(tokens, look_ahead)
        mm_features = {name: features for name, (_, features) in cached.items()}
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
