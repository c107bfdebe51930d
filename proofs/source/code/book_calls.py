"""Run a release's books and its *free* on plain or symbolic integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NoReturn

from impl.target import error_seen
from proofs.source.code.gather import FeatureInput, feature_specs
from proofs.source.code.release import ReleaseSource
from proofs.symbolic.exploration import BudgetExhausted
from proofs.symbolic.integers import AnyInt, NotModelled, SymbolicBool
from spec.functions.cases import BookCase
from spec.functions.observations import Answer, BookObservation, BookState, BookStep, request_name

BOOK_MODULE = "vllm.v1.core.encoder_cache_manager"
BOOK_CLASS = "EncoderCacheManager"
ENCODER_DECODER_CLASS = "EncoderDecoderCacheManager"
SCHEDULER_MODULE = "vllm.v1.core.sched.scheduler"
SCHEDULER_CLASS = "Scheduler"
FREE_METHOD = "_free_encoder_inputs"


def new_book(release: ReleaseSource, cache_size: AnyInt, *, is_encoder_decoder: bool) -> Any:
    """An empty book of the release."""
    class_name = ENCODER_DECODER_CLASS if is_encoder_decoder else BOOK_CLASS
    return getattr(release.module(BOOK_MODULE), class_name)(cache_size)


def new_request(name: str, identifiers: Sequence[str], rows: Sequence[AnyInt]) -> Any:
    """A request as a book sees it: hashes, and rows of each input."""
    return SimpleNamespace(
        request_id=name,
        mm_features=[SimpleNamespace(identifier=identifier) for identifier in identifiers],
        get_num_encoder_embeds=lambda input_id: rows[input_id],
    )


def take(
    book: Any,
    request: Any,
    input_id: int,
    encoder_budget: AnyInt | None = None,
    num_rows_chosen: AnyInt = 0,
) -> Answer:
    """Ask for one input the way the release's scheduler does.

    Where the release compares row counts, it does so before the hit, and only for a book that keeps
    entries.

    Args:
        book: a book of the release.
        request: who asks, as made by :func:`new_request`.
        encoder_budget: rows that the encoder may still compute; ``None``: as many as needed.
        num_rows_chosen: rows chosen before in the same scheduling call and not yet allocated.
    """
    rows = request.get_num_encoder_embeds(input_id)
    keeps_entries = hasattr(book, "cached")
    count_stored = getattr(book, "get_cached_num_encoder_embeds", None) if keeps_entries else None
    stored = None if count_stored is None else count_stored(request, input_id)
    if stored is not None and stored != rows:
        return "rejected"
    if book.check_and_update_cache(request, input_id):
        return "hit"
    budget = rows if encoder_budget is None else encoder_budget
    if not book.can_allocate(request, input_id, budget, num_rows_chosen):
        return "refused"
    book.allocate(request, input_id)
    return "allocated"


def book_state(book: Any) -> BookState:
    """The book's contents as it reports them."""
    cached = getattr(book, "cached", {})
    return BookState(
        references=tuple((name, tuple(sorted(holders))) for name, holders in cached.items()),
        num_free_slots=book.num_free_slots,
        num_freeable_slots=getattr(book, "num_freeable_slots", None),
    )


def run_book(release: ReleaseSource, case: BookCase) -> BookObservation:
    """Carry out a case's operations. Features need an ``identifier`` and ``num_rows`` only.

    Raises:
        NotModelled: the code uses something that is not modelled.
    """
    book = new_book(release, case.cache_size, is_encoder_decoder=case.is_encoder_decoder)
    requests = [
        new_request(request_name(i), [f.identifier for f in fs], [f.num_rows for f in fs])
        for i, fs in enumerate(case.requests)
    ]
    steps: list[BookStep] = []
    try:
        for operation in case.operations:
            answer: Answer = "done"
            notices: list[str] = []
            match operation.action:
                case "take":
                    answer = take(
                        book,
                        requests[operation.request],
                        operation.feature,
                        operation.encoder_budget,
                        operation.num_rows_chosen,
                    )
                case "drop":
                    book.free_encoder_input(requests[operation.request], operation.feature)
                case "finish":
                    book.free(requests[operation.request])
                case "end_pass":
                    notices = list(book.get_freed_mm_hashes())
                case "reset":
                    book.reset()
            steps.append(BookStep(answer, tuple(notices), book_state(book)))
    except (NotModelled, BudgetExhausted, MemoryError):
        raise
    except Exception as error:
        return BookObservation(tuple(steps), error_seen(error))
    return BookObservation(tuple(steps))


@dataclass(frozen=True)
class FreeInput:
    """What *free* reads of a request and of the scheduler (all counts in tokens)."""

    features: tuple[FeatureInput, ...]
    num_computed_tokens: AnyInt
    num_output_placeholders: AnyInt
    is_encoder_decoder: bool | SymbolicBool
    uses_drafter: bool | SymbolicBool
    scheduler_shift: AnyInt


@dataclass
class DropRecorder:
    """A book in which every feature is referenced and that records what is let go."""

    count: int
    dropped: list[int] = field(default_factory=list)

    def get_cached_input_ids(self, _request: object) -> set[int]:
        """Every input is referenced."""
        return set(range(self.count))

    def free_encoder_input(self, _request: object, input_id: int) -> None:
        """Record one reference let go."""
        self.dropped.append(input_id)

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse anything else that is asked of the book."""
        raise NotModelled(f"free asks the book for {name}, which is not modelled")


def has_free(release: ReleaseSource) -> bool:
    """Whether the release has the function."""
    if not release.has_module(SCHEDULER_MODULE):
        return False
    module = release.module(SCHEDULER_MODULE)
    return module.definition(SCHEDULER_CLASS, FREE_METHOD) is not None


def call_free(release: ReleaseSource, given: FreeInput, book: Any, request_id: str) -> None:
    """Run *free* once with the given book.

    Raises:
        NotModelled: the code uses something that is not modelled.
    """
    scheduler = release.module(SCHEDULER_MODULE).stand_in(
        SCHEDULER_CLASS,
        encoder_cache_manager=book,
        is_encoder_decoder=given.is_encoder_decoder,
        use_eagle=given.uses_drafter,
        num_prefill_lookahead=given.scheduler_shift,
        ec_connector=None,
    )
    request = SimpleNamespace(
        request_id=request_id,
        mm_features=feature_specs(release, given.features),
        num_computed_tokens=given.num_computed_tokens,
        num_output_placeholders=given.num_output_placeholders,
    )
    getattr(scheduler, FREE_METHOD)(request)
