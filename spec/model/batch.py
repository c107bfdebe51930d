"""A pass while it is being scheduled: who runs how many tokens, and who has to make room."""

from __future__ import annotations

from functools import cache

from spec.model.choose import Chunk, choose_chunk
from spec.model.state import PREEMPTED, RUNNING, STALE, RequestState, Scheduled, Try
from spec.model.working import Working
from spec.rules import turn

tokens_wanted = cache(turn.tokens_wanted)


class PassUnderWay:
    """A pass while it is being scheduled.

    Args:
        work: the state; it changes as the pass goes on.

    Attributes:
        tokens: token budget left.
        encoder_rows: encoder budget left (rows).
        chunks: tokens of each request of the batch, in batch order.
        started: requests of the batch that came from the waiting queue, as a bit mask.
        inputs: encoder inputs chosen: request and occurrence.
        preempted: requests preempted.
        tries: as in :class:`spec.model.state.PassRecord`, like the following three.
        hits, allocated, refused: occurrences.
    """

    __slots__ = (
        "allocated",
        "chunks",
        "encoder_rows",
        "hits",
        "inputs",
        "preempted",
        "refused",
        "started",
        "tokens",
        "tries",
        "work",
    )

    def __init__(self, work: Working) -> None:
        config = work.layout.config
        self.work = work
        self.tokens = config.max_num_batched_tokens
        self.encoder_rows = config.encoder_compute_budget
        self.chunks: dict[int, int] = {}
        self.started = 0
        self.inputs: list[tuple[int, int]] = []
        self.preempted: list[int] = []
        self.tries: list[Try] = []
        self.hits = self.allocated = self.refused = 0

    def schedule_running(self) -> None:
        """Let the running requests go on, in their order."""
        work = self.work
        running, limits = work.running, work.layout.limit
        index = 0
        while index < len(running) and self.tokens > 0:
            request = running[index]
            _, computed, placeholders, drafts, known_tokens, blocks, _, _ = work.requests[request]
            wanted = tokens_wanted(computed, known_tokens, drafts, placeholders, limits[request])
            if wanted > 0:
                chunk = choose_chunk(
                    work, request, computed, wanted, self.tokens, self.encoder_rows
                )
                self._note(chunk)
                got = -1
                num_tokens = chunk.num_tokens
                if num_tokens > 0:
                    needed = work.count_blocks(request, computed + num_tokens)
                    got = int(needed is not None)
                    if needed is None:
                        before = running[:index]
                        needed = self._preempt_until_it_fits(request, computed + num_tokens)
                        index = sum([other in running for other in before])
                    if needed is None:
                        self.tries.append(Try(request, chunk.first_asked, chunk.refused, 0))
                        continue
                    if needed != blocks:
                        self._set_blocks(request, needed)
                    self._add(request, chunk)
                self.tries.append(Try(request, chunk.first_asked, chunk.refused, got))
            index += 1

    def _note(self, chunk: Chunk) -> None:
        """Note what was found and refused; a preemption of the request takes it back."""
        if chunk.hits:
            self.hits |= chunk.hits
        if chunk.refused >= 0:
            self.refused |= 1 << chunk.refused

    def _set_blocks(self, request: int, blocks: int) -> None:
        status, computed, placeholders, drafts, known_tokens, _, starts, rank = self.work.requests[
            request
        ]
        self.work.requests[request] = RequestState(
            status, computed, placeholders, drafts, known_tokens, blocks, starts, rank
        )

    def _preempt_until_it_fits(self, request: int, end: int) -> int | None:
        """KV blocks for a running request, from those that come last; ``None`` if it is one."""
        work = self.work
        while True:
            victim = work.running[-1]
            if work.layout.config.policy == "priority":
                victim = max(work.running, key=work.order)
            self.preempt(victim)
            if victim == request:
                return None
            blocks = work.count_blocks(request, end)
            if blocks is not None:
                return blocks

    def preempt(self, victim: int) -> None:
        """Take everything from a running request and let it wait again from the start."""
        work = self.work
        work.running.remove(victim)
        work.let_all_go(victim)
        own = work.layout.own[victim]
        if victim in self.chunks:
            self.tokens += self.chunks.pop(victim)
            self.started &= ~(1 << victim)
            self._withdraw_inputs(victim)
        state = work.requests[victim]
        work.requests[victim] = RequestState(
            PREEMPTED, 0, 0, 0, state.known_tokens, 0, state.starts, state.rank
        )
        work.mark_outputs(victim, STALE)
        work.taken &= ~own
        self.hits &= ~own
        self.allocated &= ~own
        self.refused &= ~own
        if not work.rules.resends_payload:
            work.payload &= ~(1 << victim)
        work.put_back(victim)
        self.preempted.append(victim)

    def _withdraw_inputs(self, victim: int) -> None:
        """Take back what a victim of the same pass had chosen to encode."""
        work = self.work
        kept = []
        for request, occurrence in self.inputs:
            if request != victim:
                kept.append((request, occurrence))
                continue
            heir = self._holder(work.layout.hash_of[occurrence])
            if heir is None:
                work.cancel(occurrence)
                self.encoder_rows += work.layout.rows[occurrence]
            else:
                kept.append(heir)
        self.inputs = kept

    def _holder(self, name: int) -> tuple[int, int] | None:
        """A running request that holds a reference to the entry, with its occurrence."""
        work = self.work
        sharing = work.layout.sharing[name] & work.held
        for request in work.running:
            own = sharing & work.layout.own[request]
            if own:
                return request, (own & -own).bit_length() - 1
        return None

    def schedule_waiting(self) -> None:
        """Admit waiting requests, in their order."""
        work = self.work
        layout, rules = work.layout, work.rules
        most = layout.config.max_num_seqs
        skipped = []
        while work.waiting and self.tokens > 0 and len(work.running) < most:
            request = work.waiting.pop(0)
            status, computed, _, _, known_tokens, _, starts, rank = work.requests[request]
            if status == PREEMPTED and work.has_in_flight(request):
                skipped.append(request)
                continue
            start = computed
            hits = layout.hits[request]
            if starts < len(hits):
                start = min(hits[starts], known_tokens - 1)
                starts += 1
            chunk = choose_chunk(
                work, request, start, known_tokens - start, self.tokens, self.encoder_rows
            )
            self._note(chunk)
            num_tokens = chunk.num_tokens
            if num_tokens == 0:
                self.tries.append(Try(request, chunk.first_asked, chunk.refused, -1))
                self._give_back(request)
                skipped.append(request)
                if rules.stalled_head_ends_pass:
                    break
                continue
            blocks = work.count_blocks(request, start + num_tokens)
            got = int(blocks is not None)
            self.tries.append(Try(request, chunk.first_asked, chunk.refused, got))
            if blocks is None:
                if rules.admission_preempts:
                    self._preempt_for_admission(request)
                self._give_back(request)
                skipped.append(request)
                break
            work.requests[request] = RequestState(
                RUNNING, start, 0, 0, known_tokens, blocks, starts, rank
            )
            work.running.append(request)
            self.started |= 1 << request
            if not rules.resends_payload and status != PREEMPTED:
                work.payload |= 1 << request
            work.taken &= ~layout.own[request]
            self._add(request, chunk)
        for request in reversed(skipped):
            work.put_back(request)

    def _preempt_for_admission(self, request: int) -> None:
        victims = [other for other in self.work.running if not self.started >> other & 1]
        if victims:
            self._give_back(request)
            self.preempt(victims[-1])

    def _give_back(self, request: int) -> None:
        if self.work.rules.gives_back:
            self.work.let_all_go(request)

    def _add(self, request: int, chunk: Chunk) -> None:
        num_tokens, inputs, duplicates, rows, _, _, _ = chunk
        work = self.work
        self.chunks[request] = num_tokens
        self.tokens -= num_tokens
        if inputs:
            self.encoder_rows -= rows
            for occurrence in inputs:
                work.allocate(occurrence)
                self.allocated |= 1 << occurrence
                self.inputs.append((request, occurrence))
            if work.rules.takes_duplicates:
                for occurrence in duplicates:
                    if work.hit(occurrence):
                        self.hits |= 1 << occurrence

    def batch(self) -> tuple[Scheduled, ...]:
        """What each request runs, from progress as it was before the pass."""
        scheduled = []
        for request, num_tokens in self.chunks.items():
            _, computed, placeholders, _, known_tokens, _, _, _ = self.work.requests[request]
            drafts = computed + num_tokens - known_tokens - placeholders
            scheduled.append(
                Scheduled(
                    request,
                    computed,
                    num_tokens,
                    drafts if drafts > 0 else 0,
                    placeholders,
                    known_tokens,
                    bool(self.started >> request & 1),
                )
            )
        return tuple(scheduled)
