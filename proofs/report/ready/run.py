"""A test file for upstream made from a run: the real scheduler, a small driver and one claim.

The file needs only vLLM, torch and pytest. It builds the scheduler as upstream's own tests do,
drives it through the scenario, and asserts what the claim asks for; besides the claim, every
request has to finish. It is written for releases from 0.23.0 on, whose constructors it calls.
"""

from __future__ import annotations

import textwrap
from typing import Any

from impl.target import Runner
from proofs.describe.scenarios import describe_scenario, run_legend
from proofs.report.ready.reach import reach_of_scenario
from proofs.report.text.literals import LINE_LENGTH, allow_long_strings, printable, wrapped
from proofs.report.text.public import named_text
from proofs.report.text.templates import text_templates
from spec.claims.texts import loop_claim
from spec.errors import InputError
from spec.record.feature import Feature
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Continuation, Scenario, ScenarioRequest

_CHECKS: dict[str, str | None] = {
    "target-resident": "What the step reads is on the worker.",
    "drafter-resident-or-boundary": "What the drafter reads is on the worker, or at the boundary.",
    "views-agree": "The worker holds exactly what is in the book.",
    "worker-bounded": "The worker holds no more rows than the cache has.",
    "evicted-not-live": "The worker is not told to drop what is in the book.",
    "held-until-last-use": "Note what the step takes.",
    "payload-available": "The worker has the raw data of what it is to encode.",
    "item-whole": "No step ends inside an item that starts in it.",
    "need-agrees": "What the step reads was asked for in it.",
    "slots-conserved": "The book's slots add up.",
    "no-idle-references": "A request that does not run holds no encoder output.",
    "no-error": None,
    "no-stall": None,
    "no-thrash": None,
    "work-conserving": "A refused request holds up nobody behind it.",
}
"""Claims with a ready test, and what is checked in each step beyond that requests finish."""

_ON_WORKER = (
    "target-resident",
    "drafter-resident-or-boundary",
    "views-agree",
    "worker-bounded",
    "payload-available",
)
_ON_RANGES = (
    "target-resident",
    "drafter-resident-or-boundary",
    "item-whole",
    "need-agrees",
    "held-until-last-use",
)
_STEPS_PER_TOKEN = 4
"""A test waits that many steps for each token; preempted requests compute tokens again."""


def has_loop_ready_test(claim: str) -> bool:
    """Whether a test file can be written for a claim.

    The claims on gathered rows, on the order of calls and on our own accounting have none: the
    tests of single functions show the former, and only a recorder sees the latter.
    """
    return claim in _CHECKS


def loop_ready_test(
    finding: LoopFinding,
    scenario: Scenario,
    target: str,
    runner: Runner,
    name: str,
    *,
    runners: tuple[Runner, ...],
) -> str:
    """The text of the test file.

    Args:
        finding: what was found.
        scenario: the smallest run that shows it.
        target: name of the target, such as ``vllm 0.33.0``.
        runner: whose worker showed it.
        name: the test function's name, without ``test_``.
        runners: all whose worker shows it.

    Raises:
        InputError: the claim has no ready test, or an identifier names two contents.
    """
    if not has_loop_ready_test(finding.claim):
        raise InputError(f"{finding.claim}: there is no ready test for this claim")
    if any(r.contents or any(t.contents for t in r.continuations) for r in scenario.requests):
        raise InputError("an identifier that stands for two contents has no ready test")
    values = {
        "docstring": _docstring(finding, scenario, target, runner, runners),
        "test_name": name,
        "claim": finding.claim,
        "check_says": _CHECKS[finding.claim],
        "has_check": _CHECKS[finding.claim] is not None,
        "pass_index": finding.pass_index,
        "request": finding.request,
        "runner": runner,
        **_settings(scenario),
        **_use(finding.claim, scenario),
    }
    text = text_templates().get_template("loop.py.jinja").render(values)
    return allow_long_strings(text)


def _settings(scenario: Scenario) -> dict[str, Any]:
    config = scenario.config
    # What a scenario leaves open is set so that start-up accepts it; no run can tell.
    num_seqs = min(config.max_num_seqs, len(scenario.requests))
    total = sum(request.most_tokens for request in scenario.requests)
    return {
        "config": config,
        "num_drafts": config.num_speculative_tokens,
        "async_depth": config.async_depth,
        "num_seqs": num_seqs,
        "seqs_at_start": min(num_seqs, config.max_num_batched_tokens),
        "resets": list(scenario.resets),
        "last_event": scenario.last_event,
        "num_steps": scenario.last_event + _STEPS_PER_TOKEN * total + config.async_depth,
        "requests": [_request(request, scenario) for request in scenario.requests],
        "book_class": "EncoderDecoderCacheManager"
        if config.is_encoder_decoder
        else "EncoderCacheManager",
        "scheduler_class": "AsyncScheduler" if config.async_depth else "Scheduler",
    }


