"""How much room the book has at each call of a pass."""

from __future__ import annotations

from proofs.report.story.reasons import Before, Words, room
from spec.record.feature import Feature
from spec.record.steps import Call, PassSeen


class Room:
    """The rows that are free or can be freed while a pass asks for some, call by call.

    Args:
        step: the pass.
        before: the state in which it began.
        words: names.

    Attributes:
        value: rows that are free or can be freed just now.
        is_sure: whether the calls lead to what the book reported at the pass's end. Where they do
            not, the numbers between are not known.
    """

    def __init__(self, step: PassSeen, before: Before, words: Words) -> None:
        self._words = words
        self._is_counted = words.config.is_encoder_decoder
        self._start(before)
        for call in step.calls:
            self.apply(call)
        self.is_sure = self.value == room(step.state)
        self._start(before)

    def _start(self, before: Before) -> None:
        self._rows = dict(before.entry_rows)
        self._holders = {name: set(held) for name, held in before.state.book.references}
        self.value = before.room

    def holders(self) -> list[tuple[str, int]]:
        """Entries that are held just now, with a holder of each."""
        return [(name, min(held)) for name, held in self._holders.items() if held]

    def rows_of(self, name: str) -> int | None:
        """Rows of an entry; ``None`` where there is none."""
        return self._rows.get(name)

    def is_holder(self, request: int) -> bool:
        """Whether the request holds anything just now."""
        return any(request in held for held in self._holders.values())

    def apply(self, call: Call) -> None:
        """Take one call into account."""
        if call.feature >= 0 and call.method in (
            "check_and_update_cache",
            "allocate",
            "free_encoder_input",
        ):
            one = self._words.feature(call.request, call.feature)
            self._apply_to(call, one)
        elif call.method == "free":
            for name, held in self._holders.items():
                if call.request in held:
                    held.discard(call.request)
                    self._credit(name, held)

    def _apply_to(self, call: Call, feature: Feature) -> None:
        name = feature.identifier
        if call.method == "check_and_update_cache":
            if call.answer:
                held = self._holders.setdefault(name, set())
                if not held:
                    self.value -= self._rows.get(name, feature.num_rows)
                held.add(call.request)
        elif call.method == "allocate":
            self._rows[name] = feature.num_rows
            if not self._is_counted:
                self._holders[name] = {call.request}
            self.value -= feature.num_rows
        else:
            held = self._holders.get(name, set())
            if call.request in held:
                held.discard(call.request)
                self._credit(name, held)

    def _credit(self, name: str, held: set[int]) -> None:
        if not held:
            self.value += self._rows.get(name, 0)
