"""A prompt that stops, in small integers, and as a scenario that every engine here can run."""

from __future__ import annotations

from dataclasses import dataclass, field

from proofs.settings.stuck.settings import Settings
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest


@dataclass(frozen=True)
class Place:
    """An item of a prompt: offset and length (tokens), and the rows of its output."""

    offset: int
    length: int
    rows: int

    @property
    def end(self) -> int:
        """The position after the last."""
        return self.offset + self.length


@dataclass(frozen=True)
class Prompt:
    """A request that stops, alone or with others like it.

    Attributes:
        num_tokens: length of the prompt.
        max_tokens: tokens to generate.
        arrival: pass before which it arrives.
        prefix_hit: tokens that it finds computed.
    """

    num_tokens: int
    items: tuple[Place, ...] = ()
    max_tokens: int = 1
    arrival: int = 0
    prefix_hit: int = 0


@dataclass(frozen=True)
class Layout:
    """The requests that stop an engine; none of their items are alike."""

    prompts: tuple[Prompt, ...] = field(default=())

    @property
    def size(self) -> tuple[int, int, int]:
        """Requests, tokens and items: a smaller layout is easier to follow."""
        return (
            len(self.prompts),
            sum(prompt.num_tokens for prompt in self.prompts),
            sum(len(prompt.items) for prompt in self.prompts),
        )


def alone(num_tokens: int, *items: Place, prefix_hit: int = 0) -> Layout:
    """A single request."""
    return Layout((Prompt(num_tokens, items, prefix_hit=prefix_hit),))


def twice(num_tokens: int, *items: Place) -> Layout:
    """Two requests of the same shape."""
    return Layout((Prompt(num_tokens, items),) * 2)


def side_by_side(offset: int, rows: int, largest: int) -> tuple[Place, ...]:
    """Items with so many rows in all, each as large as can be."""
    items: list[Place] = []
    while rows > 0:
        length = min(largest, rows)
        items.append(Place(offset, length, length))
        offset, rows = offset + length, rows - length
    return tuple(items)


def as_scenario(layout: Layout, settings: Settings) -> Scenario:
    """The layout as a scenario, with KV blocks for everybody."""
    requests = []
    count = 0
    for prompt in layout.prompts:
        features = []
        for item in prompt.items:
            mask = (
                None
                if item.rows == item.length
                else (True,) * item.rows + (False,) * (item.length - item.rows)
            )
            features.append(Feature(item.offset, item.length, _name(count), mask))
            count += 1
        requests.append(
            ScenarioRequest(
                prompt.num_tokens,
                tuple(features),
                arrival=prompt.arrival,
                max_tokens=prompt.max_tokens,
                prefix_hits=(prompt.prefix_hit,) if prompt.prefix_hit else (),
            )
        )
    most = sum(request.most_tokens + settings.num_drafts for request in requests)
    config = EngineConfig(
        settings.token_budget,
        settings.encoder_budget,
        settings.cache_size,
        num_kv_blocks=2 * most + 2,
        max_num_seqs=settings.max_num_seqs or max(8, len(requests)),
        scheduler_lookahead=settings.shift,
        gather_lookahead=min(settings.shift, 1) if settings.num_drafts else 0,
        num_speculative_tokens=settings.num_drafts,
        whole_items=settings.whole_items,
        long_prefill_token_threshold=settings.threshold,
        block_alignment=settings.block_alignment,
        async_depth=settings.async_depth,
        policy="priority" if settings.by_priority else "fcfs",
        prefix_caching=any(prompt.prefix_hit for prompt in layout.prompts),
    )
    return Scenario(config, tuple(requests))


def _name(number: int) -> str:
    """A, B, ..., Z, A1, B1, ..."""
    letter, round_ = chr(ord("A") + number % 26), number // 26
    return letter + (str(round_) if round_ else "")
