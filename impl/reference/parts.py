"""The parts that make up the implementation, so that a fault can replace one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from impl.reference.scheduling import free, request
from impl.reference.scheduling.chunks import ChunkEnds
from impl.reference.scheduling.encoder_cache import EncoderCacheManager, EncoderDecoderCacheManager
from impl.reference.scheduling.encoder_inputs import EncoderInputs
from impl.reference.scheduling.request import MultiModalFeature, PlaceholderRange
from impl.reference.scheduling.scheduler import Scheduler
from impl.reference.scheduling.updates import Updates
from impl.reference.worker.row_reader import RowReaderV1, RowReaderV2
from impl.reference.worker.runner_v1 import RunnerV1
from impl.reference.worker.runner_v2 import RunnerV2
from impl.reference.worker.worker import Worker

Class = TypeVar("Class")


@dataclass(frozen=True)
class Parts:
    """One implementation: its classes and functions."""

    runner_v1: type[RunnerV1] = RunnerV1
    runner_v2: type[RunnerV2] = RunnerV2
    row_reader_v1: type[RowReaderV1] = RowReaderV1
    row_reader_v2: type[RowReaderV2] = RowReaderV2
    book: type[EncoderCacheManager] = EncoderCacheManager
    encoder_decoder_book: type[EncoderDecoderCacheManager] = EncoderDecoderCacheManager
    placeholder_range: type[PlaceholderRange] = PlaceholderRange
    free_encoder_inputs: free.FreeEncoderInputs = free.free_encoder_inputs
    features_in_window: Callable[[Sequence[MultiModalFeature], int, int], tuple[int, int]] = (
        request.features_in_window
    )
    encoder_inputs: type[EncoderInputs] = EncoderInputs
    chunk_ends: type[ChunkEnds] = ChunkEnds
    scheduler: type[Scheduler] = Scheduler
    updates: type[Updates] = Updates
    worker: type[Worker] = Worker


def with_methods(base: type[Class], **overrides: Callable[..., Any]) -> type[Class]:
    """The class with some methods replaced."""
    return type(base.__name__, (base,), overrides)
