"""What never changes in a run: the configuration, and where the features of all requests lie."""

from __future__ import annotations

from collections.abc import Sequence

from spec.claims import predicates as claims
from spec.errors import InputError
from spec.model.rules import REFERENCE, ModelRules
from spec.record.config import EngineConfig
from spec.record.scenario import Scenario, ScenarioRequest


class Layout:
    """One scenario's fixed part, laid out for fast questions.

    Features of all requests are numbered as *occurrences*, hashes in the order in which they first
    occur; sets of either are bit masks.

    Args:
        config: the engine's settings.
        requests: the requests; events and answers among them are not looked at.
        rules: the rules.

    Attributes:
        first: the first occurrence of each request; one entry more than there are requests.
        offset: first position of each occurrence (tokens).
        end: position after each occurrence.
        rows: rows of each occurrence's output.
        hash_of: the hash of each occurrence.
        last_row: the last position of each occurrence that takes a row; -1 where none does.
        masked: whether some position of an occurrence takes no row.
        rows_before: rows of an occurrence before each of its positions, and before its end.
        own: occurrences of each request.
        sharing: occurrences of each hash.
        hash_rows: rows of each hash.
        names: the hashes' identifiers.
        first_after: by request and position, the first occurrence that ends after it.
        last_end: position after each request's last feature.
        prompt: prompt tokens of each request.
        limit: tokens at which each request ends.
        hits: prefix hits of each request.
        features: features of each request.
        spans: the feature of each occurrence.
        priority: priority of each request.

    Raises:
        InputError: the model does not cover the scenario; the message says what.
    """

    def __init__(
        self,
        config: EngineConfig,
        requests: Sequence[ScenarioRequest],
        rules: ModelRules = REFERENCE,
    ) -> None:
        reason = not_covered(config, requests)
        if reason is not None:
            raise InputError(f"the model does not cover {reason}")
        self.config = config
        self.rules = rules
        self.num_requests = len(requests)
        self.prompt = [request.num_prompt_tokens for request in requests]
        self.limit = [request.num_prompt_tokens + request.max_tokens for request in requests]
        self.hits = [request.prefix_hits for request in requests]
        self.priority = [request.priority for request in requests]
        self.features = [request.features for request in requests]
        self.spans = [feature for request in requests for feature in request.features]
        self.first = [0]
        self.offset: list[int] = []
        self.end: list[int] = []
        self.rows: list[int] = []
        self.hash_of: list[int] = []
        self.last_row: list[int] = []
        self.masked: list[bool] = []
        self.rows_before: list[list[int]] = []
        self.own: list[int] = []
        self.sharing: list[int] = []
        self.hash_rows: list[int] = []
        self.names: list[str] = []
        self.first_after: list[list[int]] = []
        self.last_end: list[int] = []
        for request in requests:
            self._add(request)
        self._reads: dict[tuple[int, int, int], Reads] = {}
        self._owned: dict[tuple[int, ...], int] = {}
        self._rows_of: dict[int, int] = {}
        self._without: dict[int, int] = {}

    def _add(self, request: ScenarioRequest) -> None:
        first = self.first[-1]
        own = 0
        for feature in request.features:
            occurrence = len(self.offset)
            mask = feature.is_embed or (True,) * feature.length
            before = [0]
            for takes_row in mask:
                before.append(before[-1] + takes_row)
            if feature.identifier not in self.names:
                self.names.append(feature.identifier)
                self.sharing.append(0)
                self.hash_rows.append(feature.num_rows)
            number = self.names.index(feature.identifier)
            self.offset.append(feature.offset)
            self.end.append(feature.end)
            self.rows.append(feature.num_rows)
            self.hash_of.append(number)
            self.masked.append(not all(mask))
            self.rows_before.append(before)
            taking = [place for place, takes_row in enumerate(mask) if takes_row]
            self.last_row.append(feature.offset + taking[-1] if taking else -1)
            self.sharing[number] |= 1 << occurrence
            own |= 1 << occurrence
        last = len(self.offset)
        self.first.append(last)
        self.own.append(own)
        self.last_end.append(self.end[-1] if own else 0)
        after, at = [], first
        for position in range(request.num_prompt_tokens + request.max_tokens + 1):
            while at < last and self.end[at] <= position:
                at += 1
            after.append(at)
        self.first_after.append(after)

    def has_row_in(self, occurrence: int, start: int, end: int) -> bool:
        """Whether a position of ``[start, end)`` takes a row of the occurrence."""
        offset = self.offset[occurrence]
        before = self.rows_before[occurrence]
        low, high = max(start - offset, 0), min(end - offset, len(before) - 1)
        return low < high and before[low] < before[high]

    def feature_index(self, occurrence: int, request: int) -> int:
        """The occurrence's index among the features of its request."""
        return occurrence - self.first[request]

    def request_of(self, occurrence: int) -> int:
        """The request that an occurrence belongs to."""
        return next(r for r in range(self.num_requests) if self.first[r + 1] > occurrence)

    def holders(self, held: int) -> tuple[int, ...]:
        """The requests that hold some of the occurrences."""
        return tuple(request for request, own in enumerate(self.own) if held & own)

    def owned_by(self, requests: tuple[int, ...]) -> int:
        """Occurrences of the requests."""
        owned = self._owned.get(requests)
        if owned is None:
            owned = 0
            for request in requests:
                owned |= self.own[request]
            self._owned[requests] = owned
        return owned

    def hashes_of(self, occurrences: int) -> int:
        """The hashes of some occurrences."""
        names = 0
        for number, sharing in enumerate(self.sharing):
            if occurrences & sharing:
                names |= 1 << number
        return names

    def without(self, names: int) -> int:
        """The occurrences of all other hashes."""
        rest = self._without.get(names)
        if rest is None:
            rest = 0
            for number, sharing in enumerate(self.sharing):
                if not names >> number & 1:
                    rest |= sharing
            self._without[names] = rest
        return rest

    def rows_of(self, names: int) -> int:
        """Rows of some hashes."""
        num_rows = self._rows_of.get(names)
        if num_rows is None:
            num_rows = sum(rows for n, rows in enumerate(self.hash_rows) if names >> n & 1)
            self._rows_of[names] = num_rows
        return num_rows

    def window_reads(self, request: int, start: int, num_tokens: int) -> Reads:
        """What the two gathers read of a request that runs ``num_tokens`` from ``start``."""
        key = (request, start, num_tokens)
        reads = self._reads.get(key)
        if reads is None:
            reads = self._reads[key] = Reads(self, request, start, num_tokens)
        return reads


