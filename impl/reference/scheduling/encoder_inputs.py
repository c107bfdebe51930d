"""Which encoder inputs a step needs, and how far the step may go when one cannot be had."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from impl.reference.scheduling import guards
from impl.reference.scheduling.book import Book
from impl.reference.scheduling.request import MultiModalFeature
from impl.reference.scheduling.scheduled_request import SchedulerRequest
from spec.record.config import EngineConfig


@dataclass
class Chunk:
    """What one request will run in a step.

    Attributes:
        num_tokens: tokens, 0 when it cannot run.
        inputs: features to encode, in order; the book has made room for them.
        duplicates: further occurrences of hashes among ``inputs``.
        num_rows: rows of all ``inputs``.
        rejected: a hash was asked for with another number of rows.
    """

    num_tokens: int
    inputs: list[int] = field(default_factory=list)
    duplicates: list[int] = field(default_factory=list)
    num_rows: int = 0
    rejected: bool = False


class EncoderInputs:
    """Chooses encoder inputs and the end of a chunk.

    Args:
        book: the cache manager.
    """

    def __init__(self, config: EngineConfig, book: Book) -> None:
        self._config = config
        self._book = book

    def choose(
        self,
        request: SchedulerRequest,
        num_computed_tokens: int,
        num_new_tokens: int,
        available_tokens: int,
        encoder_budget: int,
    ) -> Chunk:
        """Ask for every feature with a row in the window, in order, and cut where one is refused.

        The window reaches the scheduler's shift past the chunk. The search stops at the first
        feature that is refused: an entry taken behind it could keep the room that it needs.

        Args:
            num_computed_tokens: its progress, prefix hits included (tokens).
            num_new_tokens: tokens that it would run (tokens, at least 1).
            available_tokens: most tokens that it could run in this pass; a whole item may use them
                even where a threshold on long prefills asks for less.
            encoder_budget: rows that the encoder may still compute.
        """
        chunk = Chunk(num_new_tokens)
        features = request.mm_features
        if self._config.is_encoder_decoder:
            if num_computed_tokens == 0:
                self._choose_cross_attention_input(request, chunk, encoder_budget)
            return chunk
        start = num_computed_tokens
        first = bisect_right(request.feature_ends, start)
        most_tokens = available_tokens if self._config.whole_items else num_new_tokens
        end = self._window_end(start, most_tokens)
        if first == len(features) or features[first].mm_position.offset >= end:
            return chunk
        if self._has_unlike_rows(request, first, end):
            return Chunk(0, rejected=True)
        hashes: set[str] = set()
        for input_id in range(first, len(features)):
            place = features[input_id].mm_position
            splits = self._config.whole_items and self._splits(request, input_id, chunk, start)
            if splits and not self._extend_over_item(
                chunk, features[input_id], start, available_tokens
            ):
                chunk.num_tokens = self._whole_item_cut(place.offset, start)
                break
            end = self._window_end(start, chunk.num_tokens)
            if place.offset >= end:
                break
            if features[input_id].identifier in hashes:
                chunk.duplicates.append(input_id)
                continue
            if not self._has_row_in_window(features[input_id], start, end):
                continue
            if self._book.check_and_update_cache(request, input_id):
                continue
            budget = encoder_budget - chunk.num_rows
            if not self._book.can_allocate(request, input_id, budget, chunk.num_rows):
                chunk.num_tokens = self._refused_cut(place.offset, start, chunk.num_tokens)
                break
            hashes.add(features[input_id].identifier)
            chunk.inputs.append(input_id)
            chunk.num_rows += place.num_rows
        self._add_duplicates_behind_cut(request, input_id, start, hashes, chunk)
        return chunk

    def _add_duplicates_behind_cut(
        self, request: SchedulerRequest, cut: int, start: int, hashes: set[str], chunk: Chunk
    ) -> None:
        """A feature at the cut costs nothing if its hash was chosen: it is read from that entry.

        Not one behind another feature that was cut or refused: its reference would keep the room
        that the other one needs.
        """
        end = self._window_end(start, chunk.num_tokens)
        for input_id in range(cut, len(request.mm_features)):
            feature = request.mm_features[input_id]
            if feature.mm_position.offset >= end:
                return
            if feature.identifier in hashes:
                if input_id not in (*chunk.inputs, *chunk.duplicates):
                    chunk.duplicates.append(input_id)
            elif self._has_row_in_window(feature, start, end):
                return

    def _has_unlike_rows(self, request: SchedulerRequest, first: int, end: int) -> bool:
        """Whether a hash in the window has another number of rows than its entry (57696).

        Also of features behind a cut, since the drafter reads them if their tensor is there.
        """
        rows: dict[str, int] = {}
        for input_id in range(first, len(request.mm_features)):
            feature = request.mm_features[input_id]
            if feature.mm_position.offset >= end:
                return False
            num_rows = feature.mm_position.num_rows
            if rows.setdefault(feature.identifier, num_rows) != num_rows:
                return True
            if self._book.has_other_rows(request, input_id):
                return True
        return False

    def _choose_cross_attention_input(
        self, request: SchedulerRequest, chunk: Chunk, encoder_budget: int
    ) -> None:
        """The first step of an encoder-decoder request needs its one item."""
        if not request.mm_features:
            return
        if self._book.can_allocate(request, 0, encoder_budget, 0):
            chunk.inputs.append(0)
            chunk.num_rows = request.get_num_encoder_embeds(0)
        else:
            chunk.num_tokens = 0

    def _window_end(self, start: int, num_tokens: int) -> int:
        """End of the window in which features are asked for (29750, 32469)."""
        return start + num_tokens + self._config.scheduler_lookahead

    def _has_row_in_window(self, feature: MultiModalFeature, start: int, end: int) -> bool:
        """Whether the window, shift included, has a position that takes a row.

        Releases 0.14 to 0.27 judged this against the end without the shift, so that a boundary
        feature was never encoded ahead (38551, 45658, 51603).
        """
        place = feature.mm_position
        if place.is_embed is None:
            return True
        first, last = guards.slice_bounds(place.offset, place.length, start, end)
        first_row, last_row = place.rows_in_range(first, last)
        return first_row < last_row

    def _splits(self, request: SchedulerRequest, input_id: int, chunk: Chunk, start: int) -> bool:
        """Whether the chunk ends inside an item that it starts at or before."""
        place = request.mm_features[input_id].mm_position
        return guards.ends_inside(start, chunk.num_tokens, place.offset, place.end)

    def _extend_over_item(
        self, chunk: Chunk, feature: MultiModalFeature, start: int, available_tokens: int
    ) -> bool:
        """Run the item that the chunk starts on to its end, if the pass has tokens for it.

        Without this, a threshold on long prefills below the item's length stops the request for
        good; releases up to 0.33.0 have no such rule.
        """
        place = feature.mm_position
        if place.offset > start or place.end - start > available_tokens:
            return False
        chunk.num_tokens = place.end - start
        return True

    def _whole_item_cut(self, offset: int, start: int) -> int:
        """Tokens up to an item that would be split.

        Releases 0.17 to 0.33 end the chunk the shift earlier, which can leave no token; a boundary
        feature that is missing is tolerated, so that nothing is gained by it.
        """
        return offset - start

    def _refused_cut(self, offset: int, start: int, num_tokens: int) -> int:
        """Tokens up to a feature that was refused; 0 inside it, after a prefix hit.

        Releases 0.14 to 0.32 end the chunk the shift earlier: the item before it is then never
        finished, and its room never free (47738).
        """
        return min(num_tokens, max(offset - start, 0))
