"""Stand-ins for tensors that record what is read and written, on plain and symbolic integers.

They carry no values. A gather's result becomes a list of slices of named outputs and a list of
writes to the mask, each with its bounds as integers of the kind that the gather was run with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from proofs.symbolic.integers import AnyInt, NotModelled


def _bounds(index: object) -> tuple[AnyInt, AnyInt]:
    if not isinstance(index, slice) or index.step is not None:
        raise NotModelled(f"a tensor is indexed by {index!r}; only plain slices are recorded")
    if index.start is None or index.stop is None:
        raise NotModelled("a tensor is sliced with an open end")
    return index.start, index.stop


class View:
    """Rows ``[start, stop)`` of one encoder output. Attributes may be attached, as to a tensor."""

    def __init__(self, identifier: str, start: AnyInt, stop: AnyInt) -> None:
        self.identifier = identifier
        self.start = start
        self.stop = stop


@dataclass(frozen=True)
class Output:
    """The encoder output of an identifier."""

    identifier: str

    def __getitem__(self, index: object) -> View:
        """Record a slice of rows."""
        return View(self.identifier, *_bounds(index))


@dataclass(frozen=True)
class MaskSlice:
    """Positions ``[start, stop)`` of the mask of the feature with the given index."""

    feature: int
    start: AnyInt
    stop: AnyInt


@dataclass(frozen=True)
class FeatureMask:
    """The mask ``is_embed`` of the feature with the given index."""

    feature: int

    def __getitem__(self, index: object) -> MaskSlice:
        """Record a slice of positions."""
        return MaskSlice(self.feature, *_bounds(index))


@dataclass(frozen=True)
class Write:
    """A write to ``[start, stop)`` of the batch's mask: assigned, or OR-ed into what is there."""

    start: AnyInt
    stop: AnyInt
    value: MaskSlice | Literal[True]
    mode: Literal["set", "or"]


@dataclass
class _Part:
    start: AnyInt
    stop: AnyInt
    added: MaskSlice | Literal[True] | None = None

    def __ior__(self, value: object) -> _Part:
        return _Part(self.start, self.stop, _mask_value(value))


def _mask_value(value: object) -> MaskSlice | Literal[True]:
    if value is True:
        return True
    if isinstance(value, MaskSlice):
        return value
    raise NotModelled(f"the batch's mask is written with {value!r}")


@dataclass
class BatchMask:
    """The mask ``is_mm_embed`` of a batch, all false at first."""

    size: AnyInt
    writes: list[Write] = field(default_factory=list)

    def __getitem__(self, index: object) -> _Part:
        """A part of the mask, to be OR-ed into and written back."""
        return _Part(*_bounds(index))

    def __setitem__(self, index: object, value: object) -> None:
        """Record a write."""
        start, stop = _bounds(index)
        if isinstance(value, _Part):
            if value.added is None or value.start is not start or value.stop is not stop:
                raise NotModelled("a part of the batch's mask is copied to another")
            self.writes.append(Write(start, stop, value.added, "or"))
        else:
            self.writes.append(Write(start, stop, _mask_value(value), "set"))

    def to(self, *_: object, **__: object) -> BatchMask:
        """Moving the mask to a device changes nothing that is recorded."""
        return self


class Torch:
    """What a gather uses of torch."""

    Tensor = object
    bool = "bool"

    @staticmethod
    def zeros(size: Any, **_: object) -> BatchMask:
        """A new batch mask."""
        return BatchMask(size)

    @staticmethod
    def inference_mode() -> Any:
        """A decorator that changes nothing that is recorded."""
        return lambda function: function

    def __getattr__(self, name: str) -> Any:
        """Refuse anything else."""
        raise NotModelled(f"torch.{name} is not modelled")


OVERRIDES: dict[str, object] = {"torch": Torch(), "PIN_MEMORY": False, "TYPE_CHECKING": False}
"""What is replaced in the source under proof, everywhere."""
