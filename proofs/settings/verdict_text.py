"""What the verdict on settings looks like: text for people, data for programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from proofs.describe.scenarios import describe_scenario
from proofs.settings.judge import Change, Judgement, Setup
from proofs.settings.stuck.kinds import reserves_at_boundaries
from proofs.settings.stuck.layouts import as_scenario
from proofs.settings.stuck.not_settled import OVERLAPPING
from proofs.settings.stuck.safe import theorems
from proofs.settings.stuck.settings import Settings
from spec.record.document import dumps_scenario
from spec.rules.releases import NEWEST
from spec.verdict import Verdict

JSON_SCHEMA_VERSION = 1

ASSUMPTIONS = (
    "budgets-fixed",
    "arrivals-finite",
    "sampling-yields",
    "synchronous-scheduling",
    "kv-blocks-for-all",
    "no-streaming-input",
    "items-of-any-size",
)
"""What every verdict takes for granted. The last four: every pass is updated before the next one is
scheduled, which is left out where the engine schedules asynchronously; nobody is preempted for want
of KV blocks; a request has one prompt; items of every size up to the largest may come, in any
number and place."""

ELSE_AS_NEWEST = f"all-else-as-in-{NEWEST}"
"""Besides, where rules were read in a source: what is not read of its scheduler is unchanged."""

WHOLE_BLOCKS = "states-at-block-boundaries"
"""Besides, where chunks are aligned and a drafter has several modules: states are kept at the
boundaries of whole blocks, not at those of smaller hash blocks, and at no prefix that others share.
An engine that does stops at more places close to a prompt's end."""

ARGUMENTS = {
    "token_budget": "--max-num-batched-tokens",
    "encoder_budget": "--encoder-budget",
    "cache_size": "--encoder-cache-size",
    "threshold": "--long-prefill-token-threshold",
    "whole_items": "--disable-chunked-mm-input",
    "items_per_prompt": "--limit-mm-per-prompt",
    "release": "--release",
    "num_drafts": "drafts (--speculative-config)",
}
"""The argument that a user changes for each setting."""


def lines_of(
    setup: Setup, judgement: Judgement, found: Sequence[Sequence[Change]]
) -> Iterator[str]:
    """The verdict in lines of text."""
    name = f"vLLM {setup.release}" if setup.release else "these rules"
    name = "the vLLM of this source" if setup.is_read else name
    if judgement.verdict is Verdict.PROVED:
        yield f"cannot stall: no prompt stops {name} with these settings"
        yield "theorems: " + ", ".join(_safe_by(setup, judgement))
    for stop in judgement.stops:
        yield f"can stall: {stop.name}"
        yield f"  {stop.sentence}"
        yield f"  smallest prompt: {describe_scenario(as_scenario(stop.layout, setup.settings))}"
        yield f"  theorems: {', '.join(stop.theorems)}"
    for unknown in () if judgement.stops else judgement.unknowns:
        yield f"not settled: {unknown.assumption}"
        yield f"  {unknown.sentence}"
    for index, steps in enumerate(found):
        changes = " and ".join(_described(change) for change in steps)
        is_settled = steps[-1].verdict is Verdict.PROVED
        rest = "" if is_settled else " (no request alone stops then; the rest is not settled)"
        yield f"{'change' if index == 0 else '    or'}: {changes}{rest}"
    if judgement.stops and not found:
        yield "change: no single setting does; see the settings that each state depends on"
    yield f"scheduling: {_scheduling(setup.settings)}"
    yield from (f"note: {remark}" for remark in setup.remarks)
    yield "assumes: " + ", ".join(_assumed(setup))


def _scheduling(settings: Settings) -> str:
    if settings.async_depth:
        return "asynchronous, passes overlap; --no-async-scheduling for synchronous"
    return "synchronous"


def _assumed(setup: Setup) -> tuple[str, ...]:
    overlaps = (OVERLAPPING,) if setup.settings.async_depth else ()
    blocks = (WHOLE_BLOCKS,) if reserves_at_boundaries(setup.settings, setup.rules) else ()
    read = (ELSE_AS_NEWEST,) if setup.is_read else ()
    return (*(name for name in ASSUMPTIONS if name not in overlaps), *blocks, *read)


def _safe_by(setup: Setup, judgement: Judgement) -> tuple[str, ...]:
    if judgement.verdict is not Verdict.PROVED:
        return ()
    return theorems(setup.settings, setup.rules)


def _described(change: Change) -> str:
    name, before, after = change.setting, change.before, change.after
    if name == "shift":
        return "a drafter of one module" if after == 1 else "no drafter that reads ahead"
    if name == "whole_items":
        return f"without {ARGUMENTS[name]}"
    if name == "threshold" and after == 0:
        return f"without {ARGUMENTS[name]}"
    if name == "items_per_prompt" and change.setup.item_limits is not None:
        before, after = (shlex.quote(text) for text in change.setup.item_limits)
    was = "" if before is None else f" instead of {before}"
    return f"{ARGUMENTS.get(name, name)} {after}{was}"


def document(
    setup: Setup, judgement: Judgement, found: Sequence[Sequence[Change]]
) -> dict[str, Any]:
    """The verdict as JSON data."""
    return {
        "verdict": judgement.verdict.value,
        "release": setup.release,
        "settings": asdict(setup.settings),
        "rules": asdict(setup.rules),
        "stops": [
            {
                "name": stop.name,
                "sentence": stop.sentence,
                "theorems": list(stop.theorems),
                "requests": [asdict(prompt) for prompt in stop.layout.prompts],
                "scenario": json.loads(dumps_scenario(as_scenario(stop.layout, setup.settings)))[
                    "scenario"
                ],
            }
            for stop in judgement.stops
        ],
        "not_settled": [asdict(unknown) for unknown in judgement.unknowns],
        "changes": [
            {
                "settings": [
                    {"setting": change.setting, "before": change.before, "after": change.after}
                    for change in steps
                ],
                "verdict": steps[-1].verdict.value,
            }
            for steps in found
        ],
        "remarks": list(setup.remarks),
        "theorems": list(_safe_by(setup, judgement)),
        "assumes": list(_assumed(setup)),
    }
