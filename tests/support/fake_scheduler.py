"""Scheduling of encoder inputs for the tiny release, written here, right in every configuration."""

from __future__ import annotations

from pathlib import Path

from tests.support.fake_release import write_release

SCHEDULING = """
from vllm.multimodal.utils import get_mm_features_in_window


class Scheduler:
    def schedule(self):
        for request in self.running:
            chosen, n, budget, outside, repeated = self._try_schedule_encoder_inputs(
                request,
                request.num_computed_tokens,
                n,
                budget,
                shift_computed_tokens=self.num_prefill_lookahead,
            )

    def _try_schedule_encoder_inputs(
        self, request, num_computed_tokens, num_new_tokens, budget, shift_computed_tokens=0
    ):
        if num_new_tokens == 0 or not request.has_encoder_inputs:
            return [], num_new_tokens, budget, [], []
        first = num_computed_tokens
        last = first + num_new_tokens
        seen_to = last + shift_computed_tokens
        book = self.encoder_cache_manager
        decoder_only = not self.is_encoder_decoder
        chosen, loaded, repeated, names, rows = [], [], [], set(), 0
        low, high = get_mm_features_in_window(request.mm_features, first, seen_to)
        for i in range(low, high):
            name = request.mm_features[i].identifier
            position = request.mm_features[i].mm_position
            end = position.offset + position.length
            if first > 0 and not decoder_only:
                continue
            if self.scheduler_config.disable_chunked_mm_input and decoder_only:
                if first <= position.offset and last < end:
                    last = min(last, position.offset)
                    break
            if name in names:
                repeated.append(i)
                continue
            if decoder_only and book.check_and_update_cache(request, i):
                continue
            if not book.can_allocate(request, i, budget, rows):
                last = min(last, max(position.offset, first))
                break
            start = max(first - position.offset, 0)
            stop = min(seen_to - position.offset, position.length)
            taken = position.get_embeds_indices_in_range(start, stop)
            if taken[0] == taken[1]:
                continue
            names.add(name)
            rows += position.get_num_embeds()
            if self.ec_connector is not None and self.ec_connector.has_cache_item(name):
                loaded.append(i)
                continue
            chosen.append(i)
            budget -= position.get_num_embeds()
        return chosen, last - first, budget, loaded, repeated

    def _allocate_encoder_inputs(self, request, chosen, repeated):
        for i in chosen:
            self.encoder_cache_manager.allocate(request, i)
        for i in repeated:
            self.encoder_cache_manager.check_and_update_cache(request, i)

    def _free_encoder_inputs(self, request):
        for i in sorted(self.encoder_cache_manager.get_cached_input_ids(request)):
            position = request.mm_features[i].mm_position
            if position.offset + position.length <= request.num_computed_tokens:
                self.encoder_cache_manager.free_encoder_input(request, i)
"""

_COUNT = """
    def get_num_embeds(self):
        return self.length if self.embeds_cumsum is None else self.embeds_cumsum[-1]

    def _before"""


def write_scheduling_release(folder: Path, old: str = "", new: str = "") -> Path:
    """The tiny release with this scheduler, in which one text is replaced by another."""
    assert old in SCHEDULING, f"{old!r} is not in the scheduler"
    package = write_release(folder, inputs=("\n    def _before", _COUNT))
    text = SCHEDULING.replace(old, new, 1) if old else SCHEDULING
    (package / "v1/core/sched/scheduler.py").write_text(text)
    return package
