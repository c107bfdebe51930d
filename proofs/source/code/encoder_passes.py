"""Run a release's scheduling of encoder inputs, pass by pass, on plain or symbolic integers.

A pass is what ``schedule()`` does for one request between choosing its tokens and running it: the
release's own ``_try_schedule_encoder_inputs``, its reservation near the prefill's end where it has
one, and the allocations. Between two passes the release's own *free* runs, as in an update of a
synchronous engine.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from impl.target import error_seen
from proofs.source.code.book_calls import (
    FREE_METHOD,
    SCHEDULER_CLASS,
    SCHEDULER_MODULE,
    book_state,
    new_book,
)
from proofs.source.code.gather import FeatureInput, feature_specs
from proofs.source.code.release import ReleaseSource, SourceModule
from proofs.symbolic.exploration import BudgetExhausted
from proofs.symbolic.integers import AnyInt, NotModelled, SymbolicBool
from spec.algebra import min_
from spec.functions.observations import (
    BookState,
    SchedulingObservation,
    SchedulingPass,
    request_name,
)
from spec.functions.scheduling_cases import Holder

TRY_METHOD = "_try_schedule_encoder_inputs"
RESERVE_METHOD = "_reserve_prefill_lookahead"
ALLOCATE_METHOD = "_allocate_encoder_inputs"

_ANOTHER = "another-request"


@dataclass(frozen=True)
class EntryInput:
    """An entry of the book before the first pass; unreferenced ones are listed oldest first."""

    identifier: str
    num_rows: AnyInt
    holder: Holder


@dataclass(frozen=True)
class SchedulingInput:
    """What the passes read of a request, of the configuration and of the book (tokens, rows)."""

    features: tuple[FeatureInput, ...]
    prefill_len: AnyInt
    num_computed_tokens: AnyInt
    token_budget: AnyInt
    encoder_budget: AnyInt
    cache_size: AnyInt
    scheduler_shift: AnyInt
    whole_items: bool | SymbolicBool
    uses_drafter: bool | SymbolicBool
    entries: tuple[EntryInput, ...]
    num_passes: int = 1


def has_scheduling(release: ReleaseSource) -> bool:
    """Whether the release schedules encoder inputs in a method of its own."""
    if not release.has_module(SCHEDULER_MODULE):
        return False
    return release.module(SCHEDULER_MODULE).definition(SCHEDULER_CLASS, TRY_METHOD) is not None


def has_reservation(release: ReleaseSource) -> bool:
    """Whether the release keeps chunks from ending just before the prefill does (0.28.0 on).

    Only such a release has a shift above 1.
    """
    if not release.has_module(SCHEDULER_MODULE):
        return False
    module = release.module(SCHEDULER_MODULE)
    return module.definition(SCHEDULER_CLASS, RESERVE_METHOD) is not None


def require_known_calls(release: ReleaseSource) -> None:
    """Check that ``schedule()`` calls the methods under proof the way a pass here does.

    Raises:
        NotModelled: it does not, so that what is proved of them would say nothing of a pass.
    """
    module = release.module(SCHEDULER_MODULE)
    tries = module.calls(SCHEDULER_CLASS, "schedule", TRY_METHOD)
    reserves = module.calls(SCHEDULER_CLASS, "schedule", RESERVE_METHOD)
    if not tries:
        raise NotModelled(f"schedule() does not call {TRY_METHOD}")
    for call in tries:
        shift = next((k.value for k in call.keywords if k.arg == "shift_computed_tokens"), None)
        if shift is None or ast.unparse(shift) not in _KNOWN_SHIFTS:
            raise NotModelled(f"schedule() gives {TRY_METHOD} another shift than is modelled")
    if has_reservation(release) and len(reserves) != len(tries):
        raise NotModelled(f"schedule() does not call {RESERVE_METHOD} after each {TRY_METHOD}")


_KNOWN_SHIFTS = ("1 if self.use_eagle else 0", "self.num_prefill_lookahead")


def run_scheduling(release: ReleaseSource, given: SchedulingInput) -> SchedulingObservation:
    """Run the passes, up to the one that gets no token, the prefill's end, or an error.

    Raises:
        NotModelled: the code uses something that is not modelled.
    """
    passes: list[SchedulingPass] = []
    try:
        run = _Run(release, given)
        for index in range(given.num_passes):
            if index:
                run.update()
            passes.append(run.schedule())
            if index + 1 < given.num_passes and run.is_over():
                break
    except (NotModelled, BudgetExhausted, MemoryError):
        raise
    except Exception as error:
        return SchedulingObservation(tuple(passes), error_seen(error))
    return SchedulingObservation(tuple(passes))


@dataclass
class _WatchedBook:
    """A book that also records which features are hit and which are refused."""

    book: Any
    hits: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)

    def check_and_update_cache(self, request: Any, input_id: int) -> bool:
        """Take a reference if the entry is there."""
        hit = bool(self.book.check_and_update_cache(request, input_id))
        if hit:
            self.hits.append(input_id)
        return hit

    def can_allocate(self, request: Any, input_id: int, *limits: AnyInt) -> bool:
        """Whether there is room and encoder budget."""
        granted = bool(self.book.can_allocate(request, input_id, *limits))
        if not granted:
            self.refused.append(input_id)
        return granted

    def __getattr__(self, name: str) -> Any:
        """Everything else is the book's own."""
        return getattr(self.book, name)


