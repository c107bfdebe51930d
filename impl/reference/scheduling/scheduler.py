"""The scheduler: who runs how many tokens in a pass, and who has to make room."""

from __future__ import annotations

from typing import Protocol

from impl.reference.scheduling.book import Book
from impl.reference.scheduling.chunks import ChunkEnds
from impl.reference.scheduling.encoder_inputs import Chunk, EncoderInputs
from impl.reference.scheduling.kv_blocks import KvBlocks
from impl.reference.scheduling.output import SchedulerOutput
from impl.reference.scheduling.passes import Pass, output_of
from impl.reference.scheduling.queues import WaitingQueue
from impl.reference.scheduling.scheduled_request import SchedulerRequest
from spec.record.config import EngineConfig


class SchedulerParts(Protocol):
    """What the scheduler is put together from."""

    @property
    def encoder_inputs(self) -> type[EncoderInputs]:
        """The search for encoder inputs."""

    @property
    def chunk_ends(self) -> type[ChunkEnds]:
        """The rules of where a chunk ends."""


class Scheduler:
    """Schedules passes; :mod:`impl.reference.scheduling.updates` takes their results back.

    Args:
        book: the cache manager.
    """

    def __init__(
        self, config: EngineConfig, parts: SchedulerParts, book: Book, kv_blocks: KvBlocks
    ) -> None:
        self.config = config
        self.book = book
        self.kv_blocks = kv_blocks
        self.waiting = WaitingQueue(config.policy)
        self.running: list[SchedulerRequest] = []
        self.paused: list[SchedulerRequest] = []
        self.ended: list[int] = []
        self.encoder_inputs = parts.encoder_inputs(config, book)
        self.chunk_ends = parts.chunk_ends(config)

    def schedule(self) -> tuple[SchedulerOutput, list[int]]:
        """Schedule one pass; progress advances at once, before the step has run.

        Returns:
            The work, and the indices of requests that were refused for good: a hash was asked for
            with another number of rows.
        """
        now = Pass(self.config.max_num_batched_tokens, self.config.encoder_compute_budget)
        self._schedule_running(now)
        if not now.preempted:
            self._schedule_waiting(now)
        output = self._output(now)
        self._advance(now)
        return output, [request.index for request in now.rejected]

    def _schedule_running(self, now: Pass) -> None:
        index = 0
        while index < len(self.running) and now.tokens > 0:
            request = self.running[index]
            wanted = self._tokens_wanted(request)
            if wanted > 0:
                chunk = self._chunk(request, request.num_computed_tokens, wanted, now)
                if chunk.rejected:
                    self._reject(request, now)
                    continue
                if chunk.num_tokens > 0:
                    end = request.num_computed_tokens + chunk.num_tokens
                    runs = self.kv_blocks.allocate_slots(request, end)
                    if not runs:
                        before = self.running[:index]
                        runs = self._preempt_until_it_fits(request, end, now)
                        index = self._place_behind(before)
                    if not runs:
                        continue
                    self._add(request, chunk, now)
            index += 1

    def _place_behind(self, before: list[SchedulerRequest]) -> int:
        """Place of a running request behind those that went before it, less the victims.

        Victims before the request have moved it and those behind it forward.
        """
        return sum(1 for earlier in before if earlier in self.running)

    def _tokens_wanted(self, request: SchedulerRequest) -> int:
        """Tokens without which the request's progress lags behind what is known of it.

        None once a step in flight is sure to reach the turn's end.
        """
        placeholders = request.num_output_placeholders
        if placeholders and request.num_computed_tokens + 2 - placeholders >= request.limit:
            return 0
        num_known_tokens = request.num_tokens + request.num_draft_tokens + placeholders
        return num_known_tokens - request.num_computed_tokens

    def _chunk(
        self, request: SchedulerRequest, num_computed_tokens: int, wanted: int, now: Pass
    ) -> Chunk:
        available = min(wanted, now.tokens)
        num_tokens = min(self.chunk_ends.limited(wanted), available)
        num_tokens = self.chunk_ends.aligned(request, num_computed_tokens, num_tokens)
        if num_tokens == 0:
            return Chunk(0)
        if request.mm_features:
            chunk = self.encoder_inputs.choose(
                request, num_computed_tokens, num_tokens, available, now.encoder_rows
            )
        else:
            chunk = Chunk(num_tokens)
        if chunk.num_tokens > 0 and self._reserves(request):
            chunk.num_tokens = self.chunk_ends.reserved(
                request, num_computed_tokens, chunk.num_tokens
            )
        return chunk

    def _reserves(self, request: SchedulerRequest) -> bool:
        """Whether a chunk of the request leaves tokens for the drafter's modules."""
        return self.config.scheduler_lookahead > 1

    def _preempt_until_it_fits(self, request: SchedulerRequest, end: int, now: Pass) -> bool:
        """Get KV blocks for a running request from those that come last; whether it still runs."""
        while True:
            if not (len(self.running) == 1 and self._reclaim_blocks(request)):
                victim = self._victim()
                self._preempt(victim, now)
                if victim is request:
                    return False
            if self.kv_blocks.allocate_slots(request, end):
                return True

    def _victim(self) -> SchedulerRequest:
        if self.config.policy == "priority":
            return max(self.running, key=WaitingQueue.order)
        return self.running[-1]

    def _preempt(self, victim: SchedulerRequest, now: Pass) -> None:
        """Take everything from a running request and let it wait again from the start.

        What it emits in flight is still delivered, so that preempting somebody again and again
        makes progress all the same.
        """
        self.running.remove(victim)
        self.kv_blocks.free(victim)
        self.book.free(victim)
        if victim in now.chunks:
            self._return_tokens(victim, now)
            now.started.discard(victim)
            self._withdraw_inputs(victim, now)
        victim.num_computed_tokens = 0
        victim.make_outputs_stale(drop=False)
        victim.status = "preempted"
        self.waiting.put_back(victim)
        now.preempted.append(victim)

    def _return_tokens(self, victim: SchedulerRequest, now: Pass) -> None:
        """Give back to the pass what a victim was to run in it."""
        now.tokens += now.chunks.pop(victim)

    def _withdraw_inputs(self, victim: SchedulerRequest, now: Pass) -> None:
        """Take back what a victim of the same pass had chosen to encode.

        Its entries are in the book, but nobody would encode them: an entry that another request
        took meanwhile is encoded for that one, and any other leaves the book. Releases up to
        0.33.0 leave it there, and the next hit misses.
        """
        kept = []
        for request, input_id in now.inputs:
            if request is not victim:
                kept.append((request, input_id))
                continue
            heir = self._holder(victim.mm_features[input_id].identifier)
            if heir is None:
                self.book.cancel(victim, input_id)
                now.encoder_rows += victim.get_num_encoder_embeds(input_id)
            else:
                kept.append(heir)
        now.inputs = kept

    def _holder(self, identifier: str) -> tuple[SchedulerRequest, int] | None:
        """A running request that holds a reference to the entry, with its feature."""
        for request in self.running:
            for input_id in self.book.get_cached_input_ids(request):
                if request.mm_features[input_id].identifier == identifier:
                    return request, input_id
        return None

    def _schedule_waiting(self, now: Pass) -> None:
        skipped = []
        while self.waiting and now.tokens > 0 and self._may_admit(now):
            request = self.waiting.pop()
            if request.awaits_stale_output:
                skipped.append(request)
                continue
            start = request.num_computed_tokens or self._prefix_hit(request)
            chunk = self._chunk(request, start, request.num_tokens - start, now)
            if chunk.rejected:
                self.waiting.put_back(request)
                self._reject(request, now)
                continue
            if chunk.num_tokens == 0:
                self._give_back(request)
                skipped.append(request)
                if self._stalled_head_ends_pass():
                    break
                continue
            if not self._make_room_for_waiting(request, start + chunk.num_tokens, now):
                self._give_back(request)
                skipped.append(request)
                break
            if request.num_computed_tokens == 0:
                request.num_starts += 1
            request.num_computed_tokens = start
            request.status = "running"
            self.running.append(request)
            now.started.add(request)
            self._add(request, chunk, now)
        for request in reversed(skipped):
            self.waiting.put_back(request)

    def _may_admit(self, now: Pass) -> bool:
        """Whether a further request may start in the pass."""
        return len(self.running) < self.config.max_num_seqs

    def _stalled_head_ends_pass(self) -> bool:
        """Whether a waiting request that can run nothing holds up those behind it.

        Releases up to 0.32 end the pass there.
        """
        return False

    def _prefix_hit(self, request: SchedulerRequest) -> int:
        """Tokens found computed; never all, since the last known one is always computed anew."""
        hits = request.prefix_hits
        if request.num_starts >= len(hits):
            return 0
        return min(hits[request.num_starts], request.num_tokens - 1)

    def _make_room_for_waiting(self, request: SchedulerRequest, end: int, now: Pass) -> bool:
        """Get KV blocks for a waiting request, without harm to those that run in the pass."""
        while not self.kv_blocks.allocate_slots(request, end):
            # Blocks of requests that do not run are taken only when nobody's end will free some.
            if self.running or not self._reclaim_blocks(request):
                return False
        return True

    def _reclaim_blocks(self, request: SchedulerRequest) -> bool:
        """Take the blocks of a streaming request that waits for its input or its turn."""
        for holder in (*reversed(self.paused), *self.waiting.last_first()):
            if holder is not request and holder.num_blocks:
                self.kv_blocks.free(holder)
                holder.num_computed_tokens = 0
                return True
        return False

    def _give_back(self, request: SchedulerRequest) -> None:
        """Drop the references that a waiting request took before it could not run (31857)."""
        self.book.free(request)

    def _add(self, request: SchedulerRequest, chunk: Chunk, now: Pass) -> None:
        now.chunks[request] = chunk.num_tokens
        now.tokens -= chunk.num_tokens
        now.encoder_rows -= chunk.num_rows
        for input_id in chunk.inputs:
            self.book.allocate(request, input_id)
            now.inputs.append((request, input_id))
        for input_id in chunk.duplicates:
            self._take_duplicate(request, input_id)

    def _take_duplicate(self, request: SchedulerRequest, input_id: int) -> None:
        """A further occurrence takes a reference of its own; not so in releases up to 0.31."""
        self.book.check_and_update_cache(request, input_id)

    def _reject(self, request: SchedulerRequest, now: Pass) -> None:
        now.rejected.append(request)
        self.end(request)
        request.status = "rejected"

    def end(self, request: SchedulerRequest) -> None:
        """Finish or abort a request, wherever it stands: it holds nothing from then on."""
        if request.status == "running":
            self.running.remove(request)
        elif request.status == "paused":
            self.paused.remove(request)
        else:
            self.waiting.remove(request)
        self._release(request)
        request.status = "finished"
        self.ended.append(request.index)

    def _release(self, request: SchedulerRequest) -> None:
        """Take everything back from a request that ended."""
        self.kv_blocks.free(request)
        self.book.free(request)

    def _output(self, now: Pass) -> SchedulerOutput:
        output = output_of(now, self.book.get_freed_mm_hashes(), self.ended)
        self.ended = []
        return output

    def _advance(self, now: Pass) -> None:
        """Count the pass as computed; the tokens it will sample are placeholders until then."""
        is_async = self.config.async_depth > 0
        for request, num_tokens in now.chunks.items():
            num_known_tokens = request.num_tokens + request.num_output_placeholders
            request.num_computed_tokens += num_tokens
            request.num_in_flight_tokens += num_tokens
            request.num_draft_tokens = 0
            drafts = request.num_computed_tokens - num_known_tokens
            if is_async and drafts >= 0:
                request.num_output_placeholders += 1 + drafts
                request.num_draft_tokens = self.config.num_speculative_tokens

    def pause(self, request: SchedulerRequest) -> None:
        """Let a streaming request wait for its next input; it keeps its KV blocks."""
        if request.status == "running":
            self.running.remove(request)
        else:
            self.waiting.remove(request)
        request.status = "paused"
        self.paused.append(request)

    def resume(self, request: SchedulerRequest) -> None:
        """Let a paused request wait for its turn."""
        self.paused.remove(request)
        request.status = "waiting"
        self.waiting.add(request)
