"""Queues and KV blocks after each step.

Part of the claim ``counts-agree``, with :mod:`spec.monitor.counts.counts`.
"""

from __future__ import annotations

from spec.history.log import FindingLog
from spec.record.config import EngineConfig
from spec.record.steps import EngineState, RequestState, Status, Step

CLAIM = "counts-agree"

_ENDED = ("finished", "rejected")
_QUEUE_OF: dict[Status, str] = {"waiting": "waiting", "preempted": "waiting", "running": "running"}


class QueuesMonitor:
    """Judge who waits, who runs, and who holds KV blocks.

    Args:
        config: the engine's settings.
        log: where findings go.
    """

    def __init__(self, config: EngineConfig, log: FindingLog) -> None:
        self._config = config
        self._log = log
        self._waiting: tuple[int, ...] = ()
        self._running: tuple[int, ...] = ()

    def check(self, state: EngineState, *, statuses_stay: bool) -> None:
        """Judge the queues after a step; ``statuses_stay`` says that every status is as before."""
        # Blocks of a prefix that an engine found in its own cache may be shared.
        blocks = sum([request.num_blocks for request in state.requests])
        if blocks > self._config.num_kv_blocks and not self._config.prefix_caching:
            self._note(
                "more KV blocks than there are",
                f"{blocks} KV blocks held",
                f"at most {self._config.num_kv_blocks}",
            )
        queues_stay = state.running == self._running and state.waiting == self._waiting
        if not (statuses_stay and queues_stay):
            self._check_queues(state)
            self._waiting, self._running = state.waiting, state.running

    def _check_queues(self, state: EngineState) -> None:
        queues: dict[str, set[int]] = {"waiting": set(), "running": set()}
        for request in state.requests:
            queue = _QUEUE_OF.get(request.status)
            if queue is not None:
                queues[queue].add(request.request)
        for name, seen in (("waiting", state.waiting), ("running", state.running)):
            if queues[name] != set(seen) or len(queues[name]) != len(seen):
                self._note(
                    f"{name} queue differs from statuses",
                    f"{name}: {list(seen)}",
                    f"{sorted(queues[name])} by status, each once",
                )
        stayed = [request for request in self._running if request in queues["running"]]
        if list(state.running[: len(stayed)]) != stayed:
            self._note(
                "running requests change places",
                f"running: {list(state.running)}",
                f"first {stayed}, as before; others behind",
            )
        if len(state.running) > self._config.max_num_seqs:
            self._note(
                "too many requests run",
                f"{len(state.running)} running",
                f"at most {self._config.max_num_seqs}",
            )

    def _note(
        self, mechanism: str, observed: str, expected: str, request: int | None = None
    ) -> None:
        self._log.add(CLAIM, mechanism, observed=observed, expected=expected, request=request)

    def check_blocks(
        self,
        step: Step,
        before: RequestState | None,
        state: RequestState,
        granted: int | None,
        limit: int,
    ) -> None:
        """Judge the KV blocks of one request.

        Args:
            step: what happened.
            before: its state before the step.
            state: its state after it.
            granted: tokens for which it was granted room in the step, if it was.
            limit: tokens at which its turn ends; past them no room is needed.
        """
        held = 0 if before is None else before.num_blocks
        least = most = held
        if granted is not None and state.status == "running":
            size = self._config.block_size
            most = max(held, -(-(granted + self._config.num_speculative_tokens) // size))
            least = -(-min(granted, limit) // size)
        elif state.status == "preempted":
            least = most = 0
        elif not state.num_blocks and (state.status in _ENDED or step.kind == "pass"):
            return
        if not least <= state.num_blocks <= most:
            self._note(
                "KV blocks differ",
                f"{state.num_blocks} KV blocks",
                f"{least} to {most}, after {held}",
                state.request,
            )