class _Run:
    """One request, the book and the scheduler, between passes."""

    def __init__(self, release: ReleaseSource, given: SchedulingInput) -> None:
        self._given = given
        self._module: SourceModule = release.module(SCHEDULER_MODULE)
        self._reserves = has_reservation(release)
        specs = feature_specs(release, given.features)
        self._request = SimpleNamespace(
            request_id=request_name(0),
            mm_features=specs,
            has_encoder_inputs=bool(specs),
            num_tokens=given.prefill_len,
            num_computed_tokens=given.num_computed_tokens,
            num_output_placeholders=0,
            get_num_encoder_embeds=lambda i: specs[i].mm_position.get_num_embeds(),
        )
        self._book = new_book(release, given.cache_size, is_encoder_decoder=False)
        self._fill()
        self._last: AnyInt = 0

    def _fill(self) -> None:
        """Bring the book into its initial state through its own methods."""
        entries = self._given.entries
        another = SimpleNamespace(
            request_id=_ANOTHER,
            mm_features=[SimpleNamespace(identifier=entry.identifier) for entry in entries],
            get_num_encoder_embeds=lambda i: entries[i].num_rows,
        )
        names = [feature.identifier for feature in self._given.features]
        for index, entry in enumerate(entries):
            if entry.holder == "itself":
                self._book.allocate(self._request, names.index(entry.identifier))
            else:
                self._book.allocate(another, index)
        for index, entry in enumerate(entries):
            if entry.holder == "nobody":
                self._book.free_encoder_input(another, index)

    def _scheduler(self, book: Any) -> Any:
        given = self._given
        return self._module.stand_in(
            SCHEDULER_CLASS,
            encoder_cache_manager=book,
            is_encoder_decoder=False,
            ec_connector=None,
            use_eagle=given.uses_drafter,
            num_prefill_lookahead=given.scheduler_shift,
            scheduler_config=SimpleNamespace(disable_chunked_mm_input=given.whole_items),
            encoder_cache_mismatch_reqs=set(),
        )

    def is_over(self) -> bool:
        """Whether the last pass gave the request nothing, or all that was left of its prefill."""
        return bool(self._last < 1) or bool(self._computed >= self._given.prefill_len)

    @property
    def _computed(self) -> AnyInt:
        computed: AnyInt = self._request.num_computed_tokens
        return computed

    def update(self) -> None:
        """Let go of what the request has processed."""
        getattr(self._scheduler(self._book), FREE_METHOD)(self._request)

    def schedule(self) -> SchedulingPass:
        """One pass."""
        watched = _WatchedBook(self._book)
        scheduler = self._scheduler(watched)
        request, computed = self._request, self._computed
        asked = min_(self._given.prefill_len - computed, self._given.token_budget)
        chosen, num_new, _, external, *rest = getattr(scheduler, TRY_METHOD)(
            request,
            computed,
            asked,
            self._given.encoder_budget,
            shift_computed_tokens=self._given.scheduler_shift,
        )
        duplicates: Sequence[int] = rest[0] if rest else ()
        if external or len(rest) > 1:
            raise NotModelled(f"{TRY_METHOD} returns more than is modelled")
        hits, kept = tuple(watched.hits), num_new
        if self._reserves:
            num_new = getattr(scheduler, RESERVE_METHOD)(request, computed, num_new)
        runs = not num_new == 0  # noqa: SIM201 - a symbolic integer forks once on its equality
        if runs:
            self._allocate(scheduler, chosen, duplicates)
        request.num_computed_tokens = computed + num_new
        self._last = num_new
        return SchedulingPass(
            num_computed_tokens=computed,  # type: ignore[arg-type]
            num_asked_tokens=asked,
            num_kept_tokens=kept,
            num_scheduled_tokens=num_new,
            hits=hits,
            chosen=tuple(chosen),
            duplicates=tuple(duplicates),
            refused=tuple(watched.refused),
            book=self._state(),
        )

    def _allocate(self, scheduler: Any, chosen: Sequence[int], duplicates: Sequence[int]) -> None:
        if self._module.definition(SCHEDULER_CLASS, ALLOCATE_METHOD) is not None:
            getattr(scheduler, ALLOCATE_METHOD)(self._request, list(chosen), list(duplicates))
            return
        if duplicates:
            raise NotModelled(f"{TRY_METHOD} returns duplicates that no method allocates")
        for input_id in chosen:
            self._book.allocate(self._request, input_id)

    def _state(self) -> BookState:
        return book_state(self._book)
