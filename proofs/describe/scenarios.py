"""A whole run in words, on one line: what is left of it after shrinking, and no default."""

from __future__ import annotations

from proofs.describe.shape import all_blocks, all_rows
from proofs.describe.words import counted
from spec.record.config import EngineConfig
from spec.record.scenario import Continuation, Scenario, ScenarioRequest


def describe_scenario(scenario: Scenario) -> str:
    """Requests, then settings: ``A[0,4) B[4,8) of 9; B=8, C=4, ks=1, kg=1, 1 draft``.

    ``of`` is followed by the length of the prompt, B is the token budget, C the cache's size, E the
    encoder budget where it is less than all items, ks and kg the shift and the look-ahead.
    """
    config, requests = scenario.config, scenario.requests
    names = [f"R{index}: " for index in range(len(requests))] if len(requests) > 1 else [""]
    told = [name + _request(request) for name, request in zip(names, requests, strict=True)]
    parts = [*told, ", ".join(_settings(config, requests))]
    if scenario.resets:
        parts.append("cache reset before pass " + _numbers(scenario.resets))
    return "; ".join(parts)


def _settings(config: EngineConfig, requests: tuple[ScenarioRequest, ...]) -> list[str]:
    said = [f"B={config.max_num_batched_tokens}", f"C={config.encoder_cache_size}"]
    if config.encoder_compute_budget < all_rows(requests):
        said.append(f"E={config.encoder_compute_budget}")
    if config.num_kv_blocks < all_blocks(config, requests):
        said.append(counted(config.num_kv_blocks, "KV block"))
    if config.block_size > 1:
        said.append(f"block size {config.block_size}")
    if config.max_num_seqs < len(requests):
        said.append(f"at most {config.max_num_seqs} running")
    if config.scheduler_lookahead or config.num_speculative_tokens:
        said += [f"ks={config.scheduler_lookahead}", f"kg={config.gather_lookahead}"]
        said.append(counted(config.num_speculative_tokens, "draft"))
    if config.async_depth:
        said.append(f"async {config.async_depth}")
    if config.whole_items:
        said.append("whole items")
    if config.long_prefill_token_threshold:
        said.append(f"chunks up to {config.long_prefill_token_threshold}")
    if config.block_alignment:
        said.append(f"aligned to {config.block_alignment}")
    if config.policy == "priority":
        said.append("by priority")
    if config.is_encoder_decoder:
        said.append("encoder-decoder")
    return said


def _request(request: ScenarioRequest) -> str:
    said = _tokens(request)
    if request.max_tokens > 1:
        said += f", generates {request.max_tokens}"
    if request.arrival:
        said += f", arrives at {request.arrival}"
    if request.priority:
        said += f", priority {request.priority}"
    if any(request.accepted_drafts):
        said += f", accepts {_numbers(request.accepted_drafts)}"
    if any(request.prefix_hits):
        said += f", finds {_numbers(request.prefix_hits)} computed"
    for load in request.failed_loads:
        said += f", falls to {load.num_computed_tokens} at {load.at}"
    if request.abort is not None:
        said += f", aborted at {request.abort}"
    for turn in request.continuations:
        said += f", then at {turn.arrival} {_tokens(turn)}"
        if turn.max_tokens > 1:
            said += f", generates {turn.max_tokens}"
    return said


def _tokens(turn: ScenarioRequest | Continuation) -> str:
    features = [feature.describe() for feature in turn.features]
    if turn.contents:
        features = [
            f"{feature} ({content})"
            for feature, content in zip(features, turn.contents, strict=True)
        ]
    return f"{' '.join(features) or 'text'} of {turn.num_prompt_tokens}"


def _numbers(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def run_legend(scenario: Scenario) -> str:
    """What the letters on a scenario's line stand for: those that occur in it, and no other.

    Ends without a full stop.
    """
    config = scenario.config
    told = ["B is the token budget of a pass", "C the rows of the encoder cache"]
    if config.encoder_compute_budget < all_rows(scenario.requests):
        told.append("E those that the encoder computes in a pass")
    if config.scheduler_lookahead or config.num_speculative_tokens:
        told.append("ks and kg how far scheduler and drafter look ahead")
    return ", ".join(told)
