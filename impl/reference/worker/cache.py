"""The worker's side: the tensors, by hash."""

from __future__ import annotations

from collections.abc import Iterable

from impl.late import torch


class WorkerCache:
    """Encoder outputs that the worker holds, each of shape ``(rows, hidden)``."""

    def __init__(self) -> None:
        self._outputs: dict[str, torch.Tensor] = {}

    def store(self, identifier: str, output: torch.Tensor) -> None:
        """Keep an output."""
        self._outputs[identifier] = output

    def get(self, identifier: str) -> torch.Tensor | None:
        """The output, or ``None`` when it is not resident."""
        return self._outputs.get(identifier)

    def drop(self, identifiers: Iterable[str]) -> None:
        """Drop the outputs that an eviction notice names; views of them stay valid."""
        for identifier in identifiers:
            self._outputs.pop(identifier, None)


def new_batch_mask(num_tokens: int) -> torch.Tensor:
    """An all-false mask over the batch's positions, on the CPU, pinned where CUDA is present.

    Pinned memory lets the copy to the device overlap with what runs there.
    """
    return torch.zeros(num_tokens, dtype=torch.bool, pin_memory=torch.cuda.is_available())
