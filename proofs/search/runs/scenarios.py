"""Hypothesis strategies of whole runs, and the families that a run belongs to."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from proofs.describe.shape import has_derived_sizes
from proofs.search.runs.build import build_scenario
from proofs.search.runs.choices import DrawnChoices
from proofs.search.runs.frame import LARGE, ON_REQUEST, SMALL, Assumption
from spec.record.scenario import Scenario


@st.composite
def scenarios(draw: DrawFn, breaks: frozenset[Assumption] = frozenset()) -> Scenario:
    """Small legal scenarios that aim at edges; they shrink towards few, short and plain ones.

    Args:
        breaks: assumptions that the scenario may break; none by default.
    """
    choices = DrawnChoices(draw)
    wanted = frozenset({choices.pick(ON_REQUEST)} if choices.chance(12) else ())
    return build_scenario(choices, SMALL, breaks, wanted)


@st.composite
def large_scenarios(draw: DrawFn, breaks: frozenset[Assumption] = frozenset()) -> Scenario:
    """Dozens of requests with prompts of thousands of tokens; arguments as ``scenarios``."""
    return build_scenario(DrawnChoices(draw), LARGE, breaks)


FAMILIES = (
    "sync",
    "async",
    "no drafter",
    "drafter",
    "shift 0",
    "shift 1",
    "shift 2",
    "shift 3",
    "fcfs",
    "priority",
    "chunked items",
    "whole items",
    "prefix caching",
    "encoder-decoder",
    "streaming",
    "late closes",
    "block alignment",
    "long-prefill threshold",
    "masks",
    "shared hashes",
    "aborts",
    "resets",
    "failed loads",
    "falls into an item",
    "any sizes",
    "large",
    "shift below look-ahead",
    "one hash, several contents",
)
"""Every family that a drawn scenario can belong to; the last two break an assumption."""


def families(scenario: Scenario) -> tuple[str, ...]:
    """The families that the scenario belongs to, in the order of ``FAMILIES``."""
    config, requests = scenario.config, scenario.requests
    features = [f for request in requests for f in request.all_features()]
    belongs = {
        "async" if config.async_depth else "sync",
        "drafter" if config.gather_lookahead else "no drafter",
        f"shift {config.scheduler_lookahead}",
        config.policy,
        "whole items" if config.whole_items else "chunked items",
    }
    optional = {
        "prefix caching": config.prefix_caching,
        "encoder-decoder": config.is_encoder_decoder,
        "streaming": any(request.streams for request in requests),
        "late closes": any(request.close is not None for request in requests),
        "block alignment": config.block_alignment > 0,
        "long-prefill threshold": config.long_prefill_token_threshold > 0,
        "masks": any(f.is_embed is not None for f in features),
        "shared hashes": len({f.identifier for f in features}) < len(features),
        "aborts": any(request.abort is not None for request in requests),
        "resets": bool(scenario.resets),
        "failed loads": any(request.failed_loads for request in requests),
        "falls into an item": any(
            feature.offset < load.num_computed_tokens < feature.end
            for request in requests
            for load in request.failed_loads
            for feature in request.features
        ),
        "any sizes": not has_derived_sizes(config),
        "shift below look-ahead": config.scheduler_lookahead < config.gather_lookahead,
        "one hash, several contents": not scenario.content_is_hashed,
        "large": sum(request.most_tokens for request in requests) > 1000,
    }
    belongs |= {family for family, applies in optional.items() if applies}
    return tuple(family for family in FAMILIES if family in belongs)
