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
    lines = [name + _request(request) for name, request in zip(names, requests, strict=True)]
    parts = [*lines, ", ".join(_settings(config, requests))]
    if scenario.resets:
        parts.append("cache reset before pass " + _numbers(scenario.resets))
    return "; ".join(parts)


def _settings(config: EngineConfig, requests: tuple[ScenarioRequest, ...]) -> list[str]:
    words = [f"B={config.max_num_batched_tokens}", f"C={config.encoder_cache_size}"]
    if config.encoder_compute_budget < all_rows(requests):
        words.append(f"E={config.encoder_compute_budget}")
    if config.num_kv_blocks < all_blocks(config, requests):
        words.append(counted(config.num_kv_blocks, "KV block"))
    if config.block_size > 1:
        words.append(f"block size {config.block_size}")
    if config.max_num_seqs < len(requests):
        words.append(f"at most {config.max_num_seqs} running")
    if config.scheduler_lookahead or config.num_speculative_tokens:
        words += [f"ks={config.scheduler_lookahead}", f"kg={config.gather_lookahead}"]
        words.append(counted(config.num_speculative_tokens, "draft"))
    if config.async_depth:
        words.append(f"async {config.async_depth}")
    if config.whole_items:
        words.append("whole items")
    if config.long_prefill_token_threshold:
        words.append(f"chunks up to {config.long_prefill_token_threshold}")
    if config.block_alignment:
        words.append(f"aligned to {config.block_alignment}")
    if config.policy == "priority":
        words.append("by priority")
    if config.is_encoder_decoder:
        words.append("encoder-decoder")
    return words


def _request(request: ScenarioRequest) -> str:
    text = _tokens(request)
    if request.max_tokens > 1:
        text += f", generates {request.max_tokens}"
    if request.arrival:
        text += f", arrives at {request.arrival}"
    if request.priority:
        text += f", priority {request.priority}"
    if any(request.accepted_drafts):
        text += f", accepts {_numbers(request.accepted_drafts)}"
    if any(request.prefix_hits):
        text += f", finds {_numbers(request.prefix_hits)} computed"
    for load in request.failed_loads:
        text += f", falls to {load.num_computed_tokens} at {load.at}"
    if request.abort is not None:
        text += f", aborted at {request.abort}"
    for turn in request.continuations:
        text += f", then at {turn.arrival} {_tokens(turn)}"
        if turn.max_tokens > 1:
            text += f", generates {turn.max_tokens}"
    if request.close is not None:
        text += f", closed at {request.close}"
    return text


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
    parts = ["B is the token budget of a pass", "C the rows of the encoder cache"]
    if config.encoder_compute_budget < all_rows(scenario.requests):
        parts.append("E those that the encoder computes in a pass")
    if config.scheduler_lookahead or config.num_speculative_tokens:
        parts.append("ks and kg how far scheduler and drafter look ahead")
    return ", ".join(parts)
