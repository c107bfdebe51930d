"""A few requests, pass by pass, under the rules of a release: whether they come to stand still.

The theorems say when a request alone stops. Whether several come to wait for each other's room
depends on how their passes interleave, and is run here, on integers: a synchronous engine in order
of arrival, KV blocks for all, one token to generate, items that are not alike, no prefix hits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from proofs.settings.stuck.kinds import runs_within_block, shifted
from proofs.settings.stuck.layouts import Layout, Place, Prompt
from proofs.settings.stuck.releases import RELEASES, Rules
from proofs.settings.stuck.settings import Settings
from spec.rules.scheduling import aligned_chunk
from spec.rules.stopping_passes import Boundaries, end_at_boundary, tokens_before_last_blocks


@dataclass
class _Request:
    prompt: Prompt
    progress: int = 0
    held: set[Place] = field(default_factory=set)

    @property
    def left(self) -> int:
        return self.prompt.num_tokens - self.progress


@dataclass(frozen=True)
class _Chunk:
    tokens: int
    taken: tuple[Place, ...]

    @property
    def rows(self) -> int:
        return sum(item.rows for item in self.taken)


class _Engine:
    """The state between passes.

    Args:
        layout: the requests, in order of arrival.
        settings: the engine's settings.
        rules: the release's rules.
        passes_over: whether a waiting request that gets no token lets those behind it run.
        extends: whether a chunk that starts on a whole item runs on to the item's end, or not at
            all; as the reference's.
    """

    def __init__(
        self, layout: Layout, settings: Settings, rules: Rules, *, passes_over: bool, extends: bool
    ) -> None:
        self.settings, self.rules, self.sizes = settings, rules, shifted(settings, rules)
        self.passes_over, self.extends = passes_over, extends
        self.running: list[_Request] = []
        self.waiting = [_Request(prompt) for prompt in layout.prompts]

    def run(self) -> bool:
        """One pass and its update; whether anything ran."""
        tokens, rows = self.settings.token_budget, self.settings.encoder_budget
        requests = len(self.running) + len(self.waiting)
        spared = self.rules.spares_lone and requests == 1
        threshold = 0 if spared else self.settings.threshold
        ran: list[tuple[_Request, int]] = []
        for request in list(self._candidates()):
            limit = min(tokens, threshold or tokens)
            chunk = self._chunk(request, limit, tokens, rows)
            if not chunk.tokens:
                if request in self.running or self.passes_over:
                    continue
                break
            if request in self.waiting:
                self.waiting.remove(request)
                self.running.append(request)
            request.held.update(chunk.taken)
            tokens, rows = tokens - chunk.tokens, rows - chunk.rows
            ran.append((request, chunk.tokens))
        for request, done in ran:
            self._update(request, done)
        return bool(ran)

    def _candidates(self) -> Iterator[_Request]:
        """Those that run, then those that wait, as many as may run."""
        yield from list(self.running)
        most = self.settings.max_num_seqs
        for request in list(self.waiting):
            if most is not None and len(self.running) >= most:
                return
            yield request

    def _chunk(self, request: _Request, limit: int, tokens: int, rows: int) -> _Chunk:
        start = request.progress
        end = self._aligned(request, start + min(request.left, limit), is_cut=False)
        if end == start:
            return _Chunk(0, ())
        free = self.settings.cache_size - sum(
            item.rows for other in self.running for item in other.held
        )
        window, taken, chosen = end + self.sizes.shift, [], 0
        for item in request.prompt.items:
            if item.end <= start or item.offset >= window:
                continue
            if self._splits(item, start, end):
                if not self._extends_over(item, start, tokens):
                    end = max(item.offset - self.sizes.whole_cut, start)
                    break
                end = item.end
                window = end + self.sizes.shift
            if item in request.held:
                continue
            if item.rows > rows - chosen or item.rows + chosen > free:
                cut = item.offset - self.sizes.cut if start < item.offset else start
                end = max(min(end, cut), start)
                break
            if self.rules.passes_over_next and item.offset >= end:
                continue
            taken.append(item)
            chosen += item.rows
        end = self._aligned(request, end, is_cut=True)
        left = request.prompt.num_tokens - end
        if self.rules.reserves and self.sizes.shift >= 2 and 0 < left < self.sizes.shift:
            end = max(end - (self.sizes.shift - left), start)
        return _Chunk(end - start, tuple(taken) if end > start else ())

    def _aligned(self, request: _Request, end: int, *, is_cut: bool) -> int:
        """Where the chunk ends after alignment, if it comes at this point."""
        block, start = self.settings.block_alignment, request.progress
        if not block or is_cut != self.rules.aligns_after_cut:
            return end
        length = request.prompt.num_tokens
        spared = block if self.sizes.shift else 0
        last = max(length - length % block - spared, 0)
        before = end - end % block
        if self.rules.spares_last_blocks:
            return int(start + tokens_before_last_blocks(start, end - start, before, last))
        if not (self.rules.stops_at_boundaries or self.rules.runs_within_block):
            return int(start + aligned_chunk(start, end - start, before, length))
        here = start - start % block
        boundaries = Boundaries(here, here + block, before, last)
        is_wide = runs_within_block(self.settings, self.rules)
        return int(end_at_boundary(start, end, length, boundaries, is_wide))

    def _splits(self, item: Place, start: int, end: int) -> bool:
        if not self.settings.whole_items or end >= item.end:
            return False
        if self.extends:
            # An item ahead of the chunk counts only where the cut is the shift before it.
            ahead = self.sizes.shift if self.sizes.whole_cut else 0
            return start <= item.offset < end + ahead
        return start < item.offset or (start == item.offset and not self.rules.spares_start)

    def _extends_over(self, item: Place, start: int, tokens: int) -> bool:
        return self.extends and item.offset == start and item.end - start <= tokens

    def _update(self, request: _Request, tokens: int) -> None:
        request.progress += tokens
        if not request.left:
            self.running.remove(request)
            return
        request.held = {
            item for item in request.held if item.end + self.sizes.margin > request.progress
        }


def stand_still(
    layout: Layout, settings: Settings, rules: Rules, *, passes_over: bool, extends: bool = False
) -> bool:
    """Whether the requests stand still before all are done.

    Args:
        layout: the requests, in order of arrival.
        settings: the engine's settings.
        rules: the release's rules.
        passes_over: whether a waiting request that gets no token lets those behind it run: from
            0.33.0 on.
        extends: whether a chunk that starts on a whole item runs on to the item's end within the
            token budget, or waits: in the reference.
    """
    engine = _Engine(layout, settings, rules, passes_over=passes_over, extends=extends)
    while engine.run():
        pass
    return bool(engine.running or engine.waiting)


def come_to_a_stop(layout: Layout, settings: Settings, rules: Rules) -> bool:
    """The same, whoever waits behind whom.

    Rules that are no release's do not say whether a whole item that is spared at a chunk's start is
    split or taken whole: then it must come to that either way.
    """
    is_release = rules in RELEASES.values()
    ways = (True, False) if rules.spares_start and not is_release else (False,)
    return all(
        stand_still(layout, settings, rules, passes_over=passes_over, extends=extends)
        for passes_over in (False, True)
        for extends in ways
    )
