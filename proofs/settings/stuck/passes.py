"""A few requests, pass by pass, under the rules of a release: whether they come to stand still.

The theorems say when a request alone stops. Whether several come to wait for each other's room
depends on how their passes interleave, and is run here, on integers: requests that are all there
from the start, in order of arrival, with KV blocks for all, one token to generate and items that
are not alike.
Every guard is that of :mod:`spec.rules`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from proofs.settings.stuck.kinds import runs_within_block
from proofs.settings.stuck.layouts import Layout, Place, Prompt
from proofs.settings.stuck.settings import Settings
from spec.rules.chunk_ends import (
    aligned_chunk,
    extends_over_item,
    is_cut_off_whole,
    limited_by_threshold,
    refused_cut,
    reserved_chunk,
    reserving_chunk,
    splits_item,
    whole_item_cut,
)
from spec.rules.encoder_inputs import has_room, is_asked_for, window_end
from spec.rules.free import may_drop_reference
from spec.rules.releases import ReleaseRules
from spec.rules.stopping_passes import Boundaries, end_at_boundary, tokens_before_last_blocks


@dataclass
class _Request:
    prompt: Prompt
    progress: int
    num_in_flight: int = 0
    held: set[Place] = field(default_factory=set)

    @property
    def left(self) -> int:
        return self.prompt.num_tokens - self.progress


@dataclass(frozen=True)
class _Chunk:
    num_tokens: int
    taken: tuple[Place, ...]

    @property
    def rows(self) -> int:
        return sum(item.rows for item in self.taken)


class _Engine:
    """The state between passes.

    Args:
        layout: the requests, in order of arrival.
        async_depth: passes that are scheduled before the update of an earlier one.
    """

    def __init__(
        self, layout: Layout, settings: Settings, rules: ReleaseRules, async_depth: int
    ) -> None:
        self.settings, self.rules, self.async_depth = settings, rules, async_depth
        self.shifts = rules.shifts(settings.shift)
        self.running: list[_Request] = []
        self.waiting = [_Request(prompt, prompt.prefix_hit) for prompt in layout.prompts]

    def run(self) -> bool:
        """Pass after pass; whether requests are left when none runs and none is in flight."""
        in_flight: deque[list[_Request]] = deque()
        while True:
            scheduled = self._schedule()
            if scheduled:
                in_flight.append(scheduled)
            if not in_flight:
                return bool(self.running or self.waiting)
            if not scheduled or len(in_flight) > self.async_depth:
                self._update(in_flight.popleft())

    def _schedule(self) -> list[_Request]:
        """One pass; who runs in it. Progress advances at once, as it does in vLLM."""
        budget, encoder_budget = self.settings.token_budget, self.settings.encoder_budget
        is_alone = len(self.running) + len(self.waiting) == 1
        threshold = 0 if self.rules.spares_lone and is_alone else self.settings.threshold
        scheduled: list[_Request] = []
        for request in list(self._candidates()):
            if not request.left:
                # Its last tokens are in flight.
                continue
            asked = min(limited_by_threshold(request.left, threshold), budget)
            chunk = self._chunk(request, asked, budget, encoder_budget)
            if not chunk.num_tokens:
                if request in self.waiting and self.rules.stalled_head_ends_pass:
                    break
                continue
            if request in self.waiting:
                self.waiting.remove(request)
                self.running.append(request)
            request.held.update(chunk.taken)
            budget, encoder_budget = budget - chunk.num_tokens, encoder_budget - chunk.rows
            request.progress += chunk.num_tokens
            request.num_in_flight += 1
            scheduled.append(request)
        return scheduled

    def _candidates(self) -> Iterator[_Request]:
        """Those that run, then those that wait, as many as may run."""
        yield from list(self.running)
        most = self.settings.max_num_seqs
        for request in list(self.waiting):
            if most is not None and len(self.running) >= most:
                return
            yield request

    def _chunk(self, request: _Request, asked: int, budget: int, encoder_budget: int) -> _Chunk:
        """What a request runs of the tokens that it asks for, and the items that it takes."""
        start, shifts, rules = request.progress, self.shifts, self.rules
        num_tokens = self._aligned(request, asked, is_cut=False)
        if not num_tokens:
            return _Chunk(0, ())
        freeable = self.settings.cache_size - sum(
            item.rows for running in self.running for item in running.held
        )
        taken: list[Place] = []
        chosen = 0
        for item in request.prompt.items:
            window = window_end(start, num_tokens, shifts.window)
            if not is_asked_for(item.offset, item.end, start, window):
                continue
            if self._is_cut_off(item, start, num_tokens):
                if rules.extends_items and extends_over_item(item.offset, item.end, start, budget):
                    num_tokens = item.end - start
                else:
                    before = whole_item_cut(item.offset, start, shifts.whole_cut)
                    num_tokens = min(num_tokens, before)
                    break
            if item in request.held:
                continue
            if not has_room(item.rows, encoder_budget - chosen, chosen, freeable):
                num_tokens = refused_cut(item.offset, start, num_tokens, shifts.cut)
                break
            if not rules.encodes_boundary and item.offset >= start + num_tokens:
                continue
            taken.append(item)
            chosen += item.rows
        num_tokens = self._aligned(request, num_tokens, is_cut=True)
        num_tokens = self._reserved(request, num_tokens)
        return _Chunk(num_tokens, tuple(taken) if num_tokens else ())

    def _aligned(self, request: _Request, num_tokens: int, *, is_cut: bool) -> int:
        """Tokens of the chunk after alignment, if it comes at this point."""
        block, start = self.settings.block_alignment, request.progress
        if not block or is_cut != self.rules.aligns_after_cut:
            return num_tokens
        length, end = request.prompt.num_tokens, start + num_tokens
        spared = block if self.shifts.window else 0
        last = max(length - length % block - spared, 0)
        before = end - end % block
        if self.rules.spares_last_blocks:
            return int(tokens_before_last_blocks(start, num_tokens, before, last))
        if not (self.rules.stops_at_boundaries or self.rules.runs_within_block):
            return int(aligned_chunk(start, num_tokens, before, length))
        here = start - start % block
        boundaries = Boundaries(here, here + block, before, last)
        is_wide = runs_within_block(self.settings, self.rules)
        return int(end_at_boundary(start, end, length, boundaries, is_wide)) - start

    def _is_cut_off(self, item: Place, start: int, num_tokens: int) -> bool:
        """Whether the chunk would split an item that must not be split."""
        if not self.settings.whole_items:
            return False
        # An item behind the chunk counts only where the cut is the shift before it.
        reach = self.shifts.window if self.shifts.whole_cut else 0
        window = window_end(start, num_tokens, reach)
        spared = self.rules.splits_at_start
        return bool(is_cut_off_whole(item.offset, item.end, start, num_tokens, window, spared))

    def _reserved(self, request: _Request, num_tokens: int) -> int:
        """Tokens of the chunk after the reservation near the prefill's end."""
        start, shift = request.progress, self.shifts.window
        if self.rules.reservation == "off" or shift < 2 or not num_tokens:
            return num_tokens
        shorter = reserving_chunk(start, num_tokens, request.prompt.num_tokens, shift)
        if self.rules.reservation == "insisting":
            return int(max(shorter, 0))
        for item in request.prompt.items if self.settings.whole_items else ():
            if shorter < num_tokens and splits_item(item.offset, item.end, start, shorter):
                shorter = whole_item_cut(item.offset, start, 0)
                break
        return int(reserved_chunk(num_tokens, shorter))

    def _update(self, scheduled: list[_Request]) -> None:
        margin = self.shifts.margin
        for request in scheduled:
            request.num_in_flight -= 1
            if not request.left and not request.num_in_flight:
                self.running.remove(request)
                continue
            # The token that the last chunk samples is counted in advance.
            ahead, progress = int(not request.left), request.progress
            request.held = {
                item
                for item in request.held
                if not may_drop_reference(item.offset, item.length, progress, ahead, margin)
            }


def stand_still(layout: Layout, settings: Settings, rules: ReleaseRules) -> bool:
    """Whether the requests stand still before all are done.

    Where passes may overlap they must come to it without that, too: an engine whose scheduling is
    asynchronous by default falls back to synchronous scheduling with what it does not support.
    """
    return all(
        _Engine(layout, settings, rules, depth).run() for depth in range(settings.async_depth + 1)
    )
