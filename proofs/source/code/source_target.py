"""A release's own functions as a target, run on plain integers with recorders for tensors.

Every counterexample of a source proof is replayed here and judged by the monitor, which knows
nothing of the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Literal, TypeAlias

from impl.target import Part, Runner, error_seen
from impl.tensors import TensorSettings
from proofs.source.code.book_calls import (
    BOOK_MODULE,
    FreeInput,
    book_state,
    call_free,
    has_free,
    new_book,
    new_request,
    run_book,
    take,
)
from proofs.source.code.encoder_passes import (
    EntryInput,
    SchedulingInput,
    has_scheduling,
    run_scheduling,
)
from proofs.source.code.gather import (
    INPUTS_MODULE,
    FeatureInput,
    GatherInput,
    RequestInput,
    call_gather,
    feature_specs,
    has_gather,
    position_of,
)
from proofs.source.code.recorders import BatchMask, FeatureMask, View, Write
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_passes import has_runs
from proofs.symbolic.integers import NotModelled
from spec.errors import InputError, message_of
from spec.functions.cases import (
    BookCase,
    FreeCase,
    GatherCase,
    RowRangeCase,
    SchedulingCase,
    WindowCase,
)
from spec.functions.observations import (
    BookObservation,
    FreeMoment,
    FreeObservation,
    GatherObservation,
    RangeObservation,
    RowIdentity,
    SchedulingObservation,
    request_name,
)
from spec.record.feature import Feature
from spec.record.steps import ErrorSeen

SourcePart: TypeAlias = Part | Literal["scheduling", "runs"]
"""A part of a release's source that claims are proved on."""

UTILS_MODULE = "vllm.multimodal.utils"
WINDOW_FUNCTION = "get_mm_features_in_window"


def feature_input(index: int, feature: Feature) -> FeatureInput:
    """A concrete feature as the code sees it."""
    if feature.is_embed is None:
        return FeatureInput(feature.offset, feature.length, feature.identifier, None, None)
    counts = list(accumulate(int(takes_row) for takes_row in feature.is_embed))
    return FeatureInput(
        feature.offset, feature.length, feature.identifier, FeatureMask(index), counts
    )


class SourceTarget:
    """The functions of one release, compiled from its source.

    Args:
        release: the source.
    """

    def __init__(self, release: ReleaseSource, name: str) -> None:
        self._release = release
        self.name = name

    def missing(self, part: SourcePart) -> str | None:
        """Why the release has no such part."""
        release = self._release
        match part:
            case "V1" | "V2":
                present = has_gather(release, part)
            case "free":
                present = has_free(release)
            case "book" | "encoder_decoder_book":
                present = release.has_module(BOOK_MODULE)
            case "scheduling":
                present = has_scheduling(release)
            case "runs":
                present = has_runs(release)
            case "window":
                present = release.module(UTILS_MODULE).definition(None, WINDOW_FUNCTION) is not None
            case "row_range":
                present = (
                    release.module(INPUTS_MODULE).definition(
                        "PlaceholderRange", "get_embeds_indices_in_range"
                    )
                    is not None
                )
        return None if present else f"{self.name} has no {part}"

    def gather(
        self, case: GatherCase, runner: Runner, tensors: TensorSettings | None = None
    ) -> GatherObservation:
        """Gather with recorders; ``tensors`` means nothing here.

        Raises:
            NotModelled: the code uses something that the recorders do not model.
        """
        masks: list[tuple[bool, ...] | None] = []
        requests: list[RequestInput] = []
        for request in case.requests:
            first = len(masks)
            masks.extend(feature.is_embed for feature in request.features)
            requests.append(
                RequestInput(
                    request.num_computed_tokens,
                    request.num_scheduled_tokens,
                    request.prefill_len,
                    tuple(feature_input(first + i, f) for i, f in enumerate(request.features)),
                )
            )
        resident = {output.identifier for output in case.resident}
        outcome = call_gather(
            self._release,
            runner,
            GatherInput(tuple(requests), resident.__contains__, case.draft_lookahead),
        )
        if outcome.error is not None:
            return GatherObservation(error=outcome.error)
        assert outcome.mask is not None
        try:
            return _observed(outcome.views, outcome.mask, masks)
        except ValueError as error:
            return GatherObservation(error=ErrorSeen("RuntimeError", message_of(error)))

    def free(self, case: FreeCase) -> FreeObservation:
        """Take every feature in the release's own book, then run *free* at each moment."""
        book = new_book(self._release, case.cache_size, is_encoder_decoder=case.is_encoder_decoder)
        request = _request(case.features)
        for index in range(len(case.features)):
            take(book, request, index)
        moments: list[FreeMoment] = []
        features = tuple(feature_input(i, f) for i, f in enumerate(case.features))
        for progress in case.progress:
            watched = _Watched(book, request)
            given = FreeInput(
                features,
                progress.num_computed_tokens,
                progress.num_output_placeholders,
                case.is_encoder_decoder,
                case.scheduler_shift > 0,
                case.scheduler_shift,
            )
            try:
                call_free(self._release, given, watched, request.request_id)
            except (NotModelled, MemoryError):
                raise
            except Exception as error:
                seen = error_seen(error)
                return FreeObservation(tuple(moments), seen)
            moments.append(FreeMoment(tuple(watched.dropped), book_state(book)))
        return FreeObservation(tuple(moments))

    def book(self, case: BookCase) -> BookObservation:
        """Carry out the case's operations on the release's book."""
        return run_book(self._release, case)

    def scheduling(self, case: SchedulingCase) -> SchedulingObservation:
        """Run the case's passes on the release's own book."""
        return run_scheduling(
            self._release,
            SchedulingInput(
                tuple(feature_input(i, f) for i, f in enumerate(case.features)),
                case.prefill_len,
                case.num_computed_tokens,
                case.token_budget,
                case.encoder_budget,
                case.cache_size,
                case.scheduler_shift,
                case.whole_items,
                case.scheduler_shift > 0,
                tuple(EntryInput(e.identifier, e.num_rows, e.holder) for e in case.entries),
                case.num_passes,
            ),
        )

    def window(self, case: WindowCase) -> RangeObservation:
        """Search the features that meet the window."""
        features = [feature_input(i, f) for i, f in enumerate(case.features)]
        search = getattr(self._release.module(UTILS_MODULE), WINDOW_FUNCTION)
        low, high = search(feature_specs(self._release, features), start=case.start, end=case.end)
        return RangeObservation(low, high)

    def row_range(self, case: RowRangeCase) -> RangeObservation:
        """Count the rows of a range of positions."""
        feature = Feature(0, len(case.is_embed), "A", case.is_embed)
        position = position_of(self._release, feature_input(0, feature))
        try:
            low, high = position.get_embeds_indices_in_range(case.start, case.end)
        except (ArithmeticError, AssertionError, LookupError) as error:
            return RangeObservation(-1, -1, error_seen(error))
        return RangeObservation(low, high)