class Reads:
    """What the two gathers read of one request in one pass, and what the claims say of it.

    Every attribute is a set of occurrences of the request. Of a claim about an occurrence that may
    be resident or not, ``*_lost`` are those that break it unless resident, and ``*_wrong`` those
    that break it although resident.

    Attributes:
        chunk: what the pass runs.
        target: occurrences with a row in the target's window.
        interior: those with a row in the drafter's window that start inside the processed range.
        boundary: those with a row in the drafter's window that start at or past its end.
        needed: all of them.
        whole: occurrences that start in the processed range.
        split: occurrences that break ``item-whole``.
        unasked: occurrences that break ``need-agrees`` unless they were asked for or the search had
            ended.
        asked_wrong: occurrences that break it although they were asked for.
    """

    __slots__ = (
        "asked_wrong",
        "boundary",
        "chunk",
        "drafter_lost",
        "drafter_wrong",
        "interior",
        "needed",
        "split",
        "target",
        "target_lost",
        "target_wrong",
        "unasked",
        "whole",
    )

    def __init__(self, layout: Layout, request: int, start: int, num_tokens: int) -> None:
        end = start + num_tokens
        chunk = self.chunk = claims.Chunk(start, end, layout.config.gather_lookahead)
        self.target = self.interior = self.boundary = self.whole = self.split = 0
        self.target_lost = self.target_wrong = self.drafter_lost = self.drafter_wrong = 0
        self.unasked = self.asked_wrong = 0
        for occurrence in range(layout.first[request], layout.first[request + 1]):
            bit, feature = 1 << occurrence, layout.spans[occurrence]
            if claims.target_reads(feature, chunk):
                self.target |= bit
            if chunk.look_ahead and claims.drafter_reads(feature, chunk):
                if claims.is_at_boundary(feature, chunk):
                    self.boundary |= bit
                else:
                    self.interior |= bit
            if start <= layout.offset[occurrence] < end:
                self.whole |= bit
            if not claims.item_whole(feature, chunk):
                self.split |= bit
            if not claims.target_resident(feature, chunk, False):
                self.target_lost |= bit
            if not claims.target_resident(feature, chunk, True):
                self.target_wrong |= bit
            if chunk.look_ahead:
                if not claims.drafter_resident_or_boundary(feature, chunk, False):
                    self.drafter_lost |= bit
                if not claims.drafter_resident_or_boundary(feature, chunk, True):
                    self.drafter_wrong |= bit
            if not claims.need_agrees(feature, chunk, False, False):
                self.unasked |= bit
            if not claims.need_agrees(feature, chunk, True, False):
                self.asked_wrong |= bit
        self.needed = self.target | self.interior | self.boundary


def not_covered(config: EngineConfig, requests: Sequence[ScenarioRequest]) -> str | None:
    """What about a scenario the model has no rules for, or ``None`` where it covers it."""
    if config.is_encoder_decoder:
        return "encoder-decoder models, whose book keeps no entries"
    if any(request.streams for request in requests):
        return "streaming requests"
    if not Scenario(config, tuple(requests)).content_is_hashed:
        return "a hash that stands for several contents"
    return None
