"""Every argument that bears on the verdict, once: its name, its flags, what it takes and means.

The command line is built from this table, configuration files are read by it, and a flag that is
close to one of it is taken for a slip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["count", "switch", "table", "word"]


@dataclass(frozen=True)
class Argument:
    """One argument.

    Attributes:
        name: its name, with underscores; as in vLLM where vLLM has it.
        kind: what it takes: a count such as 8192 or 8k, nothing, a JSON object, or a word.
        help: what it means; empty for those that are of no use but in a line that was pasted.
        flags: its flags where they are not ``--`` and the name, or more than that.
        choices: the words that it takes; empty if any.
        unmodelled: what it means for passes, where no theorem is about that; empty otherwise.
    """

    name: str
    kind: Kind
    help: str = ""
    flags: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    unmodelled: str = ""

    @property
    def all_flags(self) -> tuple[str, ...]:
        """Its flags; of a switch with the ones that switch it off."""
        flag = self.name.replace("_", "-")
        own = f"--{flag}/--no-{flag}" if self.kind == "switch" else f"--{flag}"
        return self.flags or (own,)


MAMBA_CACHE_MODES = ("all", "align", "none")
POLICIES = ("fcfs", "priority")
"""What vLLM takes; another word must not pass for the default."""

ARGUMENTS = (
    Argument("release", "word", "Release of vLLM; the newest known when not given."),
    Argument(
        "max_num_batched_tokens",
        "count",
        "Token budget of a pass.",
        ("--max-num-batched-tokens", "--token-budget"),
    ),
    Argument("largest_item", "count", "Tokens of the longest item; 0 for a model of text only."),
    Argument(
        "largest_rows",
        "count",
        "Rows of the largest item's output; as many as its tokens when not given.",
    ),
    Argument(
        "encoder_budget",
        "count",
        "Rows that the encoder computes in a pass; as vLLM derives it when not given.",
    ),
    Argument(
        "encoder_cache_size",
        "count",
        "Rows of the encoder cache; as vLLM derives it when not given.",
        ("--encoder-cache-size", "--cache-size"),
    ),
    Argument(
        "disable_chunked_mm_input",
        "switch",
        "Items are not split over passes.",
        (
            "--disable-chunked-mm-input/--no-disable-chunked-mm-input",
            "--whole-items/--chunked-items",
        ),
    ),
    Argument(
        "speculative_config",
        "table",
        "The drafter, as vLLM takes it: method and num_speculative_tokens matter.",
        ("--speculative-config", "-sc"),
    ),
    Argument("spec_method", "word"),
    Argument("spec_tokens", "count"),
    Argument("modules", "count", "Modules of an MTP drafter (num_nextn_predict_layers)."),
    Argument(
        "long_prefill_token_threshold",
        "count",
        "Most tokens of a chunk of a long prefill; 0 for none.",
    ),
    Argument(
        "long_prefill_token_threshold_adaptive",
        "switch",
        "The threshold follows the number of requests.",
    ),
    Argument(
        "max_num_partial_prefills",
        "count",
        "Up to 0.27: sets the threshold where none is given.",
    ),
    Argument(
        "mamba_cache_mode", "word", "With `align`, chunks end at multiples of the block size."
    ),
    Argument("block_size", "count", "Tokens of a KV block."),
    Argument("block_alignment", "count", "Chunks end at multiples of it; 0 for none."),
    Argument("max_num_seqs", "count", "Requests that may run at once."),
    Argument("max_num_active_seqs", "count"),
    Argument("requests", "count", "Requests that clients have open at once; 1 for one at a time."),
    Argument("limit_mm_per_prompt", "table", "Most items of a prompt, by kind."),
    Argument("max_model_len", "count", "Longest request."),
    Argument(
        "enable_prefix_caching",
        "switch",
        "Whether a prompt may begin with cached tokens; it may when not given.",
    ),
    Argument("enable_chunked_prefill", "switch", "Without it the theorems settle nothing."),
    Argument("scheduling_policy", "word", "Who runs first; fcfs when not given.", choices=POLICIES),
    Argument(
        "async_scheduling",
        "switch",
        "Whether passes are scheduled ahead; as vLLM derives it when not given.",
    ),
    Argument(
        "encoder_decoder",
        "switch",
        "Which kind of model; for encoder-decoder ones the theorems settle nothing.",
        ("--encoder-decoder/--decoder-only",),
    ),
    Argument(
        "kv_transfer_config",
        "table",
        "A KV store outside of the engine; with one the theorems settle nothing.",
    ),
    Argument(
        "ec_transfer_config",
        "table",
        "A store of encoder outputs outside of the engine; with one the theorems settle nothing.",
    ),
    Argument("scheduler_cls", "word", unmodelled="another scheduler"),
    Argument(
        "max_num_scheduled_tokens",
        "word",
        unmodelled="a token budget of its own for what is scheduled",
    ),
    Argument("kv_offloading_size", "word", unmodelled="KV that is stored outside of the engine"),
    Argument("kv_offloading_backend", "word", unmodelled="KV that is stored outside of the engine"),
    Argument("prefill_schedule_interval", "word", unmodelled="prefills that wait for their turn"),
    Argument("diffusion_config", "word", unmodelled="a diffusion model"),
    Argument(
        "pipeline_parallel_size",
        "word",
        unmodelled="pipeline stages, between which decodes wait for their turn",
    ),
    Argument("mm_encoder_only", "switch", unmodelled="an engine that only encodes"),
    Argument("ec_manager_config", "word", unmodelled="another book of encoder outputs"),
    Argument(
        "swa_bounded_replay",
        "switch",
        unmodelled="a part of a prefix hit that is computed again",
    ),
)
"""All arguments that bear on the verdict, in the order in which the help lists them."""

KNOWN = tuple(argument.name for argument in ARGUMENTS)

NOT_MODELLED = {a.name: a.unmodelled for a in ARGUMENTS if a.unmodelled}
"""Arguments that change how passes are made up in a way that no theorem is about, and what that
is."""