class _Watched:
    """A book that also records what *free* lets go."""

    def __init__(self, book: Any, request: Any) -> None:
        self._book = book
        self._request = request
        self.dropped: list[int] = []

    def get_cached_input_ids(self, request: Any) -> Any:
        return self._book.get_cached_input_ids(request)

    def free_encoder_input(self, _request: object, input_id: int) -> None:
        self.dropped.append(input_id)
        self._book.free_encoder_input(self._request, input_id)


def _request(features: Sequence[Feature]) -> Any:
    return new_request(
        request_name(0), [f.identifier for f in features], [f.num_rows for f in features]
    )


def _observed(
    views: Sequence[View], mask: BatchMask, masks: Sequence[tuple[bool, ...] | None]
) -> GatherObservation:
    rows = [
        RowIdentity(view.identifier, row)
        for view in views
        for row in range(_plain(view.start), _plain(view.stop))
    ]
    written = [False] * _plain(mask.size)
    for write in mask.writes:
        _apply(write, written, masks)
    waiting = iter(rows)
    if sum(written) != len(rows):
        return GatherObservation(
            tuple(rows),
            tuple(_plain(v.stop) - _plain(v.start) for v in views),
            tuple(written),
            (),
        )
    return GatherObservation(
        rows=tuple(rows),
        slices=tuple(_plain(v.stop) - _plain(v.start) for v in views),
        mask=tuple(written),
        merged=tuple(next(waiting) if taken else None for taken in written),
    )


def _apply(write: Write, written: list[bool], masks: Sequence[tuple[bool, ...] | None]) -> None:
    # As tensors do: slices are clamped to what is there, and lengths must agree.
    places = range(len(written))[_plain(write.start) : _plain(write.stop)]
    values: Sequence[bool] = [True] * len(places)
    if write.value is not True:
        mask = masks[write.value.feature]
        assert mask is not None
        values = mask[_plain(write.value.start) : _plain(write.value.stop)]
    if len(values) != len(places):
        raise ValueError(f"{len(values)} values are written to {len(places)} positions")
    for place, value in zip(places, values, strict=True):
        written[place] = value or (write.mode == "or" and written[place])


def _plain(value: object) -> int:
    if not isinstance(value, int):
        raise InputError(f"a replay met the symbolic integer {value!r}")
    return value
