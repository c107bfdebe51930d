"""Drawn prompts: items put against the ends of chunks, and what the world answers about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from proofs.search.runs.choices import Choose
from proofs.search.runs.frame import Frame
from spec.record.feature import Feature


@dataclass(frozen=True)
class Turn:
    """The tokens of a prompt or of a continuation."""

    num_prompt_tokens: int
    features: tuple[Feature, ...]
    contents: tuple[str, ...]


class Prompts:
    """Draws the prompts of one scenario.

    Identifiers are new for each item, or taken from a small pool that all requests share.
    """

    def __init__(self, choose: Choose, frame: Frame) -> None:
        self._choose = choose
        self._frame = frame
        self._num_items = 0
        self._shared = "shared hashes" in frame.traits
        self._pool: list[Feature] = []
        if self._shared:
            self._pool = [self._new_item() for _ in range(choose.integer(1, 3))]

    def turn(self, start: int, *, may_be_text: bool) -> Turn:
        """Tokens from position ``start`` on; feature offsets are counted from it."""
        choose, frame = self._choose, self._frame
        if "encoder-decoder" in frame.traits:
            return self._encoder_decoder_turn()
        least = 0 if may_be_text else 1
        placed: list[Feature] = []
        end = 0
        for _ in range(choose.integer(least, frame.scale.most_items)):
            feature = replace(item := self._item(), offset=self._offset(item, start, end))
            placed.append(feature)
            end = feature.end
        most_tail = frame.reach if "tails" in frame.traits else frame.scale.most_text
        length = max(1, end + choose.integer(0, most_tail))
        return Turn(length, tuple(placed), self._contents(placed))

    def _encoder_decoder_turn(self) -> Turn:
        choose = self._choose
        has_item = not choose.chance(20)
        features = (self._item(),) if has_item else ()
        length = choose.integer(1, max(2, self._frame.chunk))
        return Turn(length, features, self._contents(features))

    def _item(self) -> Feature:
        """An item at offset 0."""
        if not self._shared:
            return self._new_item()
        item = self._choose.pick(self._pool)
        if "hash-has-one-row-count" in self._frame.breaks and self._choose.chance(40):
            longest = self._frame.longest_item
            return Feature(0, self._choose.integer(1, longest), item.identifier)
        return item

    def _new_item(self) -> Feature:
        choose, frame = self._choose, self._frame
        longest = frame.longest_item
        if "chunk edges" in frame.traits and choose.chance(50):
            length = frame.chunk + choose.integer(-frame.reach, frame.reach)
            length = min(max(1, length), longest)
        else:
            length = choose.integer(min(frame.scale.least_length, longest), longest)
        mask = self._mask(length) if "masks" in frame.traits and choose.chance(70) else None
        identifier = _name(self._num_items)
        self._num_items += 1
        return Feature(0, length, identifier, mask)

    def _mask(self, length: int) -> tuple[bool, ...]:
        """Runs of F at both ends, and at most one hole; at least one T."""
        choose = self._choose
        most = self._frame.reach + 1
        leading = choose.integer(0, min(most, length - 1))
        trailing = choose.integer(0, min(most, length - 1 - leading))
        middle = [True] * (length - leading - trailing)
        if len(middle) > 2 and choose.chance(40):
            middle[choose.integer(1, len(middle) - 2)] = False
        return (*[False] * leading, *middle, *[False] * trailing)

    def _offset(self, item: Feature, start: int, end: int) -> int:
        """Where the item goes: behind ``end``, both counted from ``start``."""
        choose, frame = self._choose, self._frame
        if "chunk edges" in frame.traits and choose.chance(60):
            edge = frame.chunk * choose.integer(1, 3) - start
            edge += choose.integer(-frame.reach, frame.reach)
            offset = edge - item.length if choose.chance(50) else edge
            if end <= offset <= end + frame.chunk + frame.reach:
                return offset
        return end + choose.integer(0, max(2 * frame.reach, frame.scale.most_text))

    def _contents(self, features: Sequence[Feature]) -> tuple[str, ...]:
        if "hash-is-content" not in self._frame.breaks or not self._choose.chance(50):
            return ()
        return tuple(f"content {self._choose.integer(0, 1)}" for _ in features)


def _name(number: int) -> str:
    """``A`` to ``Z``, then ``A1``..."""
    letter = chr(ord("A") + number % 26)
    return letter if number < 26 else f"{letter}{number // 26}"
