"""Run a release's ``schedule()`` and ``update_from_output()`` for a lone request, pass by pass.

The release's own source runs unchanged on plain or symbolic integers: the scheduler's methods, its
queues, its request's methods and its book. Around it stand a KV manager that grants everything, a
worker that keeps what it was told to encode and drops what it was told to drop, in the order of
V1, and a sampler that yields a token where a step reaches the end of what is known, and accepts
drafts as the input says. What is seen is recorded as the steps of a trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from impl.target import error_seen
from proofs.source.code.book_calls import SCHEDULER_CLASS, SCHEDULER_MODULE, new_book
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_parts import TOKEN, Known, KVBlocks
from proofs.source.code.run_setup import (
    NO_RESULTS,
    RUN_NAME,
    RunCode,
    RunInput,
    new_run_request,
    new_run_scheduler,
)
from proofs.symbolic.exploration import BudgetExhausted
from proofs.symbolic.integers import AnyInt, NotModelled
from spec.errors import message_of
from spec.record.steps import (
    Call,
    Encoding,
    EngineState,
    ErrorSeen,
    EventSeen,
    LoopBookState,
    PassSeen,
    Read,
    RequestOutcome,
    RequestState,
    ScheduledRequest,
    Step,
    UpdateSeen,
    WorkerSeen,
)

UPDATE_METHOD = "update_from_output"


def has_runs(release: ReleaseSource) -> bool:
    """Whether the release has the functions that a run is made of."""
    if not release.has_module(SCHEDULER_MODULE):
        return False
    module = release.module(SCHEDULER_MODULE)
    return all(
        module.definition(SCHEDULER_CLASS, name) is not None for name in ("schedule", UPDATE_METHOD)
    )


def run_alone(code: RunCode, given: RunInput) -> Iterator[Step]:
    """The steps of a run: its arrival, then passes and updates until it has ended.

    It is endless where the request stands still. An error ends it.

    Raises:
        NotModelled: the code uses something that is not modelled.
    """
    run = _Run(code, given)
    yield run.arrive()
    index = 0
    while run.is_active():
        seen = run.schedule(index)
        yield seen
        if seen.error is not None:
            return
        update = run.update(index, seen)
        if seen.scheduled or update.calls or update.error:
            yield update
        if update.error is not None:
            return
        index += 1


class _WatchedBook:
    """A book whose calls are recorded."""

    def __init__(self, book: Any, calls: list[Call]) -> None:
        self._book = book
        self._calls = calls

    def check_and_update_cache(self, request: Any, input_id: int) -> bool:
        """Take a reference if the entry is there."""
        hit = bool(self._book.check_and_update_cache(request, input_id))
        self._calls.append(Call("check_and_update_cache", 0, input_id, hit))
        return hit

    def can_allocate(self, request: Any, input_id: int, budget: AnyInt, chosen: AnyInt) -> bool:
        """Whether there is room and encoder budget."""
        fits = bool(self._book.can_allocate(request, input_id, budget, chosen))
        call = Call("can_allocate", 0, input_id, fits, budget, chosen)  # type: ignore[arg-type]
        self._calls.append(call)
        return fits

    def allocate(self, request: Any, input_id: int) -> None:
        """Make the entry."""
        self._book.allocate(request, input_id)
        self._calls.append(Call("allocate", 0, input_id))

    def free_encoder_input(self, request: Any, input_id: int) -> None:
        """Drop a reference."""
        self._book.free_encoder_input(request, input_id)
        self._calls.append(Call("free_encoder_input", 0, input_id))

    def free(self, request: Any) -> None:
        """Drop all references."""
        self._book.free(request)
        self._calls.append(Call("free", 0))

    def __getattr__(self, name: str) -> Any:
        """Everything else is the book's own."""
        return getattr(self._book, name)


