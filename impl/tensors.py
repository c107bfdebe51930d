"""Tensors whose rows can be told apart, so that a gathered row is recognised by its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from impl.late import torch
from spec.errors import InputError
from spec.functions.observations import RowIdentity

_BASE = 200
"""Values stay below this: every float dtype from 16 bits up holds such integers exactly."""

_DIGITS = 3
"""Columns that spell a row's number; the others are checks."""

UNRECOGNISED = RowIdentity("unrecognised", -1)
"""A row whose values nobody stored."""


@dataclass(frozen=True)
class TensorSettings:
    """Where and how the tensors of a check live."""

    device: str = "cpu"
    dtype: torch.dtype = field(default_factory=lambda: torch.float32)
    hidden_size: int = 4

    def require_device(self) -> None:
        """Check that the device exists.

        Raises:
            InputError: CUDA is asked for and absent, or the device's name means nothing.
        """
        if self.device == "cpu":
            return
        try:
            kind = torch.device(self.device).type
        except RuntimeError:
            raise InputError(f"unknown device {self.device!r}; use cpu or cuda") from None
        if kind == "cuda" and not torch.cuda.is_available():
            raise InputError(
                "device cuda was asked for but no CUDA device is available; use --device cpu, or "
                "run on a machine with a GPU and a CUDA build of torch"
            )


class RowNumbers:
    """Rows that spell a number each, from 1 on; a row of zeros is nobody's.

    Args:
        settings: device, dtype and hidden size of all tensors.

    Attributes:
        capacity: numbers that can be told apart lie below this.
    """

    def __init__(self, settings: TensorSettings) -> None:
        self.settings = settings
        self.capacity = _BASE ** min(settings.hidden_size, _DIGITS)

    def tensor(self, numbers: torch.Tensor) -> torch.Tensor:
        """Rows of these numbers, of shape ``(numbers, hidden_size)``."""
        return self._values(numbers).to(self.settings.device, self.settings.dtype)

    def read(self, rows: torch.Tensor) -> list[int]:
        """Each row's number; 0 where the values are not those of any number.

        Args:
            rows: shape ``(rows, hidden_size)``.
        """
        found = rows.to("cpu", torch.float64)
        digits = min(self.settings.hidden_size, _DIGITS)
        weights = torch.tensor([float(_BASE**column) for column in range(digits)]).double()
        numbers = (found[:, :digits] @ weights).long()
        is_exact = (self._values(numbers) == found).all(dim=1)
        return torch.where(is_exact, numbers, 0).tolist()

    def _values(self, numbers: torch.Tensor) -> torch.Tensor:
        """Shape ``(numbers, hidden_size)``, on the CPU."""
        return torch.stack(
            [
                numbers // _BASE**column % _BASE
                if column < _DIGITS
                else numbers * (column + 1) % _BASE
                for column in range(self.settings.hidden_size)
            ],
            dim=1,
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
        self._rows = RowNumbers(settings)
        total = sum(rows.values()) + num_tokens + 1
        if total > self._rows.capacity:
            raise InputError(
                f"{total} rows cannot be told apart with hidden size {settings.hidden_size}, which "
                f"has {self._rows.capacity} values; use a larger hidden size"
            )
        self._first: dict[str, int] = {}
        self._identity: dict[int, RowIdentity | int] = {}
        number = 1
        for identifier, num_rows in rows.items():
            self._first[identifier] = number
            for row in range(num_rows):
                self._identity[number + row] = RowIdentity(identifier, row)
            number += num_rows
        self._first_token = number
        for position in range(num_tokens):
            self._identity[number + position] = position
        self._num_tokens = num_tokens

    def _tensor(self, first: int, count: int) -> torch.Tensor:
        return self._rows.tensor(torch.arange(first, first + count))

    def output(self, identifier: str, num_rows: int) -> torch.Tensor:
        """The encoder output of an identifier, of shape ``(num_rows, hidden_size)``."""
        return self._tensor(self._first[identifier], num_rows)

    def token_embeddings(self) -> torch.Tensor:
        """The batch's own token embeddings, of shape ``(num_tokens, hidden_size)``."""
        return self._tensor(self._first_token, self._num_tokens)

    def other_values(self, num_rows: int) -> torch.Tensor:
        """Rows that belong to nobody, to overwrite freed memory with."""
        return self._rows.tensor(torch.zeros(num_rows, dtype=torch.int64))

    def identify(self, tensor: torch.Tensor) -> tuple[RowIdentity, ...]:
        """Recognise each row of a tensor of shape ``(rows, hidden_size)``."""
        found = (self._identity.get(number, UNRECOGNISED) for number in self._rows.read(tensor))
        return tuple(row if isinstance(row, RowIdentity) else UNRECOGNISED for row in found)

    def identify_merged(self, embeddings: torch.Tensor) -> tuple[RowIdentity | None, ...]:
        """What the model reads at each position: a row, or ``None`` for its own token embedding."""
        merged: list[RowIdentity | None] = []
        for position, number in enumerate(self._rows.read(embeddings)):
            found = self._identity.get(number, UNRECOGNISED)
            if isinstance(found, int):
                merged.append(None if found == position else UNRECOGNISED)
            else:
                merged.append(found)
        return tuple(merged)
