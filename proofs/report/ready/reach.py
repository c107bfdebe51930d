"""Whether a release in its default settings can get to what a finding shows.

A function that misbehaves when it is called by hand matters only if the engine calls it so. What is
known about that is written down here, by claim and mechanism; for the rest the answer is that
nobody knows. Of a whole run the settings tell it: each that is not at its default has to be chosen
by somebody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from impl.target import RUNNERS, Runner
from proofs.describe.shape import all_blocks
from proofs.describe.words import counted
from spec.functions.cases import BookCase, FreeCase
from spec.functions.findings import Finding
from spec.record.scenario import Scenario

Answer = Literal["yes", "no", "not established"]


@dataclass(frozen=True)
class Reach:
    """Whether default settings reach a fault, and what it takes."""

    answer: Answer
    sentence: str


_UNKNOWN = Reach(
    "not established",
    "the function was called directly; no schedule of this release was looked for that makes the "
    "same call",
)

_DRAFTER = Reach(
    "no",
    "speculative decoding is off by default; with a drafter that reads multimodal embeddings "
    "(EAGLE, EAGLE3, MTP) on a multimodal model, the defaults for everything else reach it: "
    "prefills are chunked, and it takes a chunk that ends where an item begins",
)

_REPEATED_ITEM = Reach(
    "yes",
    "a prompt that repeats one image is enough, if a chunk of its prefill ends between the two "
    "places; the entry can then be evicted and the item is encoded again",
)

_FULL_CACHE = Reach(
    "yes",
    "the encoder cache has to be full, and one pass has to evict an entry for one request and "
    "allocate it again for another; the worker then drops an output that the book believes to be "
    "there (in the order of either runner it is encoded again, so no miss is known to follow)",
)

_ENCODER_DECODER = Reach(
    "yes",
    "with an encoder-decoder model such as Whisper every decode step credits the slots again, and "
    "so does the end of a request, even of one that is aborted before it ran",
)

_REUSED_UUID = Reach(
    "no",
    "by default an identifier is a hash of the content; a client that supplies identifiers of its "
    "own and reuses one for other content reaches it",
)

_PLACEHOLDERS = Reach(
    "no",
    "it needs asynchronous scheduling with drafts in flight, and a feature that ends past where "
    "drafting began; drafts begin after the prompt and features lie in the prompt",
)


def reach_of(finding: Finding) -> Reach:
    """What is known about the finding's way to happen in default settings."""
    case = finding.case
    match finding.claim:
        case "boundary-miss-tolerated" | "boundary-used-when-resident":
            return _DRAFTER
        case "held-until-last-use":
            return _REPEATED_ITEM
        case "evicted-not-live":
            return _FULL_CACHE
        case "freed-not-needed":
            return _PLACEHOLDERS
        case "slots-conserved" if isinstance(case, (FreeCase, BookCase)):
            if case.is_encoder_decoder:
                return _ENCODER_DECODER
            if isinstance(case, BookCase) and not case.content_is_hashed:
                return _REUSED_UUID
    return _UNKNOWN


_SMALL = (
    "the budgets are small so that the run is short; what counts is how they compare with the "
    "items and the chunks"
)


_ONLY_V1 = (
    "the V1 model runner (0.33.0 picks V2, and falls back to V1 only where V2 cannot run, or for "
    "VLLM_USE_V2_MODEL_RUNNER=0; older releases picked by model)"
)


def reach_of_scenario(scenario: Scenario, runners: Sequence[Runner] = RUNNERS) -> Reach:
    """Whether default settings reach what a scenario shows, and what it takes.

    Args:
        scenario: the smallest run.
        runners: model runners that show it.
    """
    needed = [_ONLY_V1] if tuple(runners) == ("V1",) else []
    needed += needed_settings(scenario)
    given = _given_by_default(scenario)
    reach = (
        "" if not given else "of what is on or usual by default it uses " + ", ".join(given) + "; "
    )
    if needed:
        return Reach("no", f"it takes {', '.join(needed)}; {reach}{_SMALL}")
    return Reach("yes", f"{reach}{_SMALL}")


def needed_settings(scenario: Scenario) -> list[str]:
    """Settings and kinds of models that somebody has to choose."""
    config = scenario.config
    needed = []
    if config.num_speculative_tokens:
        drafter = (
            f"speculative decoding with {counted(config.num_speculative_tokens, 'draft token')}"
        )
        if config.scheduler_lookahead > 1:
            drafter += f" by a drafter of {config.scheduler_lookahead} modules (multi-module MTP)"
        elif config.scheduler_lookahead:
            drafter += " by a drafter that reads multimodal embeddings (EAGLE, MTP)"
        needed.append(drafter)
    if config.whole_items:
        needed.append("--disable-chunked-mm-input")
    if config.long_prefill_token_threshold:
        needed.append(f"--long-prefill-token-threshold {config.long_prefill_token_threshold}")
    if config.block_alignment:
        needed.append("a hybrid model whose prefill chunks are aligned to blocks")
    if config.policy == "priority":
        needed.append("--scheduling-policy priority")
    if config.is_encoder_decoder:
        needed.append("an encoder-decoder model")
    if any(request.failed_loads for request in scenario.requests):
        needed.append("a KV connector whose loads can fail")
    if any(request.streams for request in scenario.requests):
        needed.append("streaming input")
    if scenario.resets:
        needed.append("a reset of the encoder cache")
    return needed


def _given_by_default(scenario: Scenario) -> list[str]:
    config, requests = scenario.config, scenario.requests
    given = []
    if config.async_depth:
        given.append("asynchronous scheduling")
    if any(any(request.prefix_hits) for request in requests):
        given.append(
            "prefix caching (a KV connector of the test says what is found; the local cache was "
            "not run)"
        )
    if config.num_kv_blocks < all_blocks(config, requests):
        given.append("a shortage of KV blocks")
    return given