class _Run:
    """The scheduler, its request and the worker, between steps."""

    def __init__(self, code: RunCode, given: RunInput) -> None:
        self._code = code
        self._given = given
        self._calls: list[Call] = []
        self._book = new_book(code.release, given.cache_size, is_encoder_decoder=False)
        self._kv_blocks = KVBlocks(code.release, self._granted)
        self._request = new_run_request(code, given)
        self._scheduler = new_run_scheduler(
            code, given, self._kv_blocks, _WatchedBook(self._book, self._calls)
        )
        self._contents: dict[str, int] = {}
        self._num_encodings = 0
        self._num_verified = 0

    def _granted(self, num_tokens: AnyInt) -> None:
        call = Call("allocate_slots", 0, answer=True, budget=num_tokens)  # type: ignore[arg-type]
        self._calls.append(call)

    def is_active(self) -> bool:
        """Whether the request has not ended."""
        return RUN_NAME in self._scheduler.requests

    def arrive(self) -> EventSeen:
        """The request comes."""
        error = self._attempt(lambda: self._scheduler.add_request(self._request))
        return EventSeen(0, "arrival", 0, self._taken(), (), self._state(), error)

    def schedule(self, index: int) -> PassSeen:
        """One pass, and the worker's run of it."""
        request, starts = self._request, self._request.status == self._code.statuses.WAITING
        before, outputs = request.num_computed_tokens, list[Any]()
        error = self._attempt(lambda: outputs.append(self._scheduler.schedule()))
        if error is not None:
            calls = self._taken()
            return PassSeen(index, calls, (), (), (), (), (), self._state(), None, error)
        self._output = output = outputs[0]
        scheduled = tuple(
            ScheduledRequest(
                0,
                before,
                num_tokens,
                len(output.scheduled_spec_decode_tokens.get(name, ())),
                0,
                request.num_tokens,
                starts,
            )
            for name, num_tokens in output.num_scheduled_tokens.items()
        )
        inputs = tuple((0, i) for i in output.scheduled_encoder_inputs.get(RUN_NAME, ()))
        notices = tuple(output.free_encoder_mm_hashes)
        rejected = (0,) if vars(self._scheduler).get("encoder_cache_mismatch_reqs") else ()
        calls, state = self._taken(), self._state()
        worker = self._execute(inputs, notices, starts=starts and bool(scheduled))
        return PassSeen(index, calls, scheduled, inputs, notices, (), rejected, state, worker)

    def _execute(
        self, inputs: tuple[tuple[int, int], ...], notices: tuple[str, ...], *, starts: bool
    ) -> WorkerSeen:
        for name in notices:
            self._contents.pop(name, None)
        encoded = []
        for _, index in inputs:
            rows = self._request.get_num_encoder_embeds(index)
            self._contents[self._given.features[index].identifier] = self._num_encodings
            encoded.append(Encoding(self._num_encodings, 0, index, rows))
            self._num_encodings += 1
        received = tuple((0, i) for i in range(len(self._given.features))) if starts else ()
        contents = tuple(self._contents.items())
        drafter = Read() if self._given.shift else None
        return WorkerSeen(received, (), tuple(encoded), contents, Read(), drafter)

    def update(self, index: int, seen: PassSeen) -> UpdateSeen:
        """The update of a pass, and the drafts that follow it."""
        outcomes: list[RequestOutcome] = []
        error = self._attempt(lambda: outcomes.extend(self._update(seen)))
        return UpdateSeen(index, tuple(outcomes), self._taken(), (), self._state(), error)

    def _update(self, seen: PassSeen) -> Iterator[RequestOutcome]:
        scheduler, sampled, num_accepted = self._scheduler, list[int](), 0
        for entry in seen.scheduled:
            sampled, num_accepted = self._sample(entry)
        result = Known(
            req_ids=[RUN_NAME],
            req_id_to_index={RUN_NAME: 0},
            sampled_token_ids=[sampled],
            prompt_logprobs_dict={},
            prompt_token_id_logprobs_dict={},
            **NO_RESULTS,
        )
        outputs = getattr(scheduler, UPDATE_METHOD)(self._output, result)
        emitted = [
            len(output.new_token_ids) for several in outputs.values() for output in several.outputs
        ]
        if seen.scheduled:
            yield RequestOutcome(0, num_accepted, sum(emitted))
        if self._given.num_drafts and seen.scheduled:
            drafts = [TOKEN] * self._given.num_drafts
            scheduler.update_draft_token_ids(Known(req_ids=[RUN_NAME], draft_token_ids=[drafts]))

    def _sample(self, entry: ScheduledRequest) -> tuple[list[int], int]:
        """The tokens that a step yields, and how many drafts were accepted among them."""
        request = self._request
        if request.num_computed_tokens < request.num_tokens + entry.num_draft_tokens:
            return [], 0
        num_accepted = self._verify(entry.num_draft_tokens)
        return [TOKEN] * (1 + num_accepted), num_accepted

    def _verify(self, num_drafts: int) -> int:
        """How many of the drafts of a step are accepted."""
        answers = self._given.accepted
        if not num_drafts or self._num_verified == len(answers):
            return 0
        accepted, count = answers[self._num_verified], 0
        self._num_verified += 1
        while count < num_drafts and accepted > count:
            count += 1
        return count

    def _attempt(self, step: Any) -> ErrorSeen | None:
        try:
            step()
        except (NotModelled, BudgetExhausted, MemoryError):
            raise
        except Exception as error:
            if isinstance(error, TypeError) and "Symbolic" in message_of(error):
                # Plain integers can do it, so it is no fault of the code's.
                raise NotModelled(message_of(error)) from error
            return error_seen(error)
        return None

    def _taken(self) -> tuple[Call, ...]:
        calls = tuple(self._calls)
        self._calls.clear()
        return calls

    def _state(self) -> EngineState:
        request, scheduler = self._request, self._scheduler
        waiting = (0,) if any(len(getattr(scheduler, q)) for q in self._queues()) else ()
        book = self._book
        return EngineState(
            (
                RequestState(
                    0,
                    self._code.status_words.get(request.status, "finished"),
                    request.num_computed_tokens,
                    request.num_output_placeholders,
                    len(request.spec_token_ids),
                    request.num_tokens,
                    self._kv_blocks.num_blocks,  # type: ignore[arg-type]
                ),
            ),
            waiting,
            (0,) if scheduler.running else (),
            LoopBookState(
                tuple((name, (0,) * bool(held)) for name, held in book.cached.items()),
                tuple(book.freeable),
                book.num_free_slots,
                book.num_freeable_slots,
            ),
        )

    def _queues(self) -> Iterator[str]:
        own = vars(self._scheduler)
        return (q for q in ("kv_holding_waiting", "skipped_waiting", "waiting") if q in own)
