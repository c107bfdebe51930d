"""The real scheduler of a release, built offline: one model a process, one scheduler a scenario.

A ``VllmConfig`` is built once for each kind of drafter, each depth and with or without a store of
KV; what a scenario sets further is set on it before the scheduler is made. The last tokens of a
request never lie past ``max_model_len``, which is set to what the KV blocks hold: a real engine
refuses to start where the blocks do not hold one request of ``max_model_len`` tokens.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch

from impl.target import Runner
from impl.temporary import temporary_folder
from impl.vllm.functions.objects import UnavailableError, require
from impl.vllm.launch.load import Loaded
from spec.errors import described
from spec.record.config import EngineConfig

_MODEL = {
    "architectures": ["OPTForCausalLM"],
    "model_type": "opt",
    "hidden_size": 16,
    "word_embed_proj_dim": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "ffn_dim": 16,
    "vocab_size": 64,
    "max_position_embeddings": 1 << 20,
    "torch_dtype": "float32",
}
"""A model that is never run; its configuration has to exist."""


class OPTForCausalLM(torch.nn.Module):
    """Stands for the model's class, of which a release asks what it can do.

    Left alone, a release imports its own class in a process of its own for that, which takes nine
    seconds and says of these points what this class says: text is generated, and nothing else. It
    is never made. Releases keep the class's name, so that it has to be the architecture's.
    """

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        """Take what a release's model takes."""
        super().__init__()

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Releases look for this method, and for the next one where they are old."""
        raise NotImplementedError

    get_input_embeddings = embed_input_ids

    def forward(self, input_ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Releases look at the names of the parameters."""
        raise NotImplementedError

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """With this method a model generates text."""
        raise NotImplementedError


_MAX_TOKENS = 1 << 16
_BLOCK_SIZE = 16
"""Tokens of a KV block in the configuration that is built once; no scheduler keeps it."""


DraftMethod: TypeAlias = Literal["ngram", "eagle", "draft_model"]
"""A drafter that reads no embeddings; one that reads ahead, which the scheduler knows; and a model
of its own, for which the release's scheduler does not look ahead although the gathers do."""


def _method(config: EngineConfig) -> DraftMethod:
    if config.scheduler_lookahead:
        return "eagle"
    return "draft_model" if config.gather_lookahead else "ngram"


@dataclass(frozen=True)
class _Kind:
    """What a ``VllmConfig`` is built for; everything else is set per scenario."""

    num_drafts: int
    method: DraftMethod
    is_async: bool
    has_store: bool


class _NoStructuredOutput:
    """Stands in for the manager of grammars, which no request of a scenario uses."""

    def should_advance(self, *args: Any, **kwargs: Any) -> bool:
        """No grammar advances."""
        return False

    def accept_tokens(self, *args: Any, **kwargs: Any) -> bool:
        """Every token is accepted."""
        return True

    def validate_tokens(self, request: Any, token_ids: list[int]) -> list[int]:
        """Every draft is valid."""
        return token_ids


