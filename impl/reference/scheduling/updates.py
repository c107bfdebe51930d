"""What the result of a pass does to the scheduler: progress, references, finished requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from impl.reference.scheduling.free import FreeEncoderInputs
from impl.reference.scheduling.scheduled_request import SchedulerRequest
from impl.reference.scheduling.scheduler import Scheduler
from spec.record.scenario import ScenarioRequest
from spec.record.steps import RequestOutcome


@dataclass(frozen=True, slots=True)
class RequestInFlight:
    """One request of a pass that is not yet updated.

    Attributes:
        num_tokens: tokens that run.
        num_draft_tokens: drafts among them.
        samples: whether the step reaches the end of what is known, and so samples.
        epoch: the request's epoch when the pass was scheduled.
    """

    request: SchedulerRequest
    num_tokens: int
    num_draft_tokens: int
    samples: bool
    epoch: int


class Updates:
    """Takes the results of passes back, in the order in which they were scheduled.

    Args:
        requests: what the world answers each request.
        free_encoder_inputs: lets references go by progress.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        requests: tuple[ScenarioRequest, ...],
        free_encoder_inputs: FreeEncoderInputs,
    ) -> None:
        self._scheduler = scheduler
        self._requests = requests
        self._config = scheduler.config
        self._free = partial(
            free_encoder_inputs, is_encoder_decoder=self._config.is_encoder_decoder
        )
        self.continued: list[tuple[int, int]] = []
        """Requests whose next turn began, with its first position, since it was last emptied."""

    def update(self, pass_index: int, batch: list[RequestInFlight]) -> Iterator[RequestOutcome]:
        """Update one pass, request by request."""
        for entry in batch:
            yield self._update_request(pass_index, entry)

    def _update_request(self, pass_index: int, entry: RequestInFlight) -> RequestOutcome:
        request = entry.request
        request.num_in_flight_tokens -= entry.num_tokens
        if request.has_ended or entry.epoch < request.drop_before:
            return RequestOutcome(request.index, 0, 0, dropped=True)
        is_stale = entry.epoch < request.epoch
        if not is_stale:
            rewound = self._failed_load(pass_index, request)
            if rewound is not None:
                return RequestOutcome(request.index, 0, 0, dropped=True, rewound=rewound)
        accepted = self._accepted(entry)
        if not is_stale:
            self._take_rejections_back(request, entry.num_draft_tokens - accepted)
            self.free_by_progress(request)
        emitted = self._emit(entry, accepted, is_stale) if entry.samples else 0
        return RequestOutcome(request.index, accepted, emitted)

    def free_by_progress(self, request: SchedulerRequest) -> None:
        """Let go of the features that confirmed progress has passed.

        After the step has run, since its drafter still reads them; releases up to 0.19 did it when
        the step was scheduled (38907).
        """
        if request.mm_features:
            self._free(request, self._scheduler.book)

    def _failed_load(self, pass_index: int, request: SchedulerRequest) -> int | None:
        """Let progress fall where KV turns out to be missing; to what, or ``None``.

        All references go: what they were taken for will be asked for again in order, and an entry
        further on must not keep the room that an earlier feature now needs.
        """
        for load in self._requests[request.index].failed_loads:
            # The last known token is always computed again: sampling goes on from it.
            left = min(load.num_computed_tokens, request.num_tokens - 1)
            confirmed = request.num_computed_tokens - request.num_output_placeholders
            if load.at == pass_index and left < confirmed:
                request.num_computed_tokens = left
                request.make_outputs_stale(drop=True)
                self._scheduler.book.free(request)
                return left
        return None

    def _accepted(self, entry: RequestInFlight) -> int:
        if not entry.num_draft_tokens:
            return 0
        request = entry.request
        answers = self._requests[request.index].accepted_drafts
        index = request.num_verifications
        request.num_verifications += 1
        return min(answers[index], entry.num_draft_tokens) if index < len(answers) else 0

    def _take_rejections_back(self, request: SchedulerRequest, rejected: int) -> None:
        request.num_computed_tokens -= rejected
        if request.num_output_placeholders:
            request.num_output_placeholders -= rejected

    def _emit(self, entry: RequestInFlight, accepted: int, is_stale: bool) -> int:
        """Append what was sampled, and end the turn at its limit; tokens appended."""
        request = entry.request
        sampled = 1 + accepted
        emitted = min(sampled, request.limit - request.num_tokens)
        request.num_tokens += emitted
        if not is_stale:
            # Progress covers all tokens but the last one, also after some were cut off.
            request.num_computed_tokens -= sampled - emitted
            if request.num_output_placeholders:
                request.num_output_placeholders -= sampled
        if request.num_tokens >= request.limit:
            self._end_turn(request)
        elif not is_stale and not self._config.async_depth:
            request.num_draft_tokens = self._config.num_speculative_tokens
        return emitted

    def _end_turn(self, request: SchedulerRequest) -> None:
        if not (request.turns_left or request.is_open):
            self._scheduler.end(request)
            return
        request.num_computed_tokens -= request.num_output_placeholders
        request.make_outputs_stale(drop=True)
        # Placeholders no longer hold anything back, and there will be no other update of the turn.
        self._scheduler.book.free(request)
        self._scheduler.pause(request)
        if request.turns_arrived:
            self.begin_turn(request)

    def begin_turn(self, request: SchedulerRequest) -> None:
        """Let a paused request go on with the input that arrived for it."""
        turn = request.turns_arrived.pop(0)
        request.turns_left -= 1
        request.begin_turn(turn)
        self.continued.append((request.index, request.num_tokens - turn.num_prompt_tokens))
        self._scheduler.resume(request)
