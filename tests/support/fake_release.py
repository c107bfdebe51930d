"""A tiny package laid out like vLLM, written here, to test the source proofs without a release."""

from __future__ import annotations

from pathlib import Path

SCHEDULER = """
class Scheduler:
    def _free_encoder_inputs(self, request):
        for i in sorted(self.encoder_cache_manager.get_cached_input_ids(request)):
            position = request.mm_features[i].mm_position
            end = position.offset + position.length
            seen = request.num_computed_tokens - request.num_output_placeholders
            if self.is_encoder_decoder and request.num_computed_tokens > 0:
                self._let_go(request, i)
            elif end <= seen:
                self._let_go(request, i)

    def _let_go(self, request, i):
        self.encoder_cache_manager.free_encoder_input(request, i)
"""

UTILS = """
import bisect


def get_mm_features_in_window(mm_features, start, end):
    ends = [f.mm_position.offset + f.mm_position.length for f in mm_features]
    offsets = [f.mm_position.offset for f in mm_features]
    return bisect.bisect_right(ends, start), bisect.bisect_left(offsets, end)
"""

INPUTS = """
class PlaceholderRange:
    def get_embeds_indices_in_range(self, start_idx, end_idx):
        if self.embeds_cumsum is None:
            return start_idx, end_idx
        return self._before(start_idx), self._before(end_idx)

    def _before(self, position):
        return self.embeds_cumsum[position - 1] if position > 0 else 0
"""

RUNNER = """
import torch

from vllm.multimodal.utils import get_mm_features_in_window


class GPUModelRunner:
    def _gather_mm_embeddings(self, scheduler_output, shift_computed_tokens=0):
        mask = torch.zeros(scheduler_output.total_num_scheduled_tokens, dtype=torch.bool)
        views, place = [], 0
        for name in self.input_batch.req_ids:
            n = scheduler_output.num_scheduled_tokens[name]
            state = self.requests[name]
            first = state.num_computed_tokens + shift_computed_tokens
            low, high = get_mm_features_in_window(state.mm_features, first, first + n)
            for feature in state.mm_features[low:high]:
                position = feature.mm_position
                start = max(first - position.offset, 0)
                stop = min(first + n - position.offset, position.length)
                rows = position.get_embeds_indices_in_range(start, stop)
                if rows[0] == rows[1]:
                    continue
                output = self.encoder_cache.get(feature.identifier)
                if output is None:
                    if position.offset >= state.num_computed_tokens + n:
                        continue
                    raise RuntimeError(f"nothing stored for {feature.identifier}")
                views.append(output[rows[0]:rows[1]])
                at = place + position.offset - first
                takes = True if position.is_embed is None else position.is_embed[start:stop]
                mask[at + start : at + stop] |= takes
            place += n
        return views, mask
"""

BOOK = """
class EncoderCacheManager:
    def __init__(self, cache_size):
        self.cache_size = cache_size
        self.reset()

    def reset(self):
        self.num_free_slots = self.num_freeable_slots = self.cache_size
        self.cached, self.rows, self.taken, self.evicted = {}, {}, set(), []

    def check_and_update_cache(self, request, i):
        name = request.mm_features[i].identifier
        if name not in self.cached:
            return False
        if not self.cached[name]:
            self.num_freeable_slots -= self.rows[name]
        self._refer(request, i, name)
        return True

    def can_allocate(self, request, i, budget, before):
        wanted = request.get_num_encoder_embeds(i)
        if wanted > budget:
            return False
        wanted += before
        if wanted > self.num_freeable_slots:
            return False
        while wanted > self.num_free_slots:
            name = next(name for name in self.cached if not self.cached[name])
            del self.cached[name]
            self.num_free_slots += self.rows.pop(name)
            self.evicted.append(name)
        return True

    def allocate(self, request, i):
        name = request.mm_features[i].identifier
        self.cached[name], self.rows[name] = set(), request.get_num_encoder_embeds(i)
        self.num_free_slots -= self.rows[name]
        self.num_freeable_slots -= self.rows[name]
        self._refer(request, i, name)

    def _refer(self, request, i, name):
        self.cached[name].add(request.request_id)
        self.taken.add((request.request_id, i, name))

    def get_cached_input_ids(self, request):
        return {i for holder, i, _ in self.taken if holder == request.request_id}

    def free_encoder_input(self, request, i):
        name, holder = request.mm_features[i].identifier, request.request_id
        if (holder, i, name) not in self.taken:
            return
        self.taken.discard((holder, i, name))
        if any(who == holder and what == name for who, _, what in self.taken):
            return
        self.cached[name].discard(holder)
        if not self.cached[name]:
            self.cached[name] = self.cached.pop(name)
            self.num_freeable_slots += self.rows[name]

    def free(self, request):
        for i in sorted(self.get_cached_input_ids(request)):
            self.free_encoder_input(request, i)

    def get_freed_mm_hashes(self):
        notices = [name for name in self.evicted if name not in self.cached]
        self.evicted = []
        return notices


class EncoderDecoderCacheManager(EncoderCacheManager):
    def reset(self):
        self.num_free_slots, self.taken = self.cache_size, set()

    def __init__(self, cache_size):
        self.cache_size = cache_size
        self.reset()

    def check_and_update_cache(self, request, i):
        return False

    def can_allocate(self, request, i, budget, before):
        wanted = request.get_num_encoder_embeds(i)
        return wanted <= budget and wanted + before <= self.num_free_slots

    def allocate(self, request, i):
        self.num_free_slots -= request.get_num_encoder_embeds(i)
        self.taken.add((request.request_id, i, request.mm_features[i].identifier))

    def free_encoder_input(self, request, i):
        held = (request.request_id, i, request.mm_features[i].identifier)
        if held in self.taken:
            self.taken.discard(held)
            self.num_free_slots += request.get_num_encoder_embeds(i)
"""

FILES = {
    "v1/core/encoder_cache_manager.py": BOOK,
    "v1/core/sched/scheduler.py": SCHEDULER,
    "multimodal/utils.py": UTILS,
    "multimodal/inputs.py": INPUTS,
    "v1/worker/gpu_model_runner.py": RUNNER,
}


def write_release(folder: Path, **changes: tuple[str, str]) -> Path:
    """Write the package and return its folder.

    Args:
        changes: by a file's stem, a text in it and what to put in its place.
    """
    package = folder / "vllm"
    for name, text in FILES.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        old, new = changes.get(path.stem, ("", ""))
        assert old in text, f"{old!r} is not in {name}"
        path.write_text(text.replace(old, new, 1) if old else text)
    (package / "__init__.py").write_text("")
    return package