class Schedulers:
    """Makes schedulers of the loaded release.

    Args:
        scheduler_class: ``package.module:Class`` of another scheduler, of a fork for instance.
            Asynchronous scenarios use it as well.
    """

    def __init__(self, loaded: Loaded, scheduler_class: str | None = None) -> None:
        self._loaded = loaded
        self._named = scheduler_class
        self._config: Any = loaded.module("config")
        self._configs: dict[_Kind, Any] = {}
        manager = "v1.core.encoder_cache_manager"
        self._books = {
            False: require(loaded, manager, "EncoderCacheManager"),
            True: require(loaded, manager, "EncoderDecoderCacheManager"),
        }
        self._model: Any = None
        # It stays as long as this process does: releases look at it again and again.
        self._folder = temporary_folder("model")
        self._classes = {
            False: self._class("v1.core.sched.scheduler", "Scheduler"),
            True: self._class("v1.core.sched.async_scheduler", "AsyncScheduler"),
        }

    def _class(self, module: str, name: str) -> Any:
        if self._named is None:
            return require(self._loaded, module, name)
        return self._loaded.named_class(self._named)

    def missing(self, config: EngineConfig) -> str | None:
        """Why the release cannot be configured like this; ``None`` when it can."""
        scheduler = self._classes[False]
        shift = config.scheduler_lookahead
        if config.gather_lookahead > 1:
            return "its runners read 1 token ahead for the drafter, never more"
        if shift and not config.num_speculative_tokens:
            return "its scheduler looks ahead only for a drafter; the scenario has none"
        if _method(config) == "draft_model":
            reason = self._no_draft_model()
            if reason is not None:
                return reason
        if shift > 1 and not hasattr(self.example, "num_prefill_lookahead"):
            return (
                f"its scheduler looks at most 1 token ahead (shifts above 1: 0.28.0), not {shift}"
            )
        if config.block_alignment and not hasattr(scheduler, "_mamba_block_aligned_split"):
            return "its scheduler aligns no chunks to blocks"
        if config.block_alignment > config.longest_chunk:
            return self._refused_alignment(config)
        return None

    def _refused_alignment(self, config: EngineConfig) -> str | None:
        """Why the release does not start where no chunk holds a block; ``None`` where it does.

        It is asked by its own check, which runs once a platform has settled the size of blocks.
        """
        vllm_config = self._config_for(config, has_store=False)
        check = getattr(vllm_config, "validate_block_size", None)
        if check is None:
            return "it has no check of its block size, so that nobody knows whether it starts"
        cache = vllm_config.cache_config
        mode = cache.mamba_cache_mode
        cache.block_size, cache.mamba_cache_mode = config.block_alignment, "align"
        try:
            check()
        except (AssertionError, ValueError) as refused:
            return f"it refuses to start: {described(refused)}"
        finally:
            cache.block_size, cache.mamba_cache_mode = config.block_size, mode
        return None

    @cached_property
    def example(self) -> Any:
        """A scheduler to be asked what it has: it knows of a drafter that reads ahead."""
        return self.make(_EXAMPLE, "V1", has_store=False)

    def _no_draft_model(self) -> str | None:
        """Why a drafter cannot read ahead of a scheduler that does not; ``None`` when it can."""
        if not hasattr(self._config.SpeculativeConfig, "uses_draft_model"):
            return "its configuration knows no drafter that is a model of its own"
        drafted = replace(_EXAMPLE, scheduler_lookahead=0)
        shift = _shift(self.make(drafted, "V1", has_store=False))
        if shift:
            return f"for a drafter that is a model of its own its scheduler looks {shift} ahead"
        return None

    def make(self, config: EngineConfig, runner: Runner, *, has_store: bool) -> Any:
        """A new scheduler with the scenario's settings.

        Args:
            has_store: whether prefixes can be loaded from outside.
        """
        vllm_config = self._config_for(config, has_store=has_store)
        scheduler = self._classes[config.async_depth > 0](
            vllm_config=vllm_config,
            kv_cache_config=self._kv_config(config.num_kv_blocks + 1, config.block_size),
            structured_output_manager=_NoStructuredOutput(),
            block_size=config.block_size,
            log_stats=False,
        )
        self._set_by_hand(scheduler, config, runner)
        return scheduler

    def _config_for(self, config: EngineConfig, *, has_store: bool) -> Any:
        """The release's configuration, with the scenario's settings."""
        kind = _Kind(
            config.num_speculative_tokens,
            _method(config),
            config.async_depth > 0,
            has_store,
        )
        vllm_config = self._configs.get(kind)
        if vllm_config is None:
            vllm_config = self._configs[kind] = self._build(kind)
        self._set(vllm_config, config)
        return vllm_config

    def _set(self, vllm_config: Any, config: EngineConfig) -> None:
        scheduling, cache = vllm_config.scheduler_config, vllm_config.cache_config
        scheduling.max_num_batched_tokens = config.max_num_batched_tokens
        scheduling.max_num_scheduled_tokens = config.max_num_batched_tokens
        scheduling.max_num_seqs = config.max_num_seqs
        scheduling.disable_chunked_mm_input = config.whole_items
        scheduling.long_prefill_token_threshold = config.long_prefill_token_threshold
        scheduling.policy = config.policy
        if hasattr(scheduling, "watermark"):
            scheduling.watermark = 0.0
        cache.num_gpu_blocks = config.num_kv_blocks + 1
        cache.block_size = config.block_size
        vllm_config.model_config.max_model_len = config.num_kv_blocks * config.block_size
        scheduling.max_model_len = vllm_config.model_config.max_model_len

    def _set_by_hand(self, scheduler: Any, config: EngineConfig, runner: Runner) -> None:
        """Set what a multimodal model, a hybrid one or a drafter of modules would have set."""
        scheduler.use_v2_model_runner = runner == "V2"
        if hasattr(scheduler, "can_skip_drafts"):
            scheduler.can_skip_drafts = scheduler.num_lookahead_tokens > 0 and runner == "V2"
        scheduler.max_num_encoder_input_tokens = config.encoder_compute_budget
        scheduler.is_encoder_decoder = config.is_encoder_decoder
        book = self._books[config.is_encoder_decoder]
        scheduler.encoder_cache_manager = book(cache_size=config.encoder_cache_size)
        if config.scheduler_lookahead > 1:
            scheduler.num_prefill_lookahead = config.scheduler_lookahead
            coordinator = scheduler.kv_cache_manager.coordinator
            coordinator.num_reprefillable_tokens = config.scheduler_lookahead - 1
        if config.block_alignment:
            scheduler.need_mamba_block_aligned_split = True
            scheduler.cache_config.block_size = config.block_alignment

    def _kv_config(self, num_blocks: int, block_size: int) -> Any:
        # Made anew for each scenario: scenarios have ever new numbers of blocks to remember.
        interface: Any = self._loaded.module("v1.kv_cache_interface")
        spec = interface.FullAttentionSpec(
            block_size=block_size, num_kv_heads=1, head_size=1, dtype=torch.float32
        )
        return interface.KVCacheConfig(
            num_blocks=num_blocks,
            kv_cache_tensors=[],
            kv_cache_groups=[interface.KVCacheGroupSpec(["layer"], spec)],
        )

    def _build(self, kind: _Kind) -> Any:
        make = self._config
        if self._model is None:
            self._model = _model(self._loaded, Path(self._folder.name))
        options: dict[str, Any] = {}
        if kind.num_drafts:
            # The one drafter that needs no model of its own; it is renamed below.
            options["speculative_config"] = make.SpeculativeConfig(
                model="ngram",
                method="ngram",
                num_speculative_tokens=kind.num_drafts,
                prompt_lookup_min=1,
                prompt_lookup_max=2,
                target_model_config=self._model,
                target_parallel_config=make.ParallelConfig(),
            )
        if kind.has_store:
            options["kv_transfer_config"] = make.KVTransferConfig(
                kv_connector="WorldConnector",
                kv_connector_module_path="impl.vllm.runs.connector",
                kv_role="kv_both",
                kv_load_failure_policy="recompute",
            )
        vllm_config = make.VllmConfig(
            model_config=self._model,
            cache_config=make.CacheConfig(block_size=_BLOCK_SIZE, enable_prefix_caching=False),
            scheduler_config=_scheduler_config(make),
            device_config=make.DeviceConfig(device="cpu"),
            **options,
        )
        if kind.method != "ngram":
            vllm_config.speculative_config.method = kind.method
        vllm_config.scheduler_config.async_scheduling = kind.is_async
        register = self._loaded.find(
            "v1.core.single_type_kv_cache_manager", "register_all_kvcache_specs"
        )
        if register is not None:
            register(vllm_config)
        return vllm_config