def _use(claim: str, scenario: Scenario) -> dict[str, bool]:
    """What the scenario and the claim use, so that the file holds nothing else."""
    requests, config = scenario.requests, scenario.config
    has_turns = any(request.streams for request in requests)
    has_aborts = any(request.abort is not None for request in requests)
    return {
        "has_masks": _has_masks(scenario),
        "has_store": _has_store(scenario),
        "has_failed_loads": any(request.failed_loads for request in requests),
        "has_turns": has_turns,
        "has_closes": any(request.close is not None for request in requests),
        "has_aborts": has_aborts,
        "has_priority": any(request.priority for request in requests),
        "has_accepted": any(any(request.accepted_drafts) for request in requests),
        "has_drafts_to_hand_over": config.num_speculative_tokens > 0 and not config.async_depth,
        "uses_status": has_aborts or (claim == "no-idle-references" and has_turns),
        "uses_worker": claim in _ON_WORKER,
        "uses_ranges": claim in _ON_RANGES,
        "uses_rows": claim in _ON_WORKER
        or (claim == "slots-conserved" and not config.is_encoder_decoder),
        "uses_row_ranges": (claim in _ON_RANGES and claim != "item-whole")
        or (claim == "no-idle-references" and has_turns),
        "uses_look_ahead": claim == "drafter-resident-or-boundary"
        or (claim == "need-agrees" and config.gather_lookahead > 0),
    }


def _has_masks(scenario: Scenario) -> bool:
    features = [feature for request in scenario.requests for feature in request.all_features()]
    return any(feature.is_embed is not None for feature in features)


def _has_store(scenario: Scenario) -> bool:
    return any(any(r.prefix_hits) or r.failed_loads for r in scenario.requests)


def _request(request: ScenarioRequest, scenario: Scenario) -> dict[str, Any]:
    """A request as literals; what no request of the scenario uses is left out."""
    requests, masks = scenario.requests, _has_masks(scenario)
    data = _turn(request, masks)
    if any(each.priority for each in requests):
        data["priority"] = request.priority
    if any(any(each.accepted_drafts) for each in requests):
        data["accepted_drafts"] = list(request.accepted_drafts)
    if _has_store(scenario):
        data["prefix_hits"] = list(request.prefix_hits)
    if any(each.failed_loads for each in requests):
        data["failed_loads"] = [
            (load.at, load.num_computed_tokens) for load in request.failed_loads
        ]
    if any(each.abort is not None for each in requests):
        data["abort"] = request.abort
    if any(each.streams for each in requests):
        data["turns"] = [_turn(turn, masks) for turn in request.continuations]
    if any(each.close is not None for each in requests):
        data["close"] = request.close
    return data


def _turn(turn: ScenarioRequest | Continuation, with_masks: bool) -> dict[str, Any]:
    return {
        "arrival": turn.arrival,
        "num_prompt_tokens": turn.num_prompt_tokens,
        "features": [_feature(feature, with_masks) for feature in turn.features],
        "max_tokens": turn.max_tokens,
    }


def _feature(feature: Feature, with_mask: bool) -> tuple[Any, ...]:
    place = (feature.identifier, feature.offset, feature.length)
    if not with_mask:
        return place
    return (*place, None if feature.is_embed is None else list(feature.is_embed))


def _docstring(
    finding: LoopFinding,
    scenario: Scenario,
    target: str,
    runner: Runner,
    runners: tuple[Runner, ...],
) -> str:
    claim = loop_claim(finding.claim)
    first = f"{claim.sentence[0].upper()}{claim.sentence[1:]}."
    observed, expected = finding.observed.rstrip("."), finding.expected.rstrip(".")
    reach = reach_of_scenario(scenario, runners)
    found = (
        f"Found on {target} with the {runner} model runner, in pass {finding.pass_index}. "
        f"Observed: {observed}. Asked for: {expected}."
    )
    run = (
        f"The run: {describe_scenario(scenario)}. Here [a,b) are the prompt's positions of an "
        f"item; {run_legend(scenario)}."
    )
    settings = f"Reached in default settings: {reach.answer}; {reach.sentence}."
    paragraphs = [found, run, settings, f"Why it matters: {named_text(claim.why)}."]
    opening = textwrap.fill(printable(first), LINE_LENGTH, initial_indent='"""')
    return "\n\n".join([opening, *map(wrapped, paragraphs)]) + '\n"""'
