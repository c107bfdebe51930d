"""A configuration of the covering array made concrete for some requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from proofs.explore.choices import Choices, Disturbance
from proofs.explore.pairs import Row, covering_array
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest

AXES: dict[str, tuple[str, ...]] = {
    "drafter": ("none", "1/1/1", "1/1/2", "2/2/2", "2/1/2", "3/3/3", "0/1/1"),
    "chunks": ("plain", "whole", "threshold 1", "threshold 2", "whole, threshold 1", "align 2"),
    "tokens": ("least", "least+1", "plenty"),
    "cache": ("least", "least+1", "plenty"),
    "kv blocks": ("plenty", "least", "least+1"),
    "output": ("1", "2", "3"),
    "disturbance": ("none", "abort", "reset", "failed load"),
    "text": ("none", "first", "second", "last"),
    "masks": ("none", "first F", "last F"),
    "prefix": ("none", "at first", "after preemption"),
    "async": ("0", "1", "2"),
    "encoder": ("plenty", "least"),
    "block size": ("1", "2"),
    "policy": ("fcfs", "priority"),
    "sequences": ("3", "1"),
}
"""The axes of the configuration. A drafter is given as shift, look-ahead and drafts, in the last of
them with a shift below the look-ahead; *least* is the smallest legal value."""


PLAIN: Row = {
    "drafter": "none",
    "chunks": "plain",
    "tokens": "least+1",
    "cache": "least",
    "kv blocks": "plenty",
    "output": "1",
    "disturbance": "none",
    "text": "none",
    "masks": "none",
    "prefix": "none",
    "async": "0",
    "encoder": "plenty",
    "block size": "1",
    "policy": "fcfs",
    "sequences": "3",
}
"""An engine without anything special, and hardly room for two items."""

FIRST_ROWS: tuple[Row, ...] = (
    *(
        {**PLAIN, "tokens": tokens, "cache": cache, "drafter": drafter, "output": output}
        for drafter, output in (("none", "1"), ("1/1/1", "3"))
        for tokens in ("least", "least+1")
        for cache in ("least", "least+1")
    ),
    {**PLAIN, "disturbance": "abort", "cache": "plenty"},
    {**PLAIN, "drafter": "0/1/1", "masks": "first F", "tokens": "least"},
)
"""Rows with which the covering array begins: plain engines, so that a plain fault shows plainly."""


@cache
def rows() -> tuple[Row, ...]:
    """The rows of the covering array."""
    return covering_array(AXES, FIRST_ROWS)


@dataclass(frozen=True)
class Case:
    """One layout under one row: everything but the choices within a run.

    Attributes:
        row: number of the row.
        requests: the requests, all with arrival 0.
    """

    row: int
    config: EngineConfig
    requests: tuple[ScenarioRequest, ...]
    choices: Choices

    @property
    def scenario(self) -> Scenario:
        """The case without any choice: all requests at once, no draft accepted."""
        return Scenario(self.config, self.requests)


def make_case(
    number: int, row: Row, features: Sequence[tuple[Feature, ...]], tails: Sequence[int]
) -> Case:
    """A layout under a row.

    Args:
        number: the row's number.
        row: a value for each axis.
        features: of each request with features.
        tails: text after the last feature of each of them (tokens).
    """
    masked = _masked(features, row["masks"])
    output = int(row["output"])
    requests = []
    for own, tail in zip(masked, tails, strict=True):
        prompt = max((f.end for f in own), default=1) + tail
        requests.append(ScenarioRequest(prompt, own, max_tokens=output))
    at = {"none": -1, "first": 0, "second": 1, "last": len(requests)}[row["text"]]
    if at >= 0:
        requests.insert(at, ScenarioRequest(2, max_tokens=output))
    if row["policy"] == "priority":
        requests = [replace(r, priority=len(requests) - i) for i, r in enumerate(requests)]
    prefix = row["prefix"]
    if prefix != "none":
        requests = [replace(r, prefix_hits=_hits(prefix, r.num_prompt_tokens)) for r in requests]
    disturbance: Disturbance = row["disturbance"]  # type: ignore[assignment]
    choices = Choices((0,), tuple(range(1, len(requests))), disturbance)
    return Case(number, _config(row, requests), tuple(requests), choices)


def _masked(features: Sequence[tuple[Feature, ...]], masks: str) -> tuple[tuple[Feature, ...], ...]:
    """Features of which those of one hash have text in their first or last place."""
    if masks == "none":
        return tuple(features)
    name = next((f.identifier for own in features for f in own if f.length > 1), None)
    return tuple(
        tuple(
            replace(f, is_embed=_mask(f.length, masks)) if f.identifier == name else f for f in own
        )
        for own in features
    )


def _mask(length: int, masks: str) -> tuple[bool, ...]:
    text = 0 if masks == "first F" else length - 1
    return tuple(place != text for place in range(length))


def _hits(prefix: str, num_prompt_tokens: int) -> tuple[int, ...]:
    if prefix == "at first":
        return (min(1, num_prompt_tokens - 1),)
    return (0, num_prompt_tokens - 1)


def _config(row: Row, requests: Sequence[ScenarioRequest]) -> EngineConfig:
    shift, ahead, drafts = 0, 0, 0
    if row["drafter"] != "none":
        shift, ahead, drafts = (int(part) for part in row["drafter"].split("/"))
    chunks = row["chunks"]
    whole = chunks.startswith("whole")
    threshold = int(chunks.split()[-1]) if "threshold" in chunks else 0
    alignment = 2 if chunks == "align 2" else 0
    items = [f for request in requests for f in request.features]
    size = int(row["block size"])
    tokens = max(1 + drafts, alignment)
    if whole:
        tokens = max([tokens, *(f.length for f in items)])
    rows_of = {f.identifier: f.num_rows for f in items}
    least_rows = max(rows_of.values(), default=1)
    blocks = max(-(-(request.most_tokens + drafts) // size) for request in requests)
    return EngineConfig(
        max_num_batched_tokens=_sized(row["tokens"], tokens, 32),
        encoder_compute_budget=_sized(row["encoder"], least_rows, 32),
        encoder_cache_size=_sized(row["cache"], least_rows, max(1, sum(rows_of.values()))),
        num_kv_blocks=_sized(row["kv blocks"], blocks, 64),
        block_size=size,
        max_num_seqs=int(row["sequences"]),
        scheduler_lookahead=shift,
        gather_lookahead=ahead,
        num_speculative_tokens=drafts,
        async_depth=int(row["async"]),
        whole_items=whole,
        long_prefill_token_threshold=threshold,
        block_alignment=alignment,
        policy="priority" if row["policy"] == "priority" else "fcfs",
        prefix_caching=row["prefix"] != "none",
    )


def _sized(value: str, least: int, plenty: int) -> int:
    if value == "plenty":
        return plenty
    return least + (1 if value == "least+1" else 0)