_EXAMPLE = EngineConfig(
    max_num_batched_tokens=8,
    encoder_compute_budget=8,
    encoder_cache_size=8,
    num_kv_blocks=16,
    scheduler_lookahead=1,
    gather_lookahead=1,
    num_speculative_tokens=1,
)


def _shift(scheduler: Any) -> int:
    """How far a scheduler looks past a chunk for encoder inputs (tokens)."""
    if hasattr(scheduler, "num_prefill_lookahead"):
        shift: int = scheduler.num_prefill_lookahead
        return shift
    return int(scheduler.use_eagle)


def _scheduler_config(make: Any) -> Any:
    """Chunked prefill, and no asynchrony as yet: a check at this point knows no drafter's name."""
    options = {
        "max_num_batched_tokens": _MAX_TOKENS,
        "max_model_len": _MAX_TOKENS,
        "enable_chunked_prefill": True,
        "is_encoder_decoder": False,
        "async_scheduling": False,
    }
    parameters = inspect.signature(make.SchedulerConfig).parameters
    return make.SchedulerConfig(**{name: v for name, v in options.items() if name in parameters})


def _model(loaded: Loaded, folder: Path) -> Any:
    """The model's configuration."""
    registry = require(loaded, "model_executor.models.registry", "ModelRegistry")
    make: Any = loaded.module("config")
    try:
        registry.register_model(OPTForCausalLM.__name__, OPTForCausalLM)
        (folder / "config.json").write_text(json.dumps(_MODEL), encoding="utf-8")
        return make.ModelConfig(
            model=str(folder),
            skip_tokenizer_init=True,
            dtype="float32",
            max_model_len=_MAX_TOKENS,
            enforce_eager=True,
        )
    except Exception as error:
        raise UnavailableError(f"no model can be configured: {described(error)}") from error
