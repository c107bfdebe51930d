"""How long the chunks of a prefill are: no longer than a threshold, and with enough left behind.

A threshold on long prefills is there for the others, so that nothing is asked where there is nobody
else. A drafter of several modules reads as many known tokens past a chunk's end as the scheduler
looks ahead, so that a chunk leaves the prefill none or as many.
"""

from __future__ import annotations

from collections.abc import Sequence

from spec.claims import predicates as claims
from spec.history.history import History
from spec.history.layout import FeatureLayout
from spec.history.log import FindingLog
from spec.monitor.progress.hidden_state import ACTIVE
from spec.record.config import EngineConfig
from spec.record.steps import PassSeen, ScheduledRequest, Step


class ChunksMonitor:
    """Judge the chunks of each pass.

    Args:
        config: the engine's settings.
        history: the run so far, the step included.
        log: where findings go.
    """

    def __init__(self, config: EngineConfig, history: History, log: FindingLog) -> None:
        self._config = config
        self._history = history
        self._log = log
        self._active: frozenset[int] = frozenset()
        """Requests that ran or waited before the step."""

    def observe(self, step: Step) -> None:
        """Judge a step."""
        config = self._config
        if config.long_prefill_token_threshold == 0 and config.scheduler_lookahead <= 1:
            return
        if step.kind == "pass":
            self._check_pass(step)
        self._active = frozenset(s.request for s in step.state.requests if s.status in ACTIVE)

    def _check_pass(self, step: PassSeen) -> None:
        for entry in step.scheduled:
            if self._config.long_prefill_token_threshold:
                self._check_threshold(entry)
            if self._config.scheduler_lookahead > 1:
                self._check_left(entry)

    def _check_threshold(self, entry: ScheduledRequest) -> None:
        threshold = self._config.long_prefill_token_threshold
        num_tokens = entry.num_scheduled_tokens
        known = entry.prefill_len - entry.num_computed_tokens
        has_others = bool(self._active - {entry.request})
        self._log.premises["threshold-kept"] += has_others and known > threshold
        whole_item = self._whole_item(entry)
        if claims.threshold_kept(num_tokens, known, threshold, whole_item, has_others):
            return
        self._log.add(
            "threshold-kept",
            "chunk of a long prefill exceeds the threshold",
            observed=f"request {entry.request} runs {num_tokens} of {known} known tokens while "
            "others run or wait",
            expected=f"at most {max(threshold, whole_item)} tokens",
            request=entry.request,
        )

    def _whole_item(self, entry: ScheduledRequest) -> int:
        """Tokens up to the end of the item that a chunk starts on, where items are not split."""
        start = entry.num_computed_tokens
        ends = [f.end for f in self._whole(entry) if f.offset <= start < f.end]
        return max(ends, default=start) - start

    def _whole(self, entry: ScheduledRequest) -> Sequence[FeatureLayout]:
        """Features that are not to be split."""
        if not self._config.whole_items or self._config.is_encoder_decoder:
            return ()
        return self._history.requests[entry.request].layout.features

    def _check_left(self, entry: ScheduledRequest) -> None:
        start, shift = entry.num_computed_tokens, self._config.scheduler_lookahead
        left = entry.prefill_len - start - entry.num_scheduled_tokens
        self._log.premises["reservation-kept"] += left > 0
        if claims.reservation_kept(left, shift, self._shorter(entry) > 0):
            return
        self._log.add(
            "reservation-kept",
            "chunk leaves less of a prefill than the drafter's modules read",
            observed=f"request {entry.request} runs {entry.num_scheduled_tokens} tokens from "
            f"{start}, and leaves {left}",
            expected=f"none or at least {shift} of the {entry.prefill_len} known tokens are left",
            request=entry.request,
        )

    def _shorter(self, entry: ScheduledRequest) -> int:
        """The longest chunk that leaves enough, splits no item and ends at a block; 0 for none."""
        start, alignment = entry.num_computed_tokens, self._config.block_alignment
        end = entry.prefill_len - self._config.scheduler_lookahead
        for feature in reversed(self._whole(entry)):
            if start <= feature.offset < end < feature.end:
                end = feature.offset
        if alignment:
            # An engine may have to end there.
            end = end // alignment * alignment
        return end - start
