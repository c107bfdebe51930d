"""The functions of a real vLLM as a target of the checks that the reference passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from impl.target import AdapterError, Part, Runner
from impl.tensors import TensorSettings
from impl.vllm.functions.books import Books, Frees
from impl.vllm.functions.gathers import make_gather, observe_gather
from impl.vllm.functions.objects import Builder, UnavailableError, observed, require
from impl.vllm.launch.load import Loaded, load
from impl.vllm.launch.source import Source
from spec.errors import InputError
from spec.functions.cases import (
    BookCase,
    BookOperation,
    EncoderOutput,
    FreeCase,
    GatherCase,
    GatherRequest,
    Progress,
    RowRangeCase,
    WindowCase,
)
from spec.functions.observations import (
    BookObservation,
    FreeObservation,
    GatherObservation,
    RangeObservation,
)
from spec.record.feature import Feature

_NO_RANGE = (-1, -1)

_TEXT_ONLY = GatherCase((GatherRequest(0, 1, 1, ()),), (), 0)
_ITEM = Feature(1, 2, "A")
_RESIDENT = GatherCase((GatherRequest(0, 4, 4, (_ITEM,)),), (EncoderOutput("A", 2),), 0)
_BOUNDARY_MISS = GatherCase((GatherRequest(0, 1, 4, (_ITEM,)),), (), 1)
_ONE_FEATURE = FreeCase((Feature(0, 1, "A"),), 1, (Progress(2),))
_ONE_ENTRY = BookCase(
    1,
    ((Feature(0, 1, "A"),),),
    (BookOperation("take"), BookOperation("drop"), BookOperation("end_pass")),
)

_BROKEN = ("AttributeError", "NameError", "UnboundLocalError")
"""What a release's own code raises where it is wrong, and not where it asks for more than a CPU."""


class VllmTarget:
    """A release's own functions, called one at a time.

    Its parts are imported when they are first asked for: V1's runner takes most of the time.

    Args:
        source: a release or a directory.

    Raises:
        InputError: the process holds another vLLM, or a dependency is missing.
    """

    def __init__(self, source: Source) -> None:
        self._loaded: Loaded = load(source)
        self._parts: dict[Part, Any] = {}
        self._reasons: dict[Part, str] = {}
        self._unfit: dict[Part, Exception] = {}

    @property
    def name(self) -> str:
        """``vllm`` and the release, or the directory."""
        return self._loaded.source.name

    @property
    def source(self) -> Source:
        """Where the code under test lies."""
        return self._loaded.source

    @cached_property
    def _builder(self) -> Builder:
        return Builder(self._loaded)

    @cached_property
    def _merge(self) -> Any:
        return require(self._loaded, "model_executor.models.utils", "_merge_multimodal_embeddings")

    def missing(self, part: Part) -> str | None:
        """Why the release has no such part, or why it cannot be called here."""
        if part not in self._parts and part not in self._reasons:
            try:
                self._parts[part] = self._make(part)
                self._probe(part)
            except UnavailableError as error:
                self._reasons[part] = str(error)
            except InputError:
                raise
            except Exception as error:
                # The part is there, and a case that is given to it would be no observation.
                self._unfit[part] = error
                self._parts.setdefault(part, None)
        return self._reasons.get(part)

    def _make(self, part: Part) -> Any:
        match part:
            case "V1" | "V2":
                return make_gather(part, self._loaded, self._builder)
            case "free":
                return Frees(self._loaded, self._builder)
            case "book":
                return Books(self._loaded, self._builder, is_encoder_decoder=False)
            case "encoder_decoder_book":
                return Books(self._loaded, self._builder, is_encoder_decoder=True)
            case "window":
                return require(self._loaded, "multimodal.utils", "get_mm_features_in_window")
            case "row_range":
                placeholder = self._builder.placeholder(0, 1, (True,))
                if not hasattr(placeholder, "get_embeds_indices_in_range"):
                    raise UnavailableError("PlaceholderRange has no get_embeds_indices_in_range")
                return self._builder.placeholder

    def _probe(self, part: Part) -> None:
        """Try a part on cases that every release answers, before it may be judged.

        Raises:
            UnavailableError: the release's code asks for something that is not here.
            AdapterError: our way of calling it does not fit this vLLM.
        """
        made = self._parts[part]
        match part:
            case "V1" | "V2":
                what = f"{part}'s gather of"
                self._require_callable(
                    f"{what} a text-only batch", self._gathered(made, _TEXT_ONLY)
                )
                seen = self._gathered(made, _RESIDENT)
                if seen.error is None and len(seen.rows) != _ITEM.num_rows:
                    raise AdapterError(
                        f"{what} one resident item returns {len(seen.rows)} of "
                        f"{_ITEM.num_rows} rows; how this vLLM is called here does not fit it"
                    )
                self._gathered(made, _BOUNDARY_MISS)
            case "free":
                self._require_callable("a first free", made.observe(_ONE_FEATURE))
            case "book":
                made.observe(_ONE_ENTRY)
            case "encoder_decoder_book":
                made.observe(replace(_ONE_ENTRY, is_encoder_decoder=True))

    def _gathered(self, gather: Any, case: GatherCase) -> GatherObservation:
        return observe_gather(gather, self._merge, case, TensorSettings())

    def _require_callable(self, what: str, seen: GatherObservation | FreeObservation) -> None:
        """Check that a harmless call asks for nothing that is not here, such as pinned memory.

        Raises:
            UnavailableError: it does; the message holds the error.
        """
        error = seen.error
        if error is not None and error.type not in _BROKEN:
            raise UnavailableError(f"{what} fails here: {error.type}: {error.message}")

    def _part(self, part: Part) -> Any:
        reason = self.missing(part)
        if reason is not None:
            raise InputError(f"{self.name}: {part} cannot be checked: {reason}")
        if part in self._unfit:
            raise self._unfit[part]
        return self._parts[part]

    def gather(
        self, case: GatherCase, runner: Runner, tensors: TensorSettings
    ) -> GatherObservation:
        """See :class:`impl.target.FunctionTarget`."""
        case.validate()
        tensors.require_device()
        return observe_gather(self._part(runner), self._merge, case, tensors)

    def free(self, case: FreeCase) -> FreeObservation:
        """See :class:`impl.target.FunctionTarget`."""
        case.validate()
        observation: FreeObservation = self._part("free").observe(case)
        return observation

    def book(self, case: BookCase) -> BookObservation:
        """See :class:`impl.target.FunctionTarget`."""
        case.validate()
        part: Part = "encoder_decoder_book" if case.is_encoder_decoder else "book"
        observation: BookObservation = self._part(part).observe(case)
        return observation

    def window(self, case: WindowCase) -> RangeObservation:
        """See :class:`impl.target.FunctionTarget`."""
        case.validate()
        search = self._part("window")
        features = self._builder.features(case.features)
        return _range(lambda: search(features, start=case.start, end=case.end))

    def row_range(self, case: RowRangeCase) -> RangeObservation:
        """See :class:`impl.target.FunctionTarget`."""
        case.validate()
        placeholder = self._part("row_range")(0, len(case.is_embed), case.is_embed)
        return _range(lambda: placeholder.get_embeds_indices_in_range(case.start, case.end))


def _range(call: Callable[[], tuple[int, int]]) -> RangeObservation:
    try:
        low, high = call()
    except Exception as error:
        return RangeObservation(*_NO_RANGE, error=observed(error))
    return RangeObservation(int(low), int(high))
