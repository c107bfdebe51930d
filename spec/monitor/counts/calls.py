"""Calls of each step: answers and references are what the book's entries say, before and after.

Part of the claim ``counts-agree``, with :mod:`spec.monitor.counts.counts`.
"""

from __future__ import annotations

from collections import Counter

from spec.history.history import History
from spec.history.log import FindingLog
from spec.record.steps import Call, PassSeen, ScheduledRequest, Step

CLAIM = "counts-agree"


class CallsMonitor:
    """Judge the calls of a run.

    Args:
        history: the run so far, the step included.
        log: where findings go.
    """

    def __init__(self, history: History, log: FindingLog) -> None:
        self._history = history
        self._config = history.config
        self._log = log
        self._freeable: tuple[str, ...] = ()
        self._keeps_freeable_slots: bool | None = None
        self._refused: set[int] = set()
        """Requests refused for good; one that ends in the update may be looked at again before."""

    def observe(self, step: Step) -> None:
        """Judge a step."""
        history = self._history
        if history.book_stays:
            return
        self._check_freeable_slots(step)
        if step.kind == "event" and step.event == "reset":
            self._freeable = step.state.book.freeable
            return
        # Steps that only ask for KV blocks are judged with the batch.
        asks = bool(history.book_calls)
        if not self._config.is_encoder_decoder:
            self._check_freeable(step)
            if asks or history.references is not history.previous_references:
                self._check_references(step)
        if asks and step.kind == "pass":
            self._check_answers(step)

    def _note(
        self, mechanism: str, observed: str, expected: str, request: int | None = None
    ) -> None:
        self._log.add(CLAIM, mechanism, observed=observed, expected=expected, request=request)

    def _check_freeable_slots(self, step: Step) -> None:
        keeps = step.state.book.num_freeable_slots is not None
        if self._keeps_freeable_slots not in (None, keeps):
            self._note(
                "freeable slots kept now and then",
                "the book reports freeable slots" if keeps else "the book reports none",
                "all of the time, or never",
            )
        self._keeps_freeable_slots = keeps

    def _check_references(self, step: Step) -> None:
        """Judge references that came or went against the step's calls."""
        history = self._history
        takes: dict[tuple[str, int], set[int]] = {}
        taken: set[tuple[str, int]] = set()
        drops: set[tuple[str, int]] = set()
        drops_all: set[int] = set()
        for call in step.calls:
            if call.method == "free":
                drops_all.add(call.request)
                takes = {
                    (name, request): kept
                    for (name, request), kept in takes.items()
                    if request != call.request
                }
            elif call.feature >= 0:
                key = (history.feature(call.request, call.feature).identifier, call.request)
                if call.method == "allocate" or (
                    call.method == "check_and_update_cache" and call.answer
                ):
                    takes.setdefault(key, set()).add(call.feature)
                    taken.add(key)
                elif call.method in ("free_encoder_input", "cancel"):
                    takes.get(key, set()).discard(call.feature)
                    drops.add(key)
        before, after = history.previous_references, history.references
        for (name, request), occurrences in takes.items():
            if occurrences and request not in after.get(name, ()):
                self._note(
                    "reference taken and not there",
                    f"request {request} took {name!r} and does not hold it",
                    "what was taken and not let go is held",
                    request,
                )
        if before is after:
            return
        for name, holders in after.items():
            earlier = before.get(name, ())
            if holders is earlier:
                continue
            for request in holders:
                if request not in earlier and (name, request) not in taken:
                    self._note(
                        "reference that nobody took",
                        f"request {request} holds {name!r}",
                        "a reference begins with a hit or an allocation",
                        request,
                    )
        letting_go = {request for _, request in drops}
        if step.kind == "event":
            letting_go.add(step.request)
        for name, holders in before.items():
            for request in holders:
                # Those that let nothing go are for dropped-in-update.
                if (
                    request in letting_go
                    and request not in drops_all
                    and (name, request) not in drops
                    and request not in after.get(name, ())
                ):
                    self._note(
                        "reference lost with another",
                        f"request {request} let others go and no longer holds {name!r}",
                        "a reference goes by a call for its feature",
                        request,
                    )

    def _check_answers(self, step: PassSeen) -> None:
        """Judge questions and answers of the pass against what was done with them."""
        history = self._history
        budget = self._config.encoder_compute_budget
        allocated: Counter[tuple[int, int]] = Counter()
        fits: set[tuple[int, int]] = set()
        missed: set[tuple[int, int]] = set()
        names: set[str] = set()
        rows = charged = 0
        for call in step.calls:
            if call.feature < 0:
                continue
            key = (call.request, call.feature)
            feature = history.feature(*key)
            if call.method == "can_allocate":
                if key not in missed and not self._config.is_encoder_decoder:
                    self._note(
                        "room asked for without a miss",
                        f"request {call.request} asked for room for {feature.describe()}",
                        "the book is asked first",
                        call.request,
                    )
                missed.discard(key)
                # What a victim had chosen may come back to the budget, or be lost to it.
                most = budget if step.preempted else budget - rows
                self._check_budget(call, feature.num_rows, budget - charged, most)
                if call.answer:
                    fits.add(key)
            elif call.method == "allocate":
                allocated[key] += 1
                names.add(feature.identifier)
                rows += feature.num_rows
                charged += feature.num_rows
                if key not in fits or allocated[key] > 1:
                    self._note(
                        "allocation without room for it",
                        f"request {call.request} allocated {feature.describe()}",
                        "room was made for it in the pass, once",
                        call.request,
                    )
            elif call.method == "cancel":
                allocated[key] -= 1
                rows -= feature.num_rows
            elif call.method == "check_and_update_cache":
                self._check_hit(step, call, feature.identifier, names)
                if call.answer is False:
                    missed.add(key)
        if not self._config.whole_items:
            for request, index in missed:
                self._note(
                    "miss without a question for room",
                    f"request {request} missed {history.feature(request, index).describe()}",
                    "room is asked for",
                    request,
                )
        running = {scheduled.request: scheduled for scheduled in step.scheduled}
        for request, index in fits - allocated.keys():
            # Releases ask for room before they see that the window has no row of the feature.
            if request in running and self._has_row_in_window(running[request], index):
                self._note(
                    "room made and not used",
                    f"request {request} runs without {history.feature(request, index).describe()}",
                    "what there was room for is allocated",
                    request,
                )

    def _has_row_in_window(self, scheduled: ScheduledRequest, index: int) -> bool:
        """Whether a feature has a row in the range that the pass looked at for its request."""
        start = scheduled.num_computed_tokens
        end = start + scheduled.num_scheduled_tokens + self._config.scheduler_lookahead
        feature = self._history.feature(scheduled.request, index)
        return next(iter(feature.segments(start, end)), None) is not None

    def _check_budget(self, call: Call, num_rows: int, least: int, most: int) -> None:
        """Judge the encoder budget that a question names."""
        if not least <= call.budget + call.chosen <= most or (
            call.answer and num_rows > call.budget
        ):
            self._note(
                "encoder budget differs",
                f"{num_rows} rows asked for with a budget of {call.budget}, {call.chosen} chosen: "
                f"{call.answer}",
                f"both together {least} to {most}, and room only within the budget",
                call.request,
            )

    def _check_hit(self, step: PassSeen, call: Call, name: str, allocated: set[str]) -> None:
        """Judge an answer of the book by its entries before and after the pass."""
        history = self._history
        was_there = name in history.previous_references or name in allocated
        if call.answer is None:
            self._refused.update(step.rejected)
            wrong = call.request not in self._refused
        elif call.answer:
            wrong = not was_there
        else:
            again = any(name in names for names in history.allocated.values())
            wrong = was_there and name in history.references and not again
        if wrong:
            self._note(
                "answer of the book differs from its entries",
                f"request {call.request} asked for {name!r}: {call.answer}",
                "a hit of what is there, and none where the request is refused for good",
                call.request,
            )

    def _check_freeable(self, step: Step) -> None:
        """Entries that stay unreferenced keep their places; which of them go is for the book."""
        book = step.state.book
        before, self._freeable = self._freeable, book.freeable
        if before is book.freeable or before == book.freeable:
            return
        history = self._history
        touched = {
            history.feature(call.request, call.feature).identifier
            for call in step.calls
            if call.method in ("check_and_update_cache", "allocate")
        }
        kept = [name for name in before if name not in touched and name in history.references]
        if list(book.freeable[: len(kept)]) != kept:
            self._note(
                "order of eviction changes",
                f"to be evicted: {list(book.freeable)}",
                f"{kept} first, and those let go since behind",
            )
