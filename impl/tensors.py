"""Tensors whose rows can be told apart, so that a gathered row is recognised by its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from spec.errors import InputError
from spec.functions.observations import RowIdentity

_BASE = 200
"""Values stay below this: every float dtype from 16 bits up holds such integers exactly."""

UNRECOGNISED = RowIdentity("unrecognised", -1)
"""A row whose values nobody stored."""


@dataclass(frozen=True)
class TensorSettings:
    """Where and how the tensors of a check live."""

    device: str = "cpu"
    dtype: torch.dtype = torch.float32
    hidden_size: int = 4

    def require_device(self) -> None:
        """Check that the device exists.

        Raises:
            InputError: CUDA is asked for and absent, or the device's name means nothing.
        """
        try:
            kind = torch.device(self.device).type
        except RuntimeError:
            raise InputError(f"unknown device {self.device!r}; use cpu or cuda") from None
        if kind == "cuda" and not torch.cuda.is_available():
            raise InputError(
                "device cuda was asked for but no CUDA device is available; use --device cpu, or "
                "run on a machine with a GPU and a CUDA build of torch"
            )


class RowCodec:
    """Give every row of every output, and every token embedding, values of its own.

    Args:
        settings: device, dtype and hidden size of all tensors.
        rows: rows of each output, by identifier.
        num_tokens: flattened positions that need a token embedding.

    Raises:
        InputError: more rows than the hidden size can tell apart.
    """

    def __init__(self, settings: TensorSettings, rows: Mapping[str, int], num_tokens: int) -> None:
        self._settings = settings
        total = sum(rows.values()) + num_tokens + 1
        capacity = _BASE ** min(settings.hidden_size, 3)
        if total > capacity:
            raise InputError(
                f"{total} rows cannot be told apart with hidden size {settings.hidden_size}, which "
                f"has {capacity} values; use a larger hidden size"
            )
        self._first: dict[str, int] = {}
        self._identity: dict[tuple[float, ...], RowIdentity | int] = {}
        number = 1
        for identifier, num_rows in rows.items():
            self._first[identifier] = number
            for row in range(num_rows):
                self._identity[self._values(number + row)] = RowIdentity(identifier, row)
            number += num_rows
        self._first_token = number
        for position in range(num_tokens):
            self._identity[self._values(number + position)] = position
        self._num_tokens = num_tokens

    def _values(self, number: int) -> tuple[float, ...]:
        return tuple(
            float(
                number // _BASE**column % _BASE if column < 3 else (number * (column + 1)) % _BASE
            )
            for column in range(self._settings.hidden_size)
        )

    def _tensor(self, first: int, count: int) -> torch.Tensor:
        values = [self._values(first + index) for index in range(count)]
        tensor = torch.tensor(values, dtype=self._settings.dtype, device=self._settings.device)
        return tensor.reshape(count, self._settings.hidden_size)

    def output(self, identifier: str, num_rows: int) -> torch.Tensor:
        """The encoder output of an identifier, of shape ``(num_rows, hidden_size)``."""
        return self._tensor(self._first[identifier], num_rows)

    def token_embeddings(self) -> torch.Tensor:
        """The batch's own token embeddings, of shape ``(num_tokens, hidden_size)``."""
        return self._tensor(self._first_token, self._num_tokens)

    def other_values(self, num_rows: int) -> torch.Tensor:
        """Rows that belong to nobody, to overwrite freed memory with."""
        return torch.zeros(
            num_rows,
            self._settings.hidden_size,
            dtype=self._settings.dtype,
            device=self._settings.device,
        )

    def identify(self, tensor: torch.Tensor) -> tuple[RowIdentity, ...]:
        """Recognise each row of a tensor of shape ``(rows, hidden_size)``."""
        found = (self._identity.get(tuple(row), UNRECOGNISED) for row in tensor.tolist())
        return tuple(row if isinstance(row, RowIdentity) else UNRECOGNISED for row in found)

    def identify_merged(self, embeddings: torch.Tensor) -> tuple[RowIdentity | None, ...]:
        """What the model reads at each position: a row, or ``None`` for its own token embedding."""
        merged: list[RowIdentity | None] = []
        for position, row in enumerate(embeddings.tolist()):
            found = self._identity.get(tuple(row), UNRECOGNISED)
            if isinstance(found, int):
                merged.append(None if found == position else UNRECOGNISED)
            else:
                merged.append(found)
        return tuple(merged)
