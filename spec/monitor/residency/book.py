"""The book after each step: its slots, who holds references, and what it tells the worker.

The claims ``slots-conserved``, ``no-idle-references``, ``released`` and ``evicted-not-live``.
"""

from __future__ import annotations

from spec.claims import predicates as claims
from spec.history.history import IDLE, History
from spec.history.log import FindingLog
from spec.record.steps import Ending, LoopBookState, PassSeen, Step


class BookMonitor:
    """Judge the book after each step of a run.

    Args:
        history: the run so far, the step included.
        log: where findings go.
    """

    def __init__(self, history: History, log: FindingLog) -> None:
        self._history = history
        self._config = history.config
        self._log = log
        self._has_entries = False

    def observe(self, step: Step) -> None:
        """Judge the book after a step."""
        if not self._history.book_stays:
            self._check_slots(step.state.book)
        if self._has_entries:
            self._log.premises["slots-conserved"] += 1
        if step.kind == "pass":
            self._check_notices(step)
            self._check_waiting(step)
        self._check_released()

    def finish(self, ending: Ending) -> None:
        """Check that a run that came to rest dropped every reference."""
        if ending != "idle":
            return
        self._log.premises["released"] += 1
        for name, holders in self._history.holders().items():
            for request in holders:
                if claims.released(True, True):
                    continue
                self._log.add_standing(
                    "released",
                    (name, request),
                    self._log.mechanism_of("released", (name, request))
                    or "reference left when the run ends",
                    observed=f"request {request} holds a reference to {name!r} at the end",
                    expected="every reference was dropped",
                    request=request,
                )

    def _check_slots(self, book: LoopBookState) -> None:
        if self._config.is_encoder_decoder:
            self._check_item_slots(book)
        else:
            self._check_entry_slots(book)
        self._log.settle("slots-conserved")

    def _check_item_slots(self, book: LoopBookState) -> None:
        held = sum(self._history.items_held.values())
        self._has_entries = held > 0
        self._check_sums("encoder-decoder book: ", book, held, held)

    def _check_entry_slots(self, book: LoopBookState) -> None:
        rows = self._history.entry_rows
        occupied = referenced = 0
        for name, holders in self._history.references.items():
            num_rows = rows.get(name)
            if num_rows is None:
                self._log.add_standing(
                    "slots-conserved",
                    ("entry", name),
                    "entry that nobody allocated",
                    observed=f"the book has {name!r}, for which no allocation was seen",
                    expected="every entry was allocated",
                )
                continue
            occupied += num_rows
            if holders:
                referenced += num_rows
        self._has_entries = occupied > 0
        self._check_sums("", book, occupied, referenced)
        self._check_freeable(book)

    def _check_sums(self, kind: str, book: LoopBookState, occupied: int, referenced: int) -> None:
        size = self._config.encoder_cache_size
        free, freeable = book.num_free_slots, book.num_freeable_slots
        counts = [(f"{kind}free", free, size - occupied, occupied)]
        if freeable is None:
            freeable = size - referenced
        else:
            counts.append((f"{kind}freeable", freeable, size - referenced, referenced))
        if claims.slots_conserved(free, freeable, occupied, referenced, size):
            return
        wrong = [
            (name, reported, true, taken)
            for name, reported, true, taken in counts
            if reported != true or true < 0
        ]
        for name, reported, true, taken in wrong or counts:
            self._note_slots(name, reported, true, taken)

    def _note_slots(self, name: str, reported: int, true: int, taken: int) -> None:
        size = self._config.encoder_cache_size
        if reported != true:
            more = reported > true
            self._log.add_standing(
                "slots-conserved",
                name,
                f"{name} slots {'above' if more else 'below'} the true sum",
                observed=f"{name} {reported} of {size}",
                expected=f"{true}, with {taken} rows taken",
            )
        else:
            self._log.add_standing(
                "slots-conserved",
                name,
                f"{name} slots below 0",
                observed=f"{name} {reported} of {size}, with {taken} rows taken",
                expected=f"between 0 and {size}",
            )

    def _check_freeable(self, book: LoopBookState) -> None:
        references, freeable = self._history.references, book.freeable
        listed = set(freeable)
        right = len(listed) == len(freeable)
        for name in references.keys() | listed:
            in_book, referenced = name in references, bool(references.get(name))
            right &= claims.freeable_is_unreferenced(name in listed, in_book, referenced)
        if right:
            return
        names = sorted(name for name, holders in references.items() if not holders)
        self._log.add_standing(
            "slots-conserved",
            "freeable entries",
            "freeable entries are not the unreferenced ones",
            observed=f"freeable: {list(freeable)}",
            expected=f"the unreferenced entries, {names}",
        )

    def _check_notices(self, step: PassSeen) -> None:
        for name in step.notices:
            self._log.premises["evicted-not-live"] += 1
            if not claims.evicted_not_live(True, name in self._history.references):
                again = any(name in names for names in self._history.allocated.values())
                self._log.add(
                    "evicted-not-live",
                    "notice for an entry allocated again in the pass"
                    if again
                    else "notice for an entry that was not evicted",
                    observed=f"the worker is told to drop {name!r}, which is in the book",
                    expected="no notice names an entry in the book at the end of the pass",
                )

    def _check_waiting(self, step: PassSeen) -> None:
        requests = self._history.requests
        num_idle = self._history.num_idle
        if num_idle:
            self._log.premises["no-idle-references"] += num_idle
            for name, holders in self._history.holders().items():
                for request in holders:
                    status = requests[request].status
                    is_paused = status == "paused"
                    is_needed = is_paused and self._has_unprocessed(request, name)
                    if not claims.no_idle_references(status in IDLE, is_needed, True):
                        mechanism = "paused request keeps a processed feature"
                        if not is_paused:
                            mechanism = f"{status} request keeps references"
                        self._note_idle(name, request, mechanism)
        self._log.settle("no-idle-references")

    def _has_unprocessed(self, request: int, name: str) -> bool:
        history = self._history.requests[request]
        progress = history.lowest_progress
        return any(
            feature.identifier == name and feature.last_row_position >= progress
            for feature in history.layout.features
        )

    def _note_idle(self, name: str, request: int, mechanism: str) -> None:
        self._log.add_standing(
            "no-idle-references",
            (name, request),
            mechanism,
            observed=f"request {request} is {self._history.requests[request].status} and holds a "
            f"reference to {name!r}",
            expected="it holds none that it does not need while it does not run",
            request=request,
        )

    def _check_released(self) -> None:
        history, requests = self._history, self._history.requests
        if history.num_finished:
            self._log.premises["released"] += history.num_finished
        if history.book_stays and history.statuses_stay:
            return
        for name, holders in history.holders().items():
            for request in holders:
                has_ended = requests[request].status in ("finished", "rejected")
                if not claims.released(has_ended, True):
                    self._log.add_standing(
                        "released",
                        (name, request),
                        "ended request keeps references",
                        observed=f"request {request} has ended and holds a reference to {name!r}",
                        expected="it holds none from then on",
                        request=request,
                    )
        self._log.settle("released")
