"""A lone request and a release's scheduler around it, before the run begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proofs.source.code.book_calls import SCHEDULER_CLASS, SCHEDULER_MODULE
from proofs.source.code.gather import FeatureInput, feature_specs
from proofs.source.code.initial import InitialValues
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_parts import (
    RUN_OVERRIDES,
    Known,
    KVBlocks,
    NoStructuredOutput,
    RunRequest,
    Tokens,
)
from proofs.symbolic.integers import AnyInt
from spec.functions.observations import request_name
from spec.record.steps import Status

REQUEST_MODULE = "vllm.v1.request"
QUEUE_MODULE = "vllm.v1.core.sched.request_queue"
INTERFACE_MODULE = "vllm.v1.core.sched.interface"

RUN_NAME = request_name(0)


@dataclass(frozen=True)
class RunInput:
    """A lone request and the configuration that it runs in (tokens, rows).

    Attributes:
        num_prompt_tokens: length of its prompt.
        max_tokens: tokens to generate.
        token_budget: most tokens of a pass.
        encoder_budget: rows that the encoder may compute in a pass.
        cache_size: rows of the book.
        threshold: most tokens of one prefill chunk; 0 for no limit.
        shift: how far past the chunk the scheduler looks; 0 without a drafter.
        num_drafts: drafts proposed after a step that samples; 0 without a drafter.
        accepted: drafts accepted in each step that verifies some; 0 in all later ones.
        whole_items: chunking of items is off.
    """

    features: tuple[FeatureInput, ...]
    num_prompt_tokens: AnyInt
    max_tokens: AnyInt
    token_budget: AnyInt
    encoder_budget: AnyInt
    cache_size: AnyInt
    threshold: AnyInt
    shift: int
    num_drafts: int
    accepted: tuple[AnyInt, ...]
    whole_items: bool


class RunCode:
    """What runs of one release have in common.

    Args:
        release: the source.

    Raises:
        NotModelled: the release has no such scheduler, or one that is made otherwise.
    """

    def __init__(self, release: ReleaseSource) -> None:
        self.release = release.with_overrides(RUN_OVERRIDES)
        self.scheduler = self.release.module(SCHEDULER_MODULE)
        self.request = self.release.module(REQUEST_MODULE)
        self.statuses = self.request.value("RequestStatus")
        queue = self.release.module(QUEUE_MODULE)
        self.policy = queue.value("SchedulingPolicy").FCFS
        make_queue = queue.value("create_request_queue")
        self.unpaused = self.release.module(INTERFACE_MODULE).value("PauseState").UNPAUSED
        makers = {"create_request_queue": lambda: make_queue(self.policy)}
        self.of_scheduler = InitialValues(self.scheduler, SCHEDULER_CLASS, makers)
        self.of_request = InitialValues(self.request, "Request")
        status = self.statuses
        self.status_words: dict[Any, Status] = {
            status.WAITING: "waiting",
            status.RUNNING: "running",
            status.PREEMPTED: "preempted",
        }


def new_run_request(code: RunCode, given: RunInput) -> Any:
    """The request, before it arrives."""
    tokens, output = Tokens(), list[int]()
    attributes: dict[str, Any] = code.of_request.new() | {
        "request_id": RUN_NAME,
        "client_index": 0,
        "priority": 0,
        "arrival_time": 0.0,
        "num_prompt_tokens": given.num_prompt_tokens,
        "max_tokens": given.max_tokens,
        "mm_features": feature_specs(code.release, given.features),
        "status": code.statuses.WAITING,
        "_all_token_ids": tokens,
        "all_token_ids": tokens,
        "_output_token_ids": output,
        "output_token_ids": output,
        "sampling_params": _SAMPLING,
        "pooling_params": None,
        "lora_request": None,
        "structured_output_request": None,
        "kv_transfer_params": None,
        "prefill_stats": None,
        "resumable": False,
        "streaming_queue": None,
        "_block_hasher": None,
        "block_hashes": [],
        "trace_headers": None,
        "skip_reading_prefix_cache": False,
    }
    return RunRequest(code.request, "Request", attributes)


def new_run_scheduler(code: RunCode, given: RunInput, kv_blocks: KVBlocks, book: Any) -> Any:
    """The scheduler, with nothing to do yet."""
    drafter = Known(max_num_new_slots_for_drafting=0) if given.num_drafts else None
    longest = given.num_prompt_tokens + given.max_tokens + given.num_drafts
    attributes = code.of_scheduler.new() | {
        "vllm_config": Known(speculative_config=drafter),
        "scheduler_config": Known(
            max_num_batched_tokens=given.token_budget,
            long_prefill_token_threshold=given.threshold,
            disable_chunked_mm_input=given.whole_items,
            enable_chunked_prefill=True,
            async_scheduling=False,
        ),
        "kv_cache_config": Known(kv_cache_groups=[None]),
        "observability_config": Known(enable_logging_iteration_details=False),
        "structured_output_manager": NoStructuredOutput(),
        "kv_cache_manager": kv_blocks,
        "encoder_cache_manager": book,
        "policy": code.policy,
        "_pause_state": code.unpaused,
        "max_num_scheduled_tokens": given.token_budget,
        "max_num_encoder_input_tokens": given.encoder_budget,
        "max_model_len": longest,
        "num_prefill_lookahead": given.shift,
        "use_eagle": given.shift > 0,
        "num_spec_tokens": given.num_drafts,
        "num_lookahead_tokens": given.num_drafts,
        **_SETTINGS,
    }
    return code.scheduler.stand_in(SCHEDULER_CLASS, **attributes)


_SAMPLING = Known(
    eos_token_id=None,
    stop_token_ids=None,
    min_tokens=0,
    num_logprobs=None,
    logprobs=None,
    repetition_detection=None,
)
"""A request that only its ``max_tokens`` end."""

NO_RESULTS: dict[str, None] = dict.fromkeys(
    (
        "logprobs",
        "pooler_output",
        "num_nans_in_logits",
        "kv_connector_output",
        "ec_connector_output",
        "cudagraph_stats",
        "routed_experts",
        "sampling_masks",
        "aux_output_connector_output",
    )
)
"""What a runner returns besides sampled tokens."""

_SETTINGS: dict[str, Any] = {
    "log_stats": False,
    "lora_config": None,
    "is_encoder_decoder": False,
    "is_mm_encoder_only": False,
    "is_encoder_only": False,
    "model_uses_mrope": False,
    "model_uses_xdrope": False,
    "max_num_running_reqs": 8,
    "max_num_active_reqs": 8,
    "adaptive_long_prefill_threshold": False,
    "num_sampled_tokens_per_step": 1,
    "connector": None,
    "ec_connector": None,
    "aux_output_connector": None,
    "defer_block_free": False,
    "defer_async_loads": False,
    "requires_kv_delivery": False,
    "recompute_kv_load_failures": True,
    "finished_req_ids_dict": None,
    "perf_metrics": None,
    "kv_metrics_collector": None,
    "spec_decode_metrics_level": "none",
    "use_pp": False,
    "use_v2_model_runner": False,
    "can_skip_drafts": False,
    "dynamic_sd_lookup": None,
    "local_prefill_interval": 1,
    "has_mamba_layers": False,
    "need_mamba_block_aligned_split": False,
    "needs_kv_cache_zeroing": False,
    "prefix_replay_tokens": 0,
    "prefix_replay_group_ids": (),
    "num_hash_lookahead_tokens": 0,
    "scheduler_reserve_full_isl": False,
    "return_sampling_mask": False,
    "enable_return_routed_experts": False,
    "_kv_fetch_stages": None,
}
"""A synchronous engine of one machine without stores, adapters or statistics."""
