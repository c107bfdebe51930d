"""Call a release's scheduling of encoder inputs once, with a book whose answers are given.

Here the call itself is under proof, for decoders and encoder-decoder models, with and without a
store of encoder outputs. What the book answers is proved of the book, and is a choice here: whether
it has an entry, and how many slots could be free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from impl.target import error_seen
from proofs.source.code.book_calls import SCHEDULER_CLASS, SCHEDULER_MODULE
from proofs.source.code.encoder_passes import RESERVE_METHOD, TRY_METHOD, has_reservation
from proofs.source.code.gather import FeatureInput, feature_specs
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_parts import NoLog
from proofs.symbolic.exploration import BudgetExhausted
from proofs.symbolic.integers import AnyInt, NotModelled, SymbolicBool
from spec.functions.observations import request_name
from spec.record.steps import ErrorSeen
from spec.rules.encoder_inputs import has_room

_OVERRIDES = {"logger": NoLog()}


@dataclass(frozen=True)
class CallInput:
    """What one call reads (tokens, rows).

    Attributes:
        num_known_tokens: prompt and generated tokens.
        num_computed_tokens: its progress.
        num_new_tokens: the chunk that would run.
        encoder_budget: rows that the encoder may still compute.
        num_freeable_slots: slots free now or after all evictions.
        shift: how far past the chunk the scheduler looks.
        whole_items: chunking of items is off.
        cached: by hash, whether the book has its entry.
        stored: by hash, whether a store has its output; ``None`` without a store.
        is_encoder_decoder: what the model is.
    """

    features: tuple[FeatureInput, ...]
    num_known_tokens: AnyInt
    num_computed_tokens: AnyInt
    num_new_tokens: AnyInt
    encoder_budget: AnyInt
    num_freeable_slots: AnyInt
    shift: AnyInt
    whole_items: bool | SymbolicBool
    cached: Mapping[str, bool | SymbolicBool]
    stored: Mapping[str, bool | SymbolicBool] | None
    is_encoder_decoder: bool


@dataclass(frozen=True)
class CallSeen:
    """What one call did.

    Attributes:
        chosen: features to encode.
        loaded: features to load from a store.
        duplicates: further occurrences of hashes among them; none before releases name them.
        hits: features whose entry was there, and is referenced now.
        num_tokens: the chunk that will run.
        encoder_budget: rows that the encoder may compute after it.
        error: an exception in the place of all that.
    """

    chosen: tuple[int, ...] = ()
    loaded: tuple[int, ...] = ()
    duplicates: tuple[int, ...] | None = None
    hits: tuple[int, ...] = ()
    num_tokens: AnyInt = 0
    encoder_budget: AnyInt = 0
    error: ErrorSeen | None = None


class _AnsweringBook:
    """A book that answers as it was given, and records the references that it was asked for."""

    def __init__(self, given: CallInput, rows: Callable[[int], AnyInt]) -> None:
        self._given = given
        self._rows = rows
        self.hits: list[int] = []

    def _has(self, input_id: int) -> bool:
        return bool(self._given.cached[self._given.features[input_id].identifier])

    def check_and_update_cache(self, _request: Any, input_id: int) -> bool:
        """Whether the entry is there; then it is referenced."""
        if not self._has(input_id):
            return False
        self.hits.append(input_id)
        return True

    def get_cached_num_encoder_embeds(self, _request: Any, input_id: int) -> AnyInt | None:
        """Rows of the entry: a hash stands for one content."""
        return self._rows(input_id) if self._has(input_id) else None

    def can_allocate(
        self, _request: Any, input_id: int, encoder_budget: AnyInt, chosen_rows: AnyInt
    ) -> bool:
        """Whether there is room and encoder budget, by the rule that is proved of the book."""
        freeable = self._given.num_freeable_slots
        return bool(has_room(self._rows(input_id), encoder_budget, chosen_rows, freeable))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotModelled(f"the book is asked for {name}, which is not modelled")


def call_scheduling(release: ReleaseSource, given: CallInput) -> CallSeen:
    """One call, and the reservation near the prefill's end where the release has one.

    Raises:
        NotModelled: the code uses something that is not modelled.
    """
    specs = feature_specs(release, given.features)
    request = SimpleNamespace(
        request_id=request_name(0),
        mm_features=specs,
        has_encoder_inputs=bool(specs),
        num_tokens=given.num_known_tokens,
        get_num_encoder_embeds=lambda i: specs[i].mm_position.get_num_embeds(),
    )
    book = _AnsweringBook(given, request.get_num_encoder_embeds)
    scheduler = (
        release.with_overrides(_OVERRIDES)
        .module(SCHEDULER_MODULE)
        .stand_in(
            SCHEDULER_CLASS,
            encoder_cache_manager=book,
            is_encoder_decoder=given.is_encoder_decoder,
            ec_connector=None if given.stored is None else _Store(given.stored),
            num_prefill_lookahead=given.shift,
            scheduler_config=SimpleNamespace(disable_chunked_mm_input=given.whole_items),
            encoder_cache_mismatch_reqs=set(),
        )
    )
    computed = given.num_computed_tokens
    try:
        chosen, num_tokens, budget, loaded, *rest = getattr(scheduler, TRY_METHOD)(
            request,
            computed,
            given.num_new_tokens,
            given.encoder_budget,
            shift_computed_tokens=given.shift,
        )
        if has_reservation(release):
            num_tokens = getattr(scheduler, RESERVE_METHOD)(request, computed, num_tokens)
    except (NotModelled, BudgetExhausted, MemoryError):
        raise
    except Exception as error:
        return CallSeen(error=error_seen(error))
    if len(rest) > 1:
        raise NotModelled(f"{TRY_METHOD} returns more than is modelled")
    duplicates = tuple(rest[0]) if rest else None
    return CallSeen(tuple(chosen), tuple(loaded), duplicates, tuple(book.hits), num_tokens, budget)


class _Store:
    def __init__(self, stored: Mapping[str, bool | SymbolicBool]) -> None:
        self._stored = stored

    def has_cache_item(self, identifier: str) -> bool:
        """Whether the store has the output."""
        return bool(self._stored[identifier])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotModelled(f"a store is asked for {name}, which is not modelled")
